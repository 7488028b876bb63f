"""One run: data, training, fine-tuning, scores, files."""

import os
import time
from typing import Any

import jax.random as jr
import numpy as np

from .._record import RunRecord
from .._stages import train_in_stages
from ._config import Config, load_config
from ._data import load, Parts
from ._generator import generate, make_generator, parameter_count
from ._objectives import make_objective
from ._scores import places, score, spectra, wasserstein


def run(
    experiment: str = "spd",
    *,
    model: str = "bnrde",
    preset: str = "quick",
    setting: str = "arborax",
    seed: int = 1,
    resume: bool = False,
    folder: str | os.PathLike = "runs",
    cache: str | os.PathLike | None = None,
    progress: bool = True,
    changes: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Trains one model, scores it on the test set and writes what came out.

    **Arguments:**

    - `experiment`: `"spd"`.
    - `model`: a name of `MODELS`; `"bnrde-bk"` is fine-tuned with brackets, from a
        finished run of `"bnrde"` with the same configuration and seed if there is one
        in `folder`.
    - `preset`, `setting`: see `load_config`.
    - `seed`: of weights, training noise and generated test paths. Data are the same.
    - `resume`: continue from the checkpoints of a run that was stopped; a finished run
        is read.
    - `folder`: where runs go, each to `experiment/setting-preset-model-seed` there.
    - `cache`: folder of the data cache.
    - `progress`: show a bar.
    - `changes`: other fields of the configuration, for instance `data="stocks"`.

    **Returns:**

    The content of `result.json`. Beside it are `model.abx`, `paths.npz` (generated and
    true eigenvalues of test paths, thinned) and the checkpoints.
    """
    record = RunRecord(experiment, setting, preset, model, seed, changes or {}, folder)
    config = load_config(
        experiment, setting, preset, **{"model": model, **record.changes}
    )
    if finished := record.open(resume):
        return finished
    start = time.process_time()
    parts = load(config, cache)
    model_key, train_key, tune_key, test_key = jr.split(jr.PRNGKey(seed), 4)
    fitted, stages, spent = train_in_stages(
        make_generator(config, parts.train, model_key),
        config,
        record,
        lambda name: _stage(name, config, parts),
        (train_key, tune_key),
        resume=resume,
        progress=progress,
    )
    # As many generated paths as of the law, or enough to see the model and not its
    # noise where there are few test windows.
    count = len(parts.test) if parts.law is not None else max(2048, len(parts.test))
    generated = generate(fitted.model, test_key, parts.ts, count)
    content = {
        "parameters": parameter_count(fitted.model),
        "scores": score(generated, parts.test, parts.known, config),
        "stages": stages,
    }
    stride = max(1, config.window // 2)
    np.savez_compressed(
        record.place / "paths.npz",
        ts=parts.ts[::stride],
        generated=spectra(generated[:2048, ::stride]).astype(np.float32),
        true=spectra(parts.test[:2048, ::stride]).astype(np.float32),
    )
    return record.close(
        fitted.model, config, content, spent + time.process_time() - start
    )


def _stage(name: str, config: Config, parts: Parts) -> tuple[Any, Any, Any]:
    """Objective, data and validation metric of one stage."""
    objective, data = make_objective(name, config, parts)
    index = np.asarray(places(config)[len(config.early) :])
    held_out = spectra(parts.validation[:, index])
    count = len(held_out) if parts.law is not None else max(1024, len(held_out))
    coarse = config.stride if not (index % config.stride).any() else 1

    def metric(model, validation, key):
        paths = generate(model, key, parts.ts, count, coarse)
        if not np.isfinite(paths).all():
            return float("inf")
        values = wasserstein(spectra(paths[:, index // coarse]), held_out)
        return float(
            np.mean(values) if config.selection == "mean" else np.median(values)
        )

    return objective, data, metric

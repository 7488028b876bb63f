"""One run: data, training, fine-tuning, scores, files."""

import os
import time
from typing import Any

import jax.random as jr
import numpy as np

from ...datasets import dataset, RoughBergomi
from .._record import RunRecord
from .._stages import train_in_stages
from ._config import load_config
from ._generator import generate, make_generator, parameter_count
from ._objectives import make_objective
from ._scores import score
from ._selection import Validation


FRESH_SETS = 4


def run(
    experiment: str = "rough-bergomi",
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

    - `experiment`: `"rough-bergomi"`.
    - `model`: a name of `MODELS`; `"bnrde-bk"` is fine-tuned with brackets.
    - `preset`, `setting`: see [`arborax.experiments.load_config`][].
    - `seed`: of weights, training noise and generated test paths. Data are the same.
    - `resume`: continue from the checkpoints of a run that was stopped; a finished run
        is read.
    - `folder`: where runs go, each to `experiment/setting-preset-model-seed` there.
    - `cache`: folder of the data cache.
    - `progress`: show a bar.
    - `changes`: other fields of the configuration.

    **Returns:**

    The content of `result.json`. Beside it are `model.abx`, `paths.npz` (generated and
    true test paths, thinned) and the checkpoints.
    """
    record = RunRecord(experiment, setting, preset, model, seed, changes or {}, folder)
    config = load_config(
        experiment, setting, preset, **{"model": model, **record.changes}
    )
    if finished := record.open(resume):
        return finished
    start = time.process_time()
    law = RoughBergomi(hurst=config.hurst, steps=config.steps)
    data = dataset(law, config.paths, seed=config.data_seed, folder=cache)
    splits = data.split()
    model_key, train_key, tune_key, test_key = jr.split(jr.PRNGKey(seed), 4)
    validation = Validation(config, splits)
    fitted, stages, spent = train_in_stages(
        make_generator(config, splits.train.values, model_key),
        config,
        record,
        lambda name: (*make_objective(name, config, splits.train), validation),
        (train_key, tune_key),
        resume=resume,
        progress=progress,
        keep=validation.keep,
    )
    test = splits.test
    # The first paths are scored; all of them price options.
    count = max(len(test), config.price_paths)
    generated = generate(fitted.model, test_key, test.ts, count)
    fresh = dataset(
        law, FRESH_SETS * len(test), seed=config.data_seed + 1, folder=cache
    )
    content = {
        "parameters": parameter_count(fitted.model),
        "scores": score(generated, test, splits.train, config, fresh=fresh, seed=seed),
        "stages": [{**stage, "bar": validation.bar} for stage in stages],
    }
    stride = max(1, config.window // 2)
    np.savez_compressed(
        record.place / "paths.npz",
        ts=test.ts[::stride],
        generated=generated[: len(test), ::stride, 0],
        true=test.values[:, ::stride, 0],
    )
    return record.close(
        fitted.model, config, content, spent + time.process_time() - start
    )

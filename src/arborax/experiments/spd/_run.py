"""One run: data, training, fine-tuning, scores, files."""

import dataclasses
import datetime
import json
import os
import pathlib
import time
from typing import Any

import jax.random as jr
import numpy as np

from ...training import fit, FitResult, save
from .._files import (
    machine,
    read_result,
    run_name,
    set_arguments,
    stage_record,
    write_json,
)
from .._schedule import learning_rate
from ._config import Config, load_config
from ._data import load, Parts
from ._generator import generate, Generator, make_generator, parameter_count
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
    changes = changes or {}
    config = load_config(experiment, setting, preset, **{"model": model, **changes})
    place = (
        pathlib.Path(folder)
        / experiment
        / run_name(setting, preset, model, seed, changes)
    )
    place.mkdir(parents=True, exist_ok=True)
    if resume and (place / "result.json").exists():
        return read_result(place)
    start = time.process_time()
    parts = load(config, cache)
    model_key, train_key, tune_key, test_key = jr.split(jr.PRNGKey(seed), 4)
    generator = make_generator(config, parts.train, model_key)
    options = dict(resume=resume, progress=progress)
    plain = run_name(setting, preset, "bnrde", seed, changes)
    shared = _first_stage(place.with_name(plain), config)
    spent = read_result(shared)["cpu_seconds"] if shared else 0.0
    fitted = _train(
        generator,
        config,
        parts,
        (config.objective, config.learning_rate, config.iterations),
        train_key,
        (shared or place) / "checkpoints",
        {**options, "resume": True} if shared else options,
    )
    stages = [stage_record(config.objective, fitted)]
    if model == "bnrde-bk":
        fitted = _train(
            fitted.model,
            config,
            parts,
            (
                config.finetune_objective,
                config.finetune_learning_rate,
                config.finetune_iterations,
            ),
            tune_key,
            place / "checkpoints-bk",
            options,
        )
        stages.append(stage_record(config.finetune_objective, fitted))
    # As many generated paths as of the law, or enough to see the model and not its
    # noise where there are few test windows.
    count = len(parts.test) if parts.law is not None else max(2048, len(parts.test))
    generated = generate(fitted.model, test_key, parts.ts, count)
    result = {
        "experiment": experiment,
        "setting": setting,
        "preset": preset,
        "model": model,
        "seed": seed,
        "parameters": parameter_count(fitted.model),
        "scores": score(generated, parts.test, parts.known, config),
        "stages": stages,
        "config": dataclasses.asdict(config),
        "command": f"arborax run {experiment} --model {model} --preset {preset} "
        f"--setting {setting} --seed {seed}" + set_arguments(changes),
        "changes": changes,
        "cpu_seconds": round(spent + time.process_time() - start, 1),
        "machine": machine(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    stride = max(1, config.window // 2)
    np.savez_compressed(
        place / "paths.npz",
        ts=parts.ts[::stride],
        generated=spectra(generated[:2048, ::stride]).astype(np.float32),
        true=spectra(parts.test[:2048, ::stride]).astype(np.float32),
    )
    save(place / "model.abx", fitted.model)
    write_json(place / "result.json", result)
    return {**result, "folder": str(place)}


def _first_stage(place: pathlib.Path, config: Config) -> pathlib.Path | None:
    """The folder of a finished run of `bnrde`, if it is the first stage of this one."""
    if config.model != "bnrde-bk" or not (place / "result.json").exists():
        return None
    wanted = json.loads(json.dumps({**dataclasses.asdict(config), "model": "bnrde"}))
    stored = read_result(place)["config"]
    same = all(
        wanted[name] == stored.get(name)
        for name in wanted
        if not name.startswith("finetune")
    )
    return place if same and (place / "checkpoints").exists() else None


def _train(
    generator: Generator,
    config: Config,
    parts: Parts,
    stage: tuple[str, float, int],
    key: Any,
    checkpoint: pathlib.Path,
    options: dict[str, Any],
) -> FitResult:
    name, peak, iterations = stage
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

    return fit(
        generator,
        data,
        objective,
        key=key,
        optimiser=config.optimiser,
        learning_rate=learning_rate(config.schedule, peak, iterations),
        steps=iterations,
        average=config.average or None,
        metric=metric,
        validate_every=max(1, iterations // config.validations),
        checkpoint=checkpoint,
        **options,
    )

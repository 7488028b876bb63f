"""One run: data, training, scores, files."""

import dataclasses
import datetime
import os
import pathlib
import time
from typing import Any

import jax.random as jr
import numpy as np

from ...training import fit, FitResult, metrics, save
from .._files import machine, read_result, run_name, stage_record, write_json
from .._schedule import learning_rate
from ._config import Config, load_config
from ._data import make_task, Task, test_sets
from ._models import forecast, make_model, parameter_count
from ._scores import predict, reference_scores, score


def run(
    experiment: str = "so-rotation",
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
    """Trains one model on simulated windows, scores it on simulated and recorded ones.

    **Arguments:**

    - `experiment`: `"so-rotation"`.
    - `model`: a name of `MODELS`.
    - `preset`, `setting`: see `load_config`.
    - `seed`: of weights and training batches. Data are the same.
    - `resume`: continue from the checkpoints of a run that was stopped; a finished run
        is read.
    - `folder`: where runs go, each to `experiment/setting-preset-model-seed` there.
    - `cache`: where scores of the references are kept.
    - `progress`: show a bar.
    - `changes`: other fields of the configuration. The folders of recordings are not
        written to the result.

    **Returns:**

    The content of `result.json`. Beside it are `model.abx` and the checkpoints.
    """
    changes = changes or {}
    config = load_config(experiment, setting, preset, **{"model": model, **changes})
    shown = {k: v for k, v in changes.items() if k not in ("folder", "motions")}
    place = (
        pathlib.Path(folder)
        / experiment
        / run_name(setting, preset, model, seed, shown)
    )
    place.mkdir(parents=True, exist_ok=True)
    if resume and (place / "result.json").exists():
        return read_result(place)
    start = time.process_time()
    sets = test_sets(config)  # early: a wrong folder should not cost a training
    model_key, train_key = jr.split(jr.PRNGKey(seed))
    fitted = train(
        make_model(config, model_key),
        make_task(config),
        config,
        train_key,
        checkpoint=place / "checkpoints",
        resume=resume,
        progress=progress,
    )
    result = {
        "experiment": experiment,
        "setting": setting,
        "preset": preset,
        "model": model,
        "seed": seed,
        "parameters": parameter_count(fitted.model),
        "scores": score(fitted.model, sets, config),
        "references": reference_scores(sets, config, cache),
        "windows": {name: len(seen.truth) for name, seen in sets.items()},
        "stages": [stage_record(config.objective, fitted, every=10)],
        "config": {**dataclasses.asdict(config), "folder": None, "motions": None},
        "command": _command(experiment, model, preset, setting, seed, changes),
        "changes": shown,
        "cpu_seconds": round(time.process_time() - start, 1),
        "machine": machine(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    save(place / "model.abx", fitted.model)
    write_json(place / "result.json", result)
    return {**result, "folder": str(place)}


def _command(experiment, model, preset, setting, seed, changes) -> str:
    """As it was given, with folders left to the reader."""
    words = {
        **changes,
        **{k: k.upper() for k in ("folder", "motions") if changes.get(k)},
    }
    assignments = "".join(f" {name}={value}" for name, value in words.items())
    return (
        f"arborax run {experiment} --model {model} --preset {preset} --setting "
        f"{setting} --seed {seed}" + (f" --set{assignments}" if words else "")
    )


def train(
    model: Any, task: Task, config: Config, key: Any, **options: Any
) -> FitResult:
    """Fits a model to the windows of a task."""
    objective = OBJECTIVES[config.objective]

    def loss(model, batch, key):
        *arrays, truth, scale = batch
        out = forecast(model, arrays, config.points)
        return objective(out, truth, scale, config.observed)

    held, scales = task.validation, task.validation_scales

    def metric(model, validation, key):
        out = predict(model, held, config)
        found = float(objective(out, held.truth, scales, config.observed))
        return found if np.isfinite(found) else float("inf")

    return fit(
        model,
        lambda key, step: task.batch(config, key, step),
        loss,
        key=key,
        optimiser=config.optimiser,
        learning_rate=learning_rate(
            config.schedule, config.learning_rate, config.iterations
        ),
        steps=config.iterations,
        metric=metric,
        validate_every=max(1, config.iterations // config.validations),
        **options,
    )


def relative_error(out, truth, scale, observed: int):
    """Mean angle in units of the scale of each window; forecasts count four times."""
    degrees: Any = metrics.rotation_error(out, truth)
    angles = degrees * (np.pi / 180)
    ahead = angles[:, observed:].mean(axis=1)
    seen = angles[:, :observed].mean(axis=1)
    return ((0.8 * ahead + 0.2 * seen) / scale).mean()


def frobenius_error(out, truth, scale, observed: int):
    """Mean Frobenius distance over all points, as published but for a factor two."""
    return metrics.frobenius(out, truth).mean()


OBJECTIVES = {"relative": relative_error, "frobenius": frobenius_error}

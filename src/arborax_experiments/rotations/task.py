"""One run: data, training, scores, files."""

import os
import time
from typing import Any

import jax.random as jr
import numpy as np

from ...training import fit, FitResult, metrics
from .._files import stage_record
from .._record import RunRecord
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
    record = RunRecord(
        experiment,
        setting,
        preset,
        model,
        seed,
        changes or {},
        folder,
        private=("folder", "motions"),
    )
    config = load_config(
        experiment, setting, preset, **{"model": model, **record.changes}
    )
    if finished := record.open(resume):
        return finished
    start = time.process_time()
    sets = test_sets(config)  # early: a wrong folder should not cost a training
    model_key, train_key = jr.split(jr.PRNGKey(seed))
    fitted = train(
        make_model(config, model_key),
        make_task(config),
        config,
        train_key,
        checkpoint=record.place / "checkpoints",
        resume=resume,
        progress=progress,
    )
    content = {
        "parameters": parameter_count(fitted.model),
        "scores": score(fitted.model, sets, config),
        "references": reference_scores(sets, config, cache),
        "windows": {name: len(seen.truth) for name, seen in sets.items()},
        "stages": [stage_record(config.objective, fitted, every=10)],
    }
    return record.close(fitted.model, config, content, time.process_time() - start)


def train(
    model: Any, task: Task, config: Config, key: Any, **options: Any
) -> FitResult:
    """Fits a model to the windows of a task."""
    objective = OBJECTIVES[config.objective]

    def loss(model, batch, key):
        *arrays, truth, scale = batch
        out = forecast(model, arrays)
        return objective(out, truth, scale, config.observed)

    held, scales = task.validation, task.validation_scales

    def metric(model, validation, key):
        out = predict(model, held)
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

"""One run: the identity at equal weights, then training."""

import contextlib
import dataclasses
import os
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ...paths import SampledPath
from ...training import fit
from .._record import RunRecord
from ._config import Config, load_config
from ._data import loss_of, make_task, Task
from ._models import make_model, MODELS


def outputs_of(model: Any, xs: Any) -> Any:
    """Outputs `(series, times, outputs)` of a batch of paths."""
    return model.predict(SampledPath(xs[0, :, 0], xs, check=False))


@eqx.filter_jit
def _outputs(model, xs):
    return outputs_of(model, xs)


def identity_gap(config: Config, task: Task, seed: int = 0, series: int = 16) -> float:
    """The largest difference of the outputs of the two models at equal weights, as a
    part of the largest output."""
    xs = jnp.asarray(task.train[0][:series])
    first, second = (
        _outputs(
            make_model(
                dataclasses.replace(config, model=name),
                task.channels,
                task.outputs,
                jr.PRNGKey(seed),
            ),
            xs,
        )
        for name in MODELS
    )
    return float(jnp.max(jnp.abs(first - second)) / jnp.max(jnp.abs(first)))


def run(
    experiment: str = "recovery",
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
    """Compares the two models at equal weights, then trains one of them.

    Runs of both models with the same seed see the same weights and batches: their loss
    curves must agree. Arguments as `arborax.experiments.so_rotation.run`; `cache` is
    not used.

    **Returns:**

    The content of `result.json`, with `identity` (see `identity_gap`) and the loss of
    every step.
    """
    record = RunRecord(
        experiment,
        setting,
        preset,
        model,
        seed,
        changes or {},
        folder,
        private=("folder",),
    )
    config = load_config(
        experiment, setting, preset, **{"model": model, **record.changes}
    )
    if finished := record.open(resume):
        return finished
    start = time.process_time()
    precision = jax.enable_x64(True) if config.double else contextlib.nullcontext()
    with precision:
        task = make_task(config)
        gap = identity_gap(config, task, seed)
        model_key, train_key = jr.split(jr.PRNGKey(seed))

        def objective(model, batch, key):
            xs, targets = batch
            return loss_of(task, outputs_of(model, xs), targets)

        fitted = fit(
            make_model(config, task.channels, task.outputs, model_key),
            task.train,
            objective,
            key=train_key,
            optimiser=config.optimiser,
            learning_rate=config.learning_rate,
            steps=config.iterations,
            batch_size=min(config.batch, len(task.train[0])),
            checkpoint=record.place / "checkpoints",
            checkpoint_every=max(1, config.iterations // config.validations),
            resume=resume,
            progress=progress,
        )
        scores = _scores(fitted.last, task)
    content = {
        "data": config.data,
        "identity": gap,
        "scores": scores,
        "loss": fitted.history.loss,
        "stages": [
            {
                "objective": "cross-entropy" if task.classes else "mean square",
                "steps": fitted.steps,
                "best_metric": None,
                "stop": fitted.stop,
                "seconds": dataclasses.asdict(fitted.timings),
            }
        ],
    }
    return record.close(fitted.last, config, content, time.process_time() - start)


def _scores(model: Any, task: Task) -> dict[str, float]:
    """Loss and, with classes, accuracy on the test part."""
    xs, targets = task.test
    size = min(128, len(xs))
    parts = []
    for at in range(0, len(xs), size):
        rows = np.minimum(np.arange(at, at + size), len(xs) - 1)
        parts.append(np.asarray(_outputs(model, jnp.asarray(xs[rows]))))
    outputs = np.concatenate(parts)[: len(xs)]
    found = {"loss": float(loss_of(task, jnp.asarray(outputs), jnp.asarray(targets)))}
    if task.classes:
        found["accuracy"] = float((outputs[:, -1].argmax(axis=1) == targets).mean())
    return found

"""The stages of training of a run."""

import dataclasses
import itertools as it
import json
import pathlib
from collections.abc import Iterable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import PRNGKeyArray

from arborax.training import fit, FitResult, History, Timings

from .config import TrainingConfig
from .results import RunFolder
from .task import Stage


def train(
    model: Any,
    stages: Iterable[Stage],
    config: TrainingConfig,
    folder: RunFolder,
    keys: tuple[PRNGKeyArray, PRNGKeyArray],
    *,
    resume: bool,
    progress: bool,
) -> tuple[FitResult, list[dict[str, Any]], float]:
    """Trains a model stage by stage, with checkpoints in the folder of the run.

    **Arguments:**

    - `model`: with its first weights.
    - `stages`: may be none; the model is then taken as it is.
    - `config`, `folder`: of the run.
    - `keys`: of the first and the second stage; later keys follow from the last.
    - `resume`: continue from the checkpoints of a run that was stopped.
    - `progress`: show a bar.

    **Returns:**

    The result of the last stage, or one of zero steps; the records of all stages; and
    the CPU seconds of finished runs from which a stage was read.
    """
    later = (jr.fold_in(keys[-1], k) for k in it.count(1))
    fitted, records, spent = untrained(model), [], 0.0
    for stage, key in zip(stages, it.chain(keys, later)):
        finished = finished_stage(stage, config, folder)
        if finished is not None:
            spent += finished["cpu_seconds"]
        place = pathlib.Path(finished["folder"]) if finished else folder.path
        every = max(1, stage.steps // config.validations)
        result = fit(
            fitted.model,
            stage.data,
            stage.objective,
            key=key,
            optimiser=config.optimiser,
            learning_rate=scheduled(config.schedule, stage.learning_rate, stage.steps),
            average=config.average or None,
            steps=stage.steps,
            batch_size=stage.batch_size,
            metric=stage.metric,
            validate_every=every,
            checkpoint=place / stage.folder,
            checkpoint_every=every,
            resume=resume or finished is not None,
            progress=progress,
        )
        fitted = stage.keep(result)
        records.append(stage_record(stage, fitted))
    return fitted, records, spent


def untrained(model: Any) -> FitResult:
    """A model as it is, as the result of zero steps."""
    timings = Timings(0.0, 0.0, 0.0, 0.0, 0.0)
    message = "no stage of training"
    return FitResult(
        model, model, History(), "steps", message, 0, 0, None, None, timings
    )


def finished_stage(
    stage: Stage, config: TrainingConfig, folder: RunFolder
) -> dict[str, Any] | None:
    """The result of a finished run beside this one that repeats the stage."""
    if stage.same_as is None:
        return None
    other = dataclasses.replace(folder, model=stage.same_as)
    result = other.result()
    if result is None or not (other.path / stage.folder).exists():
        return None
    wanted = json.loads(json.dumps(dataclasses.asdict(config)))
    wanted["model"] = stage.same_as
    stored = result["config"]
    read = set(wanted) - set(stage.unread)
    return result if all(wanted[k] == stored.get(k) for k in read) else None


def stage_record(stage: Stage, fitted: FitResult) -> dict[str, Any]:
    """The entry of a stage in `result.json`."""
    losses = fitted.history.loss[:: stage.loss_every]
    return {
        "objective": stage.name,
        "steps": fitted.steps,
        "best_step": fitted.best_step,
        "best_metric": fitted.best_metric,
        "stop": fitted.stop,
        "message": fitted.message,
        "seconds": dataclasses.asdict(fitted.timings),
        "loss": [float(f"{v:.6g}") for v in losses],
        "validation": fitted.history.validation,
        **stage.facts,
    }


def scheduled(schedule: Literal["cosine", "constant"], peak: float, steps: int) -> Any:
    """The learning rate as Optax takes it: a number, or a cosine with a short rise."""
    if schedule == "constant":
        return peak
    rise = max(1, steps // 20)

    def cosine(count: Any) -> Any:
        step = jnp.asarray(count, jnp.float32)
        start = (step + 1) / rise
        angle = jnp.clip((step - rise) / max(1, steps - rise), 0.0, 1.0) * np.pi
        fall = 0.01 + 0.99 * (1 + jnp.cos(angle)) / 2
        return peak * jnp.minimum(start, fall)

    return jax.jit(cosine)


def parameter_count(model: Any) -> int:
    """How many numbers a model has to learn; shapes are enough."""

    def learned(leaf: Any) -> bool:
        return hasattr(leaf, "shape") and jnp.issubdtype(leaf.dtype, jnp.inexact)

    leaves = jax.tree.leaves(eqx.filter(model, learned))
    return sum(leaf.size for leaf in leaves)

"""`fit`: train any Equinox model on any objective."""

import contextlib
import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.random as jr
from jax.sharding import Mesh

from .._inputs import as_choice, as_count, as_key, as_kind
from .._values import shown
from ._batches import InMemory, make_source
from ._checkpoints import Checkpoints, FileCheckpoints
from ._distributed import is_key, is_main, Placement
from ._loop import Run, Schedule
from ._optimisers import make_optimiser
from ._result import FitResult
from ._step import CompiledStep, initial_state
from ._validation import Best, Validator
from .trackers import JSONL, TqdmProgress, Tracker


def fit(
    model: Any,
    data: Any,
    objective: Callable[..., Any],
    *,
    key: Any,
    optimiser: Any = "adamw",
    learning_rate: float | Callable | None = None,
    weight_decay: float | None = None,
    clip: float | None = 1.0,
    average: float | None = None,
    steps: int | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    validation: Any = None,
    metric: Callable[..., Any] | None = None,
    mode: Literal["min", "max"] = "min",
    validate_every: int | None = None,
    patience: int | None = None,
    trainable: Any = eqx.is_inexact_array,
    checkpoint: str | os.PathLike | Checkpoints | None = None,
    checkpoint_every: int | None = None,
    resume: bool = True,
    log: str | os.PathLike | None = None,
    log_every: int = 1,
    trackers: Sequence[Tracker] = (),
    progress: bool | Callable[..., Any] = True,
    hooks: Sequence[Callable[..., Any]] = (),
    mesh: Mesh | None = None,
) -> FitResult:
    """Trains a model and returns the best one, judged by a validation metric.

    The step is compiled once, and your model is not modified. All randomness is derived
    from `key` and the step number, so a run that was killed and resumed ends with the
    same result, bit for bit.

    **Arguments:**

    - `model`: any `eqx.Module` (or pytree of arrays).
    - `data`: a pytree of arrays with a common leading axis, shuffled in each epoch
        (NumPy arrays stay on the host, JAX arrays on their device); or a pure function
        `data(key, step)` that returns a batch, always of the same shapes. With several
        processes, it returns the whole batch in each of them.
    - `objective`: `objective(model, batch, key) -> loss` or `(loss, aux)`, with `loss`
        a real scalar over the whole batch. Fresh noise is drawn from `key`. Scalars in
        `aux` are recorded; all of `aux` is reported if the loss is not finite.
    - `key`: a JAX key.
    - `optimiser`: `"adamw"`, `"muon"`, `"muon-published"` (see `training.muon`) or an
        Optax transformation.
    - `learning_rate`: number or Optax schedule; default 1e-3 (AdamW), 5e-4 (Muon).
    - `weight_decay`: decoupled decay, default 1e-6.
    - `clip`: largest global gradient norm, applied before the optimiser.
    - `average`: decay, below one, of a moving average of the parameters. The average is
        then validated, selected and returned, which helps with noisy objectives. It
        covers about `1 / (1 - average)` steps, and fewer early on: the decay at step
        `n` is `min(average, (1+n)/(10+n))`.
    - `steps`, `epochs`: how long to train; give exactly one. Epochs need data in
        memory.
    - `batch_size`: for data in memory; by default all of it. Each epoch drops a last,
        partial batch.
    - `validation`: passed to the metric; without a metric, a pytree like `data`.
    - `metric`: `metric(model, validation, key) -> value` or `(value, dictionary)`,
        always with the same key. It is not compiled: use `eqx.filter_jit` inside where
        it is slow. Default: the mean of the objective over `validation`.
    - `mode`: `"min"` or `"max"`: whether a small or a large metric is good.
    - `validate_every`: steps between validations; default one epoch, or a twentieth of
        the run. The initial model is validated too, and may win.
    - `patience`: stop after this many validations in a row without a better metric.
    - `trainable`: a filter, as in `eqx.partition`; other arrays stay as they are.
    - `checkpoint`: a folder for checkpoints (or an object such as `OrbaxCheckpoints`).
        The last two are kept; a kill at any moment loses at most `checkpoint_every`
        steps. The folder belongs to one process at a time: a second one gets an error.
    - `checkpoint_every`: steps between checkpoints; default as `validate_every`.
    - `resume`: continue from the newest checkpoint in the folder, which must belong to
        a run with the same key, data size and model (`steps` may be larger). If false,
        old checkpoints in the folder are removed.
    - `log`: a JSONL file, overwritten or, in a resumed run, continued; default
        `log.jsonl` in the checkpoint folder, if there is one.
    - `log_every`: steps between training records.
    - `trackers`: more trackers, see `arborax.training.trackers`.
    - `progress`: whether to show a bar with the time left; or a function
        `(total, initial)` that makes one.
    - `hooks`: functions of an `Event`; one that returns `True` ends the run.
    - `mesh`: split each batch over the devices of a mesh, in one or several processes
        (see `initialise_distributed`); the meaning of the objective does not change.

    **Returns:**

    A `FitResult`. A non-finite loss or gradient, Ctrl-C or a hook ends the run without
    an exception: see its `stop` and `message`.

    !!! example

        ```python
        def objective(model, batch, key):
            x, y = batch
            return jnp.mean((jax.vmap(model)(x) - y) ** 2)

        result = abx.fit(model, (x, y), objective, epochs=20, batch_size=64,
                         validation=(x_val, y_val), patience=5,
                         checkpoint="runs/first", key=jr.key(0))
        abx.save("model.abx", result.model)
        ```
    """
    _check_kinds(model, data, objective, checkpoint, hooks, trackers)
    key_data, key_step, key_validation = jr.split(as_key(key), 3)
    place = Placement(mesh)
    if batch_size is not None:
        batch_size = as_count("batch_size", batch_size)
    source = make_source(data, batch_size, key_data)
    if isinstance(source, InMemory) and source.batch_size % place.size:
        raise ValueError(
            f"batch_size {source.batch_size} must be a multiple of the {place.size} "
            "devices of the mesh."
        )
    validates = metric is not None or validation is not None
    if patience is not None and not validates:
        raise ValueError("patience needs a validation set or a metric.")
    as_choice("mode", mode, ("min", "max"))
    if average is not None and not 0 <= average < 1:
        raise ValueError(f"average must be in [0, 1) or None, got {average}.")
    total = _total_steps(source.steps_per_epoch, steps, epochs)
    usual = source.steps_per_epoch or max(1, total // 20)
    validate_every = usual if validate_every is None else validate_every
    checkpoint_every = validate_every if checkpoint_every is None else checkpoint_every
    schedule = Schedule(
        steps=total,
        validate_every=as_count("validate_every", validate_every),
        checkpoint_every=as_count("checkpoint_every", checkpoint_every),
        log_every=as_count("log_every", log_every),
        patience=None if patience is None else as_count("patience", patience),
    )

    selected, other = eqx.partition(model, trainable)
    params, rest = eqx.partition(selected, eqx.is_inexact_array)
    frozen, static = eqx.partition(eqx.combine(other, rest), eqx.is_array)
    count = sum(x.size for x in jax.tree.leaves(params))
    if count == 0:
        raise ValueError("the model has no trainable arrays; check `trainable`.")

    rule = make_optimiser(optimiser, learning_rate, weight_decay, clip)
    if isinstance(checkpoint, str | os.PathLike):
        checkpoint = FileCheckpoints(checkpoint)
    run = Run(
        place=place,
        source=source,
        step_fn=CompiledStep(objective, rule, static, key_step, place, average),
        state=initial_state(params, rule, place, average),
        frozen=frozen,
        static=static,
        validator=None,
        checkpoints=checkpoint,
        fingerprint=_fingerprint(key, source, mode, average),
        schedule=schedule,
        best=Best(mode),
        hooks=tuple(hooks),
    )
    folder = checkpoint if isinstance(checkpoint, FileCheckpoints) else None
    with contextlib.ExitStack() as stack:
        if folder is not None and is_main():
            stack.enter_context(folder.lock)
        if resume:
            run.restore()
        elif checkpoint is not None and (folder is None or is_main()):
            checkpoint.clear()
        if validates:
            run.validator = Validator(
                metric,
                validation,
                objective,
                getattr(source, "batch_size", None),
                run.frozen,
                static,
                key_validation,
                place,
            )
        if log is None and folder is not None:
            log = folder.folder / "log.jsonl"
        if is_main():
            if log is not None:
                run.trackers.append(JSONL(log, run.step or None))
            run.trackers.extend(trackers)
            if progress is not False:
                make = TqdmProgress if progress is True else progress
                run.progress = make(schedule.steps, run.step)
        start = {
            "steps": schedule.steps,
            "parameters": count,
            "devices": place.size,
            "processes": jax.process_count(),
            "resumed": run.step > 0,
        }
        return run.to_result(start)


def _check_kinds(
    model: Any, data: Any, objective: Any, checkpoint: Any, hooks: Any, trackers: Any
) -> None:
    """A `TypeError` for arguments of the wrong kind, before anything is compiled."""
    if isinstance(model, type):
        raise TypeError(
            f"`model` is the class {model.__name__}: build one, for instance "
            f"`{model.__name__}(..., key=key)`."
        )
    _check_function("objective", objective, ("model", "batch", "key"))
    if inspect.isfunction(data) or inspect.ismethod(data):
        _check_function("data", data, ("key", "step"))
    kinds = str | os.PathLike | Checkpoints | None
    must = "be a folder or an object with `save`, `restore` and `clear`"
    as_kind("checkpoint", checkpoint, kinds, must)
    if not isinstance(hooks, Sequence) or not all(callable(h) for h in hooks):
        raise TypeError(f"`hooks` must be a list of functions, got {shown(hooks)}.")
    if not isinstance(trackers, Sequence) or not all(
        isinstance(t, Tracker) for t in trackers
    ):
        raise TypeError(
            "`trackers` must be a list of objects with `log` and `close`, got "
            f"{shown(trackers)}."
        )


def _check_function(name: str, value: Any, wanted: tuple[str, ...]) -> None:
    call = f"{name}({', '.join(wanted)})"
    if not callable(value):
        raise TypeError(f"`{name}` must be a function `{call}`, got {shown(value)}.")
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return  # a function that does not say what it takes
    try:
        signature.bind(*wanted)
    except TypeError as error:
        raise TypeError(
            f"`{name}` is called as `{call}`, but takes `{signature}`: {error}."
        ) from None


def _total_steps(per_epoch: int | None, steps: Any, epochs: Any) -> int:
    if (steps is None) == (epochs is None):
        raise ValueError("give exactly one of `steps` and `epochs`.")
    if epochs is None:
        return as_count("steps", steps)
    if per_epoch is None:
        raise ValueError(
            "a function `data(key, step)` has no epochs: give `steps` instead."
        )
    return as_count("epochs", epochs) * per_epoch


def _fingerprint(
    key: Any, source: Any, mode: str, average: float | None
) -> dict[str, Any]:
    """Facts that must be equal in a run and its continuation, as JSON."""
    return {
        "key": (jr.key_data(key) if is_key(key) else key).tolist(),
        "samples": source.samples,
        "batch_size": getattr(source, "batch_size", None),
        "mode": mode,
        "average": average,
    }

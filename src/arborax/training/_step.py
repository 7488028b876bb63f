"""The one compiled step: donated state, and a guard against non-finite numbers."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Inexact, Int32

from .._imports import require
from .._inputs import as_array
from ._batches import is_array
from ._distributed import Placement


class TrainState(NamedTuple):
    """The state that a step changes. `averaged` is the moving average of the
    parameters, if one is kept; `good` are they, or it, when the loss was last finite.
    """

    params: Any
    good: Any
    averaged: Any
    opt_state: Any
    step: Int32[Array, ""]
    failed: Bool[Array, ""]


class StepOutput(NamedTuple):
    """The report of a step."""

    loss: Any
    gradient_norm: Any
    ok: Any
    aux: Any


def initial_state(
    params: Any, optimiser: Any, place: Placement, average: float | None = None
) -> TrainState:
    """The state before the first step, in fresh buffers."""
    with _lenient():
        opt_state = jax.jit(optimiser.init)(params)
    state = TrainState(
        params=params,
        good=params,
        averaged=None if average is None else params,
        opt_state=opt_state,
        step=jnp.asarray(0, jnp.int32),
        failed=jnp.asarray(False),
    )
    return place.replicate(state)


def call_objective(objective: Callable, model: Any, batch: Any, key: Any) -> Any:
    """Calls an objective and checks, while tracing, what it returns."""
    out = objective(model, batch, key)
    loss, aux = out if isinstance(out, tuple) and len(out) == 2 else (out, {})
    wanted = "the objective must return a real scalar loss, or (loss, aux)"
    if not eqx.is_array_like(loss):
        raise ValueError(f"{wanted}; got a {type(loss).__name__}.")
    loss = jnp.asarray(loss)
    if loss.shape != () or not jnp.issubdtype(loss.dtype, jnp.floating):
        raise ValueError(
            f"{wanted}; got {loss.dtype}{list(loss.shape)}. Average over the batch."
        )
    aux = eqx.filter(aux, eqx.is_array_like)
    return loss, jax.tree.map(lambda x: jax.lax.stop_gradient(jnp.asarray(x)), aux)


@dataclasses.dataclass
class CompiledStep:
    """`state, output = step(state, batch)`, after `compile`.

    A batch of another shape or dtype is an error, not a silent second compilation.
    """

    objective: Callable
    optimiser: Any
    static: Any
    key: jax.Array
    place: Placement
    average: float | None = None
    compile_seconds: float = 0.0
    _frozen: Any = None
    _compiled: Any = None
    _signature: Any = None
    _rest: Any = None

    def _step(self, state: TrainState, frozen: Any, arrays: Any, key: Any) -> Any:
        optax = require("optax", "train", "abx.fit")
        batch = eqx.combine(arrays, self._rest)

        def loss_of(params):
            model = eqx.combine(params, frozen, self.static)
            step_key = jr.fold_in(key, state.step)
            return call_objective(self.objective, model, batch, step_key)

        (loss, aux), grads = jax.value_and_grad(loss_of, has_aux=True)(state.params)
        with _lenient():
            norm = optax.tree.norm(grads)
            updates, opt_state = self.optimiser.update(
                grads, state.opt_state, state.params, value=loss
            )
            params = optax.apply_updates(state.params, updates)
        shown = state.params if state.averaged is None else state.averaged
        good_loss = jnp.isfinite(loss) & ~state.failed
        ok = good_loss & jnp.isfinite(norm)
        # After a failure the state is frozen, so the host may find out some steps
        # later.
        new = TrainState(
            params=_select(ok, params, state.params),
            averaged=_select(ok, self._mean(state, params), state.averaged),
            good=_select(good_loss, shown, state.good),
            opt_state=_select(ok, opt_state, state.opt_state),
            step=state.step + ok.astype(jnp.int32),
            failed=state.failed | ~ok,
        )
        return new, StepOutput(loss, norm, ok, aux)

    def _mean(self, state: TrainState, params: Any) -> Any:
        """The moving average; early on over fewer steps, to forget where it began."""
        if self.average is None:
            return None
        step = state.step.astype(jnp.float32)
        decay = jnp.minimum(self.average, (1 + step) / (10 + step))

        def mix(old, new):
            return old + (1 - decay).astype(old.dtype) * (new - old)

        return jax.tree.map(mix, state.averaged, params)

    def compile(self, state: TrainState, batch: Any, frozen: Any) -> None:
        """Traces and compiles for the shapes of this batch; keeps the time it took."""
        self._frozen, self.key = self.place.replicate((frozen, self.key))
        arrays, self._rest = eqx.partition(batch, _is_traced)
        arrays = self.place.batch(arrays)
        self._signature = _signature(arrays)
        options: dict[str, Any] = {"donate_argnums": 0}
        if self.place.mesh is not None:
            options["out_shardings"] = self.place.replicated
        start = time.perf_counter()
        jitted = jax.jit(self._step, **options)
        lowered = jitted.lower(state, self._frozen, arrays, self.key)
        self._compiled = lowered.compile()
        self.compile_seconds = time.perf_counter() - start

    def __call__(self, state: TrainState, batch: Any) -> tuple[TrainState, StepOutput]:
        arrays, _ = eqx.partition(batch, _is_traced)
        arrays = self.place.batch(arrays)
        if _signature(arrays) != self._signature:
            raise ValueError(
                "the step is compiled once, for batches of one shape. Expected "
                f"{_text(self._signature)}, got {_text(_signature(arrays))}. Let "
                "`data(key, step)` return the same shapes and dtypes at every step."
            )
        return self._compiled(state, self._frozen, arrays, self.key)


@contextlib.contextmanager
def _lenient() -> Iterator[None]:
    """Optax relies on JAX's default promotion; the caller may have forbidden it."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def _is_traced(x: Any) -> bool:
    return is_array(x) or isinstance(x, np.generic)


def _select(ok: Any, new: Any, old: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(ok, a, b), new, old)


def _signature(arrays: Any) -> tuple:
    leaves, structure = jax.tree.flatten(arrays)
    return structure, tuple((x.dtype.name, x.shape) for x in leaves)


def _text(signature: Any) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for dtype, shape in signature[1])


def first_nonfinite(values: Inexact[Array, "..."], axis: int = 0) -> Int32[Array, ""]:
    """The first index along an axis with a `nan` or infinity anywhere in it, or -1.

    Return it from an objective, `loss, {"window": first_nonfinite(ys, axis=1)}`, and
    `fit` reports the window in which a solution left the finite numbers.

    **Arguments:**

    - `values`: any array, for example states `(batch, windows, channels)`.
    - `axis`: the axis of windows or times.
    """
    values = as_array("values", values)
    whole = isinstance(axis, int | np.integer)
    if not whole or not -values.ndim <= axis < values.ndim:
        raise ValueError(
            f"`axis` must be the number of an axis of `values` of shape {values.shape}."
        )
    bad = ~jnp.isfinite(jnp.moveaxis(values, axis, 0))
    bad = jnp.any(bad.reshape(bad.shape[0], math.prod(bad.shape[1:])), axis=1)
    if not bad.shape[0]:
        return jnp.full((), -1, jnp.int32)
    return jnp.where(jnp.any(bad), jnp.argmax(bad), -1).astype(jnp.int32)


def nonfinite_leaves(batch: Any) -> list[str]:
    """Names of the arrays of a batch that hold NaN or infinity, with counts."""
    found = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(
        eqx.filter(batch, eqx.is_inexact_array_like)
    ):
        count = np.size(leaf) - int(np.isfinite(np.asarray(leaf)).sum())
        if count:
            name = jax.tree_util.keystr(path) or "it"
            found.append(f"{name} ({count} of {np.size(leaf)} numbers)")
    return found

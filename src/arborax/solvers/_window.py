"""One window of the log-ODE: the flow of its window field over unit time."""

from collections.abc import Callable

import jax.lax as lax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._xla import scan
from ..geometry import AbstractGeometry
from ..lifts import WindowField
from ._base import AbstractSolver


def window_field(
    field: WindowField, lam: Float[Array, " primitives"], t0, t1
) -> Callable:
    """The field `f(s, y)` of one window, `s` running over `[0, 1]`.

    Times keep their own dtype, which may have more digits than the state.
    """
    coefficients = field.coefficients(lam)
    if not field.time_dependent:
        return lambda s, y: field.evaluate(None, y, coefficients)
    t0, t1 = jnp.asarray(t0), jnp.asarray(t1)

    def f(s, y):
        t = t0 + s.astype(t0.dtype) * (t1 - t0)
        return field.evaluate(t, y, coefficients)

    return f


def run_steps(
    solver: AbstractSolver,
    f: Callable,
    geometry: AbstractGeometry,
    y: PyTree[Array],
    substeps: int,
    dtype,
) -> PyTree[Array]:
    """`substeps` steps of a scheme over unit time, for the field `f(s, y)`."""
    h = jnp.asarray(1 / substeps, dtype)
    if substeps == 1:
        return solver.step(f, geometry, jnp.zeros_like(h), y, h)

    def body(z, s):
        return solver.step(f, geometry, s, z, h), None

    return scan(body, y, jnp.arange(substeps, dtype=dtype) * h)[0]


def step_window(
    field: WindowField,
    solver: AbstractSolver,
    substeps: int,
    y: PyTree[Array],
    lam: Float[Array, " primitives"],
    t0: Float[Array, ""],
    t1: Float[Array, ""],
) -> PyTree[Array]:
    """The state at the end of a window, from the state at its start."""
    f = window_field(field, lam, t0, t1)
    return run_steps(solver, f, field.geometry, y, substeps, lam.dtype)


def run(
    field: WindowField,
    solver: AbstractSolver,
    substeps: int,
    y0: PyTree[Array],
    lams: Float[Array, "windows primitives"],
    knots: Float[Array, " knots"],
    save: bool,
    wrap: Callable = lambda body: body,
    *,
    by_index: bool = False,
) -> tuple[PyTree[Array], PyTree[Array] | None]:
    """All windows, one after another: the last state, and all if `save`.

    `by_index` reads the log-signatures in place. Under `vmap` a scan over them would
    copy them first, to bring windows in front of the batch; but reverse mode needs it.
    """

    @wrap
    def body(y, row):
        lam, t0, t1 = row
        y = step_window(field, solver, substeps, y, lam, t0, t1)
        return y, y if save else None

    if by_index:
        indexed = lambda y, k: body(y, window_row(lams, knots, k))  # noqa: E731
        return scan(indexed, y0, jnp.arange(lams.shape[0]))
    return scan(body, y0, (lams, knots[:-1], knots[1:]))


def window_row(lams: Array, knots: Array, k: Array) -> tuple[Array, Array, Array]:
    """Log-signature, start and end of window `k`."""
    take = lambda x, i: lax.dynamic_index_in_dim(x, i, keepdims=False)  # noqa: E731
    return take(lams, k), take(knots, k), take(knots, k + 1)

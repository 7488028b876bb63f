"""One window of the log-ODE: the flow of its window field over unit time."""

import dataclasses
import functools as ft
from collections.abc import Callable

import jax
import jax.lax as lax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float, PyTree

from .._xla import scan
from ..geometry import AbstractGeometry
from ..lifts import exact_flow, WindowField
from ..signatures import RoughPath
from ._base import AbstractSolver


class window_field:
    """The field `f(s, y)` of one window, `s` running over `[0, 1]`.

    Times keep their own dtype, which may have more digits than the state.
    """

    def __init__(self, field: WindowField, lam: Float[Array, " primitives"], t0, t1):
        self.field, self.lam = field, lam
        self.t0, self.t1 = jnp.asarray(t0), jnp.asarray(t1)
        self.coefficients = field.coefficients(lam)

    def __call__(self, s, y: PyTree[Array]) -> Float[Array, " dim"]:
        t = None
        if self.field.time_dependent:
            t = self.t0 + s.astype(self.t0.dtype) * (self.t1 - self.t0)
        return self.field.evaluate(t, y, self.coefficients)

    def flow(self, y: PyTree[Array], h: Float[Array, ""]) -> PyTree[Array]:
        """The state after the share `h` of the window, where it is known exactly."""
        return exact_flow(self.field, y, self.lam, h)


def step_window(
    field: WindowField,
    solver: AbstractSolver,
    substeps: int,
    y: PyTree[Array],
    lam: Float[Array, " primitives"],
    t0: Float[Array, ""],
    t1: Float[Array, ""],
) -> PyTree[Array]:
    """The state at the end of a window, from the state at its start, by `substeps`
    steps of a scheme over unit time."""
    f = window_field(field, lam, t0, t1)
    h = jnp.asarray(1 / substeps, lam.dtype)
    if substeps == 1:
        return solver.step(f, field.geometry, jnp.zeros_like(h), y, h)

    def body(z, s):
        return solver.step(f, field.geometry, s, z, h), None

    return scan(body, y, jnp.arange(substeps, dtype=lam.dtype) * h)[0]


def run(
    field: WindowField,
    solver: AbstractSolver,
    substeps: int,
    y0: PyTree[Array],
    lams: Float[Array, "windows primitives"],
    knots: Float[Array, " knots"],
    save: bool | Callable,
    wrap: Callable = lambda body: body,
    *,
    inside: tuple = (),
    by_index: bool = False,
) -> tuple[PyTree[Array], PyTree[Array] | None]:
    """All windows, one after another: the last state, and all if `save`.

    `save(y, z, row)` says what to keep instead: from the states at the ends of a window
    and its row, `(lam, t0, t1)` and its part of the arrays `inside`.

    `by_index` reads the log-signatures in place. Under `vmap` a scan over them would
    copy them first, to bring windows in front of the batch; but reverse mode needs it.
    """

    @wrap
    def body(y, row):
        z = step_window(field, solver, substeps, y, *row[:3])
        if callable(save):
            return z, save(y, z, row)
        return z, z if save else None

    if by_index:
        indexed = lambda y, k: body(y, window_row(lams, knots, k))  # noqa: E731
        return scan(indexed, y0, jnp.arange(lams.shape[0]))
    return scan(body, y0, (lams, knots[:-1], knots[1:], *inside))


def state_inside(
    field: WindowField,
    solver: AbstractSolver,
    substeps: int,
    control: RoughPath,
    k: int | Array,
    y: PyTree[Array],
    z: PyTree[Array],
    t: Float[Array, ""],
    interpolation: str,
) -> PyTree[Array]:
    """The state at the time `t` inside window `k`, from the states `y` and `z` at its
    ends. `"log-ode"` solves the window again with the log-signature up to `t`;
    `"geodesic"` and `"linear"` join the ends."""
    t0, t1 = control.knots[k], control.knots[k + 1]
    dtype = jtu.tree_leaves(y)[0].dtype
    if interpolation == "log-ode":
        lam = control.log_signature(t0, t, window=k).astype(dtype)
        return step_window(field, solver, substeps, y, lam, t0, t)
    return join_states(field.geometry, interpolation, (t0, y), (t1, z), t)


def join_states(
    geometry: AbstractGeometry,
    interpolation: str,
    start: tuple[Array, PyTree[Array]],
    stop: tuple[Array, PyTree[Array]],
    t: Float[Array, ""],
) -> PyTree[Array]:
    """The state at the time `t` on the `"geodesic"` or `"linear"` line between two
    states, each given with its time."""
    (t0, y), (t1, z) = start, stop
    # Padding repeats the last knot; its windows have no length.
    theta = (t - t0) / jnp.where(t1 == t0, jnp.ones_like(t0), t1 - t0)
    theta = theta.astype(jtu.tree_leaves(y)[0].dtype)
    if interpolation == "geodesic":
        return geometry.exp(y, theta * geometry.log(y, z))
    return jtu.tree_map(lambda a, b: a + theta * (b - a), y, z)


def scan_windows(
    field: WindowField,
    solver: AbstractSolver,
    substeps: int,
    y0: PyTree[Array],
    control: RoughPath,
    read: Callable,
) -> PyTree[Array]:
    """`read(y, z, window)` of each window, from the states at its ends and the window,
    a control by itself: the scan of models. All checks are the caller's.

    Windows are recomputed in the backward pass: their intermediate values would fill
    memory, and writing them costs several times the arithmetic.
    """
    lams = control.log_signatures.astype(jtu.tree_leaves(y0)[0].dtype)
    return run(
        field,
        solver,
        substeps,
        y0,
        lams,
        control.knots,
        lambda y, z, row: read(y, z, _one_window(control, row)),
        ft.partial(jax.checkpoint, prevent_cse=False),
        inside=(control.times, control.values, control.brackets),
    )[1]


def _one_window(control: RoughPath, row: tuple) -> RoughPath:
    """The control of one window, from its row."""
    lam, t0, t1, *inside = row
    times, values, brackets = jtu.tree_map(lambda leaf: leaf[None], inside)
    return dataclasses.replace(
        control,
        knots=jnp.stack([t0, t1]),
        log_signatures=lam[None],
        times=times,
        values=values,
        brackets=brackets,
    )


def window_row(lams: Array, knots: Array, k: Array) -> tuple[Array, Array, Array]:
    """Log-signature, start and end of window `k`."""
    take = lambda x, i: lax.dynamic_index_in_dim(x, i, keepdims=False)  # noqa: E731
    return take(lams, k), take(knots, k), take(knots, k + 1)

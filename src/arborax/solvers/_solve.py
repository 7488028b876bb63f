"""The log-ODE solve: one scan over the windows of a control."""

import functools as ft
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, PyTree, Real

from .._values import is_concrete, refuse, shown
from .._xla import sharded, vary_as
from ..geometry import AbstractGeometry
from ..lifts import check_lift, lift, WindowField
from ._adjoint import hoist, reversible_run, supports
from ._base import AbstractSolver
from ._checks import (
    as_knots,
    as_state,
    as_times,
    check_calculus,
    check_control,
    check_count,
    check_solver,
)
from ._low_storage import CFEES25, recomputes_stages
from ._solution import RESULTS, Solution, throw_failure
from ._window import run, step_window


_ADJOINTS = ("checkpointed", "reversible", "direct")
_INTERPOLATIONS = ("log-ode", "geodesic", "linear")
_SAVES = ("knots", "final")


def build_field(
    fields: Callable | Sequence[Callable] | WindowField,
    control,
    geometry: AbstractGeometry,
    y0: PyTree[Array],
) -> WindowField:
    """Lift the fields for a control, refusing whatever can be seen to be wrong."""
    check_calculus(control.calculus, geometry)
    if isinstance(fields, WindowField):
        field = fields
        if field.alg != control.alg or field.geometry != geometry:
            raise ValueError(
                f"the window field was lifted for {field.alg} on {field.geometry}, the "
                f"control is in {control.alg} and the geometry {geometry}."
            )
    else:
        field = lift(fields, control.alg, geometry)
    check_lift(field, y0, as_knots(control)[0])
    return field


def _check_options(adjoint, interpolation, save, ts, solver, control, geometry):
    for name, value, allowed in (
        ("adjoint", adjoint, _ADJOINTS),
        ("interpolation", interpolation, _INTERPOLATIONS),
        ("save", save, _SAVES),
    ):
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"`{name}` must be one of {allowed}, got {shown(value)}.")
    if adjoint == "reversible":
        supports(solver)
    if ts is None:
        return
    if save == "final":
        raise ValueError("give either `ts` or `save='final'`, not both.")
    if interpolation == "linear" and not geometry.flat:
        raise ValueError(
            f"linear interpolation leaves {geometry}. Use `interpolation='log-ode'` or "
            "'geodesic'."
        )
    if interpolation == "log-ode" and not hasattr(control, "log_signature"):
        raise ValueError(
            "this control has no log-signatures inside its windows. Build it with "
            "`arborax.rough_path`, or use `interpolation='geodesic'`."
        )


def _finite(tree: PyTree[Array]) -> Array:
    flags = [jnp.all(jnp.isfinite(leaf)) for leaf in jtu.tree_leaves(tree)]
    return jnp.all(jnp.stack(flags))


def judge(geometry: AbstractGeometry, y0, last, saved) -> RESULTS:
    """The outcome of a solve from its first, last and saved states."""
    finite = _finite(last) & _finite(saved)
    okay = RESULTS.successful
    stayed = RESULTS.where(geometry.belongs(last), okay, RESULTS.left_manifold)
    result = RESULTS.where(finite, stayed, RESULTS.nonfinite)
    return RESULTS.where(geometry.belongs(y0), result, RESULTS.off_manifold)


def _interpolate(
    field, solver, substeps, control, knots, states, ts, interpolation
) -> PyTree[Array]:
    """States at arbitrary times, from the state at the start of the window."""
    last = knots.shape[0] - 2
    window = jnp.clip(jnp.searchsorted(knots, ts, side="right") - 1, 0, last)
    geometry = field.geometry
    dtype = jtu.tree_leaves(states)[0].dtype

    def state(k):
        return jtu.tree_map(lambda leaf: leaf[k], states)

    def one(k, t):
        y, t0, t1 = state(k), knots[k], knots[k + 1]
        if interpolation == "log-ode":
            lam = control.log_signature(t0, t, window=k).astype(dtype)
            return step_window(field, solver, substeps, y, lam, t0, t)
        # Padding repeats the last knot; its windows have no length.
        empty = t1 == t0
        theta = (t - t0) / jnp.where(empty, jnp.ones_like(t0), t1 - t0)
        theta, z = theta.astype(dtype), state(k + 1)
        if interpolation == "geodesic":
            return geometry.exp(y, theta * geometry.log(y, z))
        return jtu.tree_map(lambda a, b: a + theta * (b - a), y, z)

    return jax.vmap(one)(window, ts)


def solve(
    fields: Callable | Sequence[Callable] | WindowField,
    y0: PyTree[Array],
    control,
    *,
    geometry: AbstractGeometry | None = None,
    solver: AbstractSolver = CFEES25(),
    substeps: int = 1,
    ts: Real[Array, " times"] | None = None,
    interpolation: str = "log-ode",
    save: str = "knots",
    adjoint: str = "checkpointed",
    throw: bool = True,
) -> Solution:
    r"""Solve $dY = \sum_i V_i(Y)\, dX^i$ by the log-ODE method on a manifold.

    In each window the state follows the flow, over unit time, of the window field
    $L = \sum_p \lambda^p F(p)$ of the log-signature $\lambda$ of the driver
    ([`arborax.lift`][]). One `lax.scan` runs over the windows. Batch with `jax.vmap`.

    A control made with brackets gives the Itô solution with respect to the connection
    of the geometry; one made without gives the Stratonovich solution, in the tree
    algebras as well (`control.calculus` says which).

    **Arguments:**

    - `fields`: `fields(y)` or `fields(t, y)` returning the `d` driving fields in frame
        coordinates, shape `(d, geometry.dim)`, or a list of `d` callables; see
        [`arborax.lift`][]. `t` has the dtype of the knots, whatever that of the state.
    - `y0`: the initial state, a point of the geometry.
    - `control`: from [`arborax.rough_path`][].
    - `geometry`: where the state lives; by default Euclidean, from the shape of `y0`.
    - `solver`: the scheme inside a window.
    - `substeps`: number of steps of the scheme in each window.
    - `ts`: times at which to return states, in any order, within the knots, whose dtype
        they take. By default states are returned at the knots.
    - `interpolation`: how states at `ts` are found from that at the start of their
        window: `"log-ode"` solves the window again with the log-signature up to the
        time asked for, so that the output is as rough as it should be; `"geodesic"` is
        cheaper, and smooth between knots; `"linear"` is for flat spaces.
    - `save`: `"knots"` or `"final"` (the last state only).
    - `adjoint`: `"checkpointed"` stores one state per window (CF-EES schemes: a state
        and a register per stage) and recomputes the rest; `"reversible"` (CF-EES
        schemes) stores the last state only and steps back, with gradients that agree up
        to the round-trip defect; `"direct"` stores everything, except that CF-EES
        schemes always recompute their stages.
    - `throw`: whether failure is an error. If it is, a failed solve raises a
        `ValueError`; in compiled code all its states are NaN instead, and `result` says
        why (within [`arborax.debug_checks`][] compiled code raises). With
        `throw=False` states are left as they are: look at `result`.

    **Returns:**

    A [`arborax.Solution`][]. Under `ts=None` the first saved state is `y0`.
    """
    check_control(control)
    y0, geometry = as_state(y0, geometry)
    check_solver(solver, geometry, control.calculus)
    check_count("substeps", substeps)
    _check_options(adjoint, interpolation, save, ts, solver, control, geometry)
    field = build_field(fields, control, geometry, y0)
    dtype = jtu.tree_leaves(y0)[0].dtype
    lams = jnp.asarray(control.log_signatures).astype(dtype)
    knots = as_knots(control)
    keep = save == "knots"
    if adjoint == "reversible":
        if sharded():  # what is hoisted is traced for a state that varies as it will
            value = jax.eval_shape(lambda y: field.fields(knots[0], y), y0)
            y0 = vary_as(y0, lams, value)
        field = hoist(field, knots[0], y0)
        last, saved = reversible_run(
            (field, y0, lams, knots), solver=solver, substeps=substeps, save=keep
        )
    else:
        wrap = lambda body: body  # noqa: E731
        if adjoint == "checkpointed" and not recomputes_stages(solver):
            wrap = ft.partial(jax.checkpoint, prevent_cse=False)
        last, saved = run(field, solver, substeps, y0, lams, knots, keep, wrap)

    if keep:
        first_and_rest = lambda a, b: jnp.concatenate([a[None], b])  # noqa: E731
        out_ts, ys = knots, jtu.tree_map(first_and_rest, y0, saved)
    else:
        out_ts, ys = knots[-1:], jtu.tree_map(lambda a: a[None], last)
    outside = jnp.zeros((), bool)
    if ts is not None:
        out_ts, outside = as_times(ts, knots)
        if is_concrete(outside):
            refuse(out_ts, outside, str(RESULTS.times_outside))
        # There is no state at these times, whether or not failure is an error.
        times = jnp.where(outside, jnp.nan, out_ts)
        ys = _interpolate(
            field, solver, substeps, control, knots, ys, times, interpolation
        )
    result = judge(geometry, y0, last, ys)
    result = RESULTS.where(jnp.any(outside), RESULTS.times_outside, result)
    if throw:
        ys = throw_failure(result, ys)
    windows = lams.shape[0]
    stats = {"num_windows": windows, "num_steps": windows * substeps}
    return Solution(out_ts, ys, result, stats)

"""The log-ODE solve: one scan over the windows of a control."""

import functools as ft
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, PyTree, Real

from ..geometry import AbstractGeometry, Euclidean
from ..lifts import check_lift, lift, WindowField
from ._adjoint import hoist, reversible_run, supports
from ._base import AbstractSolver
from ._low_storage import CFEES25, recomputes_stages
from ._solution import RESULTS, Solution
from ._window import run, step_window


_ADJOINTS = ("checkpointed", "reversible", "direct")
_INTERPOLATIONS = ("log-ode", "geodesic", "linear")
_SAVES = ("knots", "final")


def build_field(
    fields: Callable | Sequence[Callable] | WindowField,
    control,
    geometry: AbstractGeometry | None,
    y0: PyTree[Array],
) -> WindowField:
    """Lift the fields for a control, refusing whatever can be seen to be wrong."""
    for name in ("alg", "knots", "log_signatures", "calculus"):
        if not hasattr(control, name):
            raise TypeError(
                "`control` must be a log-signature control, as made by "
                f"`arborax.rough_path`; got {type(control)}."
            )
    if geometry is None:
        if not isinstance(y0, jax.Array) or y0.ndim != 1:
            raise ValueError(
                "without a `geometry` the state is a Euclidean vector of shape (n,); "
                f"got {jtu.tree_map(jnp.shape, y0)}. Give the geometry."
            )
        geometry = Euclidean(y0.shape[0])
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
    check_lift(field, y0)
    return field


def check_calculus(calculus: str, geometry: AbstractGeometry) -> None:
    """Refuse an Itô control where the geometry gives it no meaning."""
    if calculus not in ("ito", "stratonovich"):
        raise ValueError(
            f"a control is 'ito' or 'stratonovich', got calculus={calculus!r}."
        )
    if calculus == "ito" and getattr(geometry, "connection", None) is None:
        raise ValueError(
            f"the control carries Itô brackets, but {geometry} has no connection to "
            "give an Itô equation its meaning. Choose a connection, or build the "
            "control without brackets (Stratonovich)."
        )


def _check_options(solver, substeps, adjoint, interpolation, save, ts, geometry):
    if not isinstance(solver, AbstractSolver):
        raise TypeError(
            f"`solver` must be an arborax solver, got {solver!r}. Wrap a Diffrax "
            "Runge-Kutta solver as `EuclideanRK(solver)` or `RKMK(solver)`."
        )
    solver.check(geometry)
    if isinstance(substeps, bool) or not isinstance(substeps, int) or substeps < 1:
        raise ValueError(f"`substeps` must be a positive integer, got {substeps!r}.")
    for name, value, allowed in (
        ("adjoint", adjoint, _ADJOINTS),
        ("interpolation", interpolation, _INTERPOLATIONS),
        ("save", save, _SAVES),
    ):
        if value not in allowed:
            raise ValueError(f"`{name}` must be one of {allowed}, got {value!r}.")
    if adjoint == "reversible":
        supports(solver)
    if ts is not None and save == "final":
        raise ValueError("give either `ts` or `save='final'`, not both.")
    if ts is not None and interpolation == "linear" and not geometry.flat:
        raise ValueError(
            f"linear interpolation leaves {geometry}. Use `interpolation='log-ode'` or "
            "'geodesic'."
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

    def state(k):
        return jtu.tree_map(lambda leaf: leaf[k], states)

    def one(k, t):
        y, t0, t1 = state(k), knots[k], knots[k + 1]
        if interpolation == "log-ode":
            lam = control.log_signature(t0, t, window=k).astype(knots.dtype)
            return step_window(field, solver, substeps, y, lam, t0, t)
        z, theta = state(k + 1), (t - t0) / (t1 - t0)
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
        [`arborax.lift`][].
    - `y0`: the initial state, a point of the geometry.
    - `control`: from [`arborax.rough_path`][].
    - `geometry`: where the state lives; by default Euclidean, from the shape of `y0`.
    - `solver`: the scheme inside a window.
    - `substeps`: number of steps of the scheme in each window.
    - `ts`: times at which to return states, in any order, within the knots. By default
        states are returned at the knots.
    - `interpolation`: how states at `ts` are found from that at the start of their
        window: `"log-ode"` solves the window anew with the log-signature up to the time
        asked for, so that the output is as rough as it should be; `"geodesic"` is
        cheaper, and smooth between knots; `"linear"` is for flat spaces.
    - `save`: `"knots"` or `"final"` (the last state only).
    - `adjoint`: `"checkpointed"` stores one state a window (CF-EES schemes: a state and
        a register a stage) and recomputes the rest; `"reversible"` (CF-EES schemes)
        stores the last state only and steps back, with gradients that agree up to the
        round-trip defect; `"direct"` stores everything, except that CF-EES schemes
        always recompute their stages.
    - `throw`: whether to raise on failure. Otherwise look at `result`.

    **Returns:**

    A [`arborax.Solution`][]. Under `ts=None` the first saved state is `y0`.
    """
    y0 = jtu.tree_map(jnp.asarray, y0)
    for leaf in jtu.tree_leaves(y0):
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            raise TypeError(f"`y0` must be floating point, got {leaf.dtype}.")
    field = build_field(fields, control, geometry, y0)
    geometry = field.geometry
    _check_options(solver, substeps, adjoint, interpolation, save, ts, geometry)
    dtype = jtu.tree_leaves(y0)[0].dtype
    lams = jnp.asarray(control.log_signatures).astype(dtype)
    knots = jnp.asarray(control.knots).astype(dtype)
    if lams.ndim != 2:
        raise ValueError(
            f"`solve` takes one control, with log-signatures (windows, primitives); "
            f"got {lams.shape}. Use `jax.vmap` over a batch of controls."
        )
    keep = save == "knots"
    if adjoint == "reversible":
        field = hoist(field, knots[0], y0)
        last, saved = reversible_run(
            (field, y0, lams), solver=solver, substeps=substeps, knots=knots, save=keep
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
    if ts is not None:
        out_ts = jnp.asarray(ts).astype(dtype)
        out_ts = _check_times(out_ts, knots)
        ys = _interpolate(
            field, solver, substeps, control, knots, ys, out_ts, interpolation
        )
    result = judge(geometry, y0, last, ys)
    if throw:
        ys = result.error_if(ys, result != RESULTS.successful)
    windows = lams.shape[0]
    stats = {"num_windows": windows, "num_steps": windows * substeps}
    return Solution(out_ts, ys, result, stats)


def _check_times(ts, knots):
    if ts.ndim != 1:
        raise ValueError(f"`ts` must have shape (times,), got {ts.shape}.")
    outside = (ts < knots[0]) | (ts > knots[-1])
    return eqx.error_if(
        ts, jnp.any(outside | ~jnp.isfinite(ts)), "`ts` must lie within the knots."
    )

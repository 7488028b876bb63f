"""The log-ODE solve: one scan over the windows of a control."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import diffrax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, PyTree

from .._inputs import as_choice, as_count
from .._values import is_concrete
from ..geometry import AbstractGeometry
from ..lifts import check_lift, lift, LinearFields, WindowField
from ._adjoint import AbstractAdjoint, check_adjoint, CheckpointedAdjoint
from ._base import AbstractSolver
from ._checks import (
    as_knots,
    as_saved,
    as_state,
    as_times,
    check_calculus,
    check_control,
    Saved,
)
from ._flows import Magnus
from ._low_storage import CFEES25
from ._results import RESULTS, throw_failure
from ._runge_kutta import as_solver
from ._solution import DenseStates, Solution


def build_field(
    fields: Callable | Sequence[Callable] | WindowField,
    control,
    geometry: AbstractGeometry,
    y0: PyTree[Array],
    args: PyTree = None,
) -> WindowField:
    """The fields lifted for a control, after all checks of shapes and calculus."""
    check_calculus(control.calculus, geometry)
    if isinstance(fields, WindowField):
        field = fields
        if field.alg != control.alg or field.geometry != geometry:
            raise ValueError(
                f"the window field was lifted for {field.alg} on {field.geometry}, the "
                f"control is in {control.alg} and the geometry {geometry}."
            )
        if args is not None:
            field = dataclasses.replace(field, fields=field.fields.bind(args))
    else:
        field = lift(fields, control.alg, geometry, args=args)
    check_lift(field, y0, as_knots(control)[0])
    return field


def _check_interpolation(
    kind: str, saveat: diffrax.SaveAt | None, control, geometry: AbstractGeometry
) -> Saved:
    """Which states to save; refused if states between knots cannot be found."""
    as_choice("interpolation", kind, ("log-ode", "geodesic", "linear"))
    if kind == "linear" and not geometry.flat:
        raise ValueError(
            f"linear interpolation leaves {geometry}. Use `interpolation='log-ode'` or "
            "'geodesic'."
        )
    possible = kind != "log-ode" or hasattr(control, "log_signature")
    if saveat is None:
        return Saved(t0=True, t1=False, every=1, ts=None, dense=possible)
    saved = as_saved(saveat)
    if not possible and (saved.dense or saved.ts is not None):
        raise ValueError(
            "this control has no log-signatures inside its windows. Build it with "
            "`arborax.rough_path`, or use `interpolation='geodesic'`."
        )
    return saved


def _is_linear(fields: Any) -> bool:
    """Whether the window flow of the fields is known exactly."""
    if isinstance(fields, WindowField):
        fields = fields.fields.fields
    return isinstance(fields, LinearFields)


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


def _dense_states(
    kind: str, knots, states, field: WindowField, solver, substeps: int, control
) -> DenseStates:
    """The data from which `evaluate` finds states between knots."""
    if kind != "log-ode":
        return DenseStates(knots, field.geometry, kind)
    if not is_concrete(states):
        # A plain function must not carry traced arrays out of what is compiled.
        start = jtu.tree_map(lambda leaf: leaf[0], states)
        field = dataclasses.replace(field, fields=field.fields.hoist(knots[0], start))
    problem = (field, solver, substeps, control)
    return DenseStates(knots, field.geometry, kind, problem)


def _collect(
    saved: Saved, knots, states, y0, last, inner: tuple[Array, PyTree[Array]] | None
) -> tuple[Array, PyTree[Array]]:
    """The times and states to save: of the `states` at knots, of both ends, and those
    `inner` ones found between knots."""
    if saved.t0 and saved.every == 1:
        return knots, states
    one = lambda tree: jtu.tree_map(lambda leaf: leaf[None], tree)  # noqa: E731
    parts = [(knots[:1], one(y0))] if saved.t0 else []
    parts += [] if inner is None else [inner]
    end = saved.t1
    if saved.every:
        rows = slice(saved.every, None, saved.every)
        parts.append((knots[rows], jtu.tree_map(lambda leaf: leaf[rows], states)))
        end = end and (knots.shape[0] - 1) % saved.every > 0
    if end:
        parts.append((knots[-1:], one(last)))
    ts, ys = zip(*parts)
    return jnp.concatenate(ts), jtu.tree_map(lambda *leaf: jnp.concatenate(leaf), *ys)


def solve(
    fields: Callable | Sequence[Callable] | WindowField,
    y0: PyTree[Array],
    control,
    *,
    geometry: AbstractGeometry | None = None,
    solver: AbstractSolver | diffrax.AbstractSolver | None = None,
    substeps: int = 1,
    args: PyTree = None,
    saveat: diffrax.SaveAt | None = None,
    interpolation: str = "log-ode",
    adjoint: AbstractAdjoint = CheckpointedAdjoint(),
    throw: bool = True,
) -> Solution:
    r"""Solve $dY = \sum_i V_i(Y)\, dX^i$ by the log-ODE method, in flat space or on a
    manifold.

    In each window the state follows, for unit time, the flow of the window field
    $L = \sum_p \lambda^p F(p)$ of the log-signature $\lambda$ of the driver
    ([`arborax.lift`][]). Cost: one scan over the windows; each solver step evaluates
    the window field once per stage of the scheme. Batch with `jax.vmap`.

    A control with brackets gives the Itô solution with respect to the connection of
    the geometry. A control without brackets gives the Stratonovich solution, in the
    tree algebras too. `control.calculus` says which one it is.

    !!! example

        ```python
        fields = lambda t, y, args: args["rate"] * jnp.stack([y, jnp.sin(y)])
        sol = abx.solve(fields, y0, control, args={"rate": 0.3})
        sol.ys                           # at the knots
        sol.evaluate(0.123)              # and between them
        end = abx.solve(fields, y0, control, args={"rate": 0.3},
                        saveat=diffrax.SaveAt(t1=True)).ys[-1]
        ```

    **Arguments:**

    - `fields`: `fields(y)` or `fields(t, y, args)` returning the `d` driving fields in
        frame coordinates, shape `(d, geometry.dim)`, or a list of `d` callables; see
        [`arborax.lift`][]. `t` has the dtype of the knots.
    - `y0`: the initial state, a point of the geometry.
    - `control`: from [`arborax.rough_path`][].
    - `geometry`: where the state lives; by default Euclidean, from the shape of `y0`.
    - `solver`: the scheme inside a window; by default `CFEES25`, or for
        [`arborax.LinearFields`][] the exact flow, `Magnus`. In flat space an explicit
        Diffrax Runge-Kutta solver such as `diffrax.Tsit5()` works directly; on other
        geometries wrap it in [`arborax.RKMK`][].
    - `substeps`: number of solver steps per window.
    - `args`: passed to `fields(t, y, args)`; any PyTree. Gradients with respect to its
        arrays work with either adjoint.
    - `saveat`: a `diffrax.SaveAt`, where "steps" means windows. `SaveAt(t1=True)` saves
        the last state only, `SaveAt(ts=times)` the states at given times within the
        knots, in any order, `SaveAt(t0=True, steps=True)` those at all knots. By
        default states at all knots are saved, together with the control and the fields
        that `sol.evaluate` needs (in a batch, one copy per element). Other choices keep
        these only with `dense=True`.
    - `interpolation`: how to find states between knots. `"log-ode"` solves the window
        again with the log-signature up to that time; it is as rough as the driver.
        `"geodesic"` is cheaper, and smooth between knots. `"linear"` is for flat
        spaces.
    - `adjoint`: [`arborax.CheckpointedAdjoint`][] or [`arborax.ReversibleAdjoint`][].
    - `throw`: if true, a failed solve raises a `ValueError`; in compiled code all its
        states are NaN, and `result` says why (within [`arborax.debug_checks`][]
        compiled code raises too). If false, states are returned as they are: check
        `result`.

    **Returns:**

    A [`arborax.Solution`][]. By default its first state is `y0`.
    """
    check_control(control)
    y0, geometry = as_state(y0, geometry)
    if solver is None:
        solver = Magnus() if _is_linear(fields) else CFEES25()
    solver = as_solver(solver, geometry, control.calculus)
    substeps = as_count("substeps", substeps)
    check_adjoint(adjoint, solver)
    saved = _check_interpolation(interpolation, saveat, control, geometry)
    field = build_field(fields, control, geometry, y0, args)
    dtype = jtu.tree_leaves(y0)[0].dtype
    lams = jnp.asarray(control.log_signatures).astype(dtype)
    knots = as_knots(control)
    keep = saved.dense or saved.ts is not None or saved.every > 0
    last, rest = adjoint.run(field, solver, substeps, y0, lams, knots, keep)

    states = dense = inner = None
    outside = jnp.zeros((), bool)
    if keep:
        first_and_rest = lambda a, b: jnp.concatenate([a[None], b])  # noqa: E731
        states = jtu.tree_map(first_and_rest, y0, rest)
    if saved.dense or saved.ts is not None:
        dense = _dense_states(
            interpolation, knots, states, field, solver, substeps, control
        )
        if saved.ts is not None:
            times, outside = as_times(saved.ts, knots)
            inner = times, dense.evaluate(states, times)
    ts, ys = _collect(saved, knots, states, y0, last, inner)
    result = judge(geometry, y0, last, ys)
    result = RESULTS.where(jnp.any(outside), RESULTS.times_outside, result)
    if not saved.dense:
        dense = states = None
    elif ys is states:
        states = None
    if throw:
        ys, states = throw_failure(result, (ys, states))
    windows = lams.shape[0]
    stats = {"num_windows": windows, "num_steps": windows * substeps}
    return Solution(ts, ys, result, stats, dense, states)

"""Checks before a solve: controls, states, and what to save."""

from typing import Any, NamedTuple

import diffrax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, PyTree

from .._inputs import as_array, as_kind
from .._values import is_concrete, refuse, shown
from ..geometry import AbstractGeometry, Euclidean
from ._results import RESULTS


def check_geometry(geometry: Any) -> None:
    """Refuse what is not a geometry."""
    must = "be a geometry such as `SO(3)` or `Euclidean(2)`"
    as_kind("geometry", geometry, AbstractGeometry, must)


def as_state(
    y0: Any, geometry: AbstractGeometry | None
) -> tuple[PyTree[Array], AbstractGeometry]:
    """The initial state as arrays of one floating dtype, and its geometry; Euclidean
    if none is given."""
    if geometry is not None:
        check_geometry(geometry)
    nested = geometry is not None and not all(
        isinstance(n, int) for n in geometry.point_shape
    )
    if nested:
        y0 = jtu.tree_map(lambda leaf: as_array("y0", leaf), y0)
    else:
        y0 = as_array("y0", y0)
    dtypes = {leaf.dtype for leaf in jtu.tree_leaves(y0)}
    for dtype in dtypes:
        if not jnp.issubdtype(dtype, jnp.floating):
            raise TypeError(
                f"`y0` must be floating point, got {dtype}. Cast it first, for "
                "instance by `y0.astype(float)`."
            )
    if len(dtypes) > 1:
        names = ", ".join(sorted(str(dtype) for dtype in dtypes))
        raise TypeError(f"the arrays of `y0` must have one dtype, got {names}.")
    if geometry is None:
        if y0.ndim != 1:
            raise ValueError(
                "without a `geometry` the state is one vector of shape (n,), got "
                f"{y0.shape}. For a batch of states use `jax.vmap` over `y0`; for "
                "points of a manifold give its `geometry`; for a number write "
                "`jnp.array([y0])`."
            )
        geometry = Euclidean(y0.shape[0])
    geometry.check_shape(y0)
    return y0, geometry


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


def check_control(control: Any) -> None:
    """Refuse what is not one control, with its log-signatures and knots."""
    for name in ("alg", "knots", "log_signatures", "calculus"):
        if not hasattr(control, name):
            raise TypeError(
                "`control` must be made by `arborax.rough_path(ts, xs, alg)`, got "
                f"{shown(type(control).__name__)}."
            )
    lams, knots = jnp.shape(control.log_signatures), jnp.shape(control.knots)
    if len(lams) > 2 or len(knots) > 1:
        raise ValueError(
            "a solve takes one control, with log-signatures (windows, primitives); "
            f"got {lams}. Use `jax.vmap` over a batch of controls."
        )
    size = control.alg.primitive_size
    if len(lams) != 2 or lams[0] < 1 or lams[1] != size or knots != (lams[0] + 1,):
        raise ValueError(
            f"a control in {control.alg} has log-signatures (windows, {size}) and "
            f"knots (windows + 1,), with one window at least; got {lams} and {knots}."
        )
    if is_concrete(control.knots):
        values = np.asarray(control.knots)
        if not (np.all(np.isfinite(values)) and np.all(np.diff(values) >= 0)):
            raise ValueError(
                "the knots of a control must be finite and in order; sort the samples "
                "by time before building it."
            )


def as_knots(control: Any) -> Array:
    """The knots in their own dtype, floating point."""
    knots = jnp.asarray(control.knots)
    if jnp.issubdtype(knots.dtype, jnp.floating):
        return knots
    return knots.astype(jnp.result_type(float))


def as_times(ts: Any, knots: Array) -> tuple[Array, Array]:
    """Times in the dtype of the knots, and which of them lie outside; a `ValueError` if
    any is known to."""
    ts = as_array("ts", ts)
    if not jnp.issubdtype(ts.dtype, jnp.number) or jnp.iscomplexobj(ts):
        raise TypeError(f"times must be real numbers, got dtype {ts.dtype}.")
    ts = ts.astype(knots.dtype)
    # A comparison with NaN is false.
    outside = ~((ts >= knots[0]) & (ts <= knots[-1]))
    if is_concrete(outside):
        refuse(ts, outside, str(RESULTS.times_outside))
    return ts, outside


class Saved(NamedTuple):
    """Which states a solve saves: the start, the end, those at every `every`-th knot,
    those at other times, and the data of `Solution.evaluate`."""

    t0: bool
    t1: bool
    every: int
    ts: Any
    dense: bool


_UNKNOWN = ("solver_state", "controller_state", "made_jump")


def as_saved(saveat: Any) -> Saved:
    """Read a `diffrax.SaveAt`, refusing what a solve does not have."""
    must = "be a `diffrax.SaveAt`, for instance `SaveAt(t1=True)` or `SaveAt(ts=times)`"
    as_kind("saveat", saveat, diffrax.SaveAt, must)
    for name in _UNKNOWN:
        if getattr(saveat, name, False):
            raise ValueError(f"a solve has nothing to save for `SaveAt({name}=True)`.")
    chosen = saveat.subs
    if chosen is None:
        if not saveat.dense:
            raise ValueError("`saveat` is empty; say what to save.")
        return Saved(True, False, 1, None, True)
    plain = diffrax.SubSaveAt(t1=True).fn
    if not isinstance(chosen, diffrax.SubSaveAt) or chosen.fn is not plain:
        raise ValueError(
            "`SaveAt(subs=..)` and `SaveAt(fn=..)` are not supported: save the states "
            "and apply functions to `sol.ys`."
        )
    every = int(chosen.steps)
    if every < 0:
        raise ValueError(f"`SaveAt(steps=..)` must not be negative, got {every}.")
    if chosen.ts is not None and every:
        raise ValueError(
            "give `SaveAt(ts=..)` or `SaveAt(steps=..)`, not both; with `dense=True` "
            "states at other times come from `sol.evaluate(t)`."
        )
    if chosen.ts is not None and jnp.ndim(chosen.ts) != 1:
        raise ValueError(
            f"`SaveAt(ts=..)` takes times of shape (times,), got {chosen.ts.shape}."
        )
    return Saved(chosen.t0, chosen.t1, every, chosen.ts, saveat.dense)

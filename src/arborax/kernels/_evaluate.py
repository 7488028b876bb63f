"""Dispatch of one block of pairs to the recursion that fits."""

import functools as ft

import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, PyTree

from .._xla import in_turn, inner
from . import _recursions
from ._bracket import bracket_kernel
from ._prepare import Kind, Side
from ._series import series_kernel
from ._static import AbstractStaticKernel, LinearKernel
from ._sweep import Ends, node_sweep


def _linear_outer(x: Array, y: Array) -> Array:
    # Channels before batch on the right: both this product and its transposes then
    # run without a transposed copy.
    return jnp.einsum("nid,ndj->nij", x, y)


def _static(kernel: AbstractStaticKernel, outer: bool, x: Ends, y: Ends) -> Array:
    """Second difference of a static kernel over cells given by their end points."""
    value = kernel.gram if outer else kernel
    (x0, x1), (y0, y1) = jtu.tree_map(lambda p: jnp.swapaxes(p, -1, -2), (x, y))

    def difference(y: Array) -> Array:
        return value(x1, y) - value(x0, y)

    if outer:
        # Stored, or they would be cut out of the path once per pair.
        ends = in_turn(difference, jnp.stack([y0, y1]))
        return ends[1] - ends[0]
    return difference(y1) - difference(y0)


def _cells(points: Array, linear: bool) -> PyTree:
    """Cell data from points `(batch, times, d)`.

    Increments `(steps, batch, d)` for the linear kernel, otherwise both end points
    `(steps, d, batch)`: their distances are summed channel by channel.
    """
    if not linear:
        points = jnp.transpose(points, (1, 2, 0))
        return Ends(points[:-1], points[1:])
    return jnp.diff(jnp.swapaxes(points, 0, 1), axis=0)


def evaluate(
    kind: Kind,
    depth: int | None,
    static_kernel: AbstractStaticKernel,
    solver: str,
    outer: bool,
    x: Side,
    y: Side,
) -> Array:
    """Kernel values of `(b, times, d)` with `(b', times', d)`.

    Result `(b, b')` if `outer`, otherwise `(b,)` for paths paired one by one.
    """
    (px, ax), (py, ay) = x, y
    batch = (px.shape[0], py.shape[0]) if outer else (px.shape[0],)
    if px.shape[1] < 2 or py.shape[1] < 2:
        return jnp.ones(batch, px.dtype)
    if ax is not None or ay is not None:
        return bracket_kernel(kind, depth, outer, px, py, ax, ay)  # pyright: ignore
    if px.shape[1] > py.shape[1]:  # the diagonal runs along the shorter path
        swapped = evaluate(kind, depth, static_kernel, solver, outer, y, x)
        return jnp.swapaxes(swapped, 0, 1) if outer else swapped
    linear = isinstance(static_kernel, LinearKernel)
    xs, ys = (_cells(points, linear) for points in (px, py))
    if linear and outer:
        ys = jnp.swapaxes(ys, 1, 2)
    increment = ft.partial(_static, static_kernel, outer)
    if linear:
        increment = _linear_outer if outer else inner

    exact = depth is not None or solver == "series"
    if kind == "planar" or (kind == "geometric" and exact):
        like = jnp.ones((1, *batch), px.dtype)
        return series_kernel(increment, kind == "planar", depth, xs, ys, like)
    if depth is None:
        update, start = {
            "geometric": (_recursions.goursat, 1.0),
            "ito": (_recursions.ito, 1.0),
            "branched": (_recursions.branched, 0.0),
        }[kind]
        (out,) = node_sweep(update, increment, (start,), xs, ys)
        return jnp.exp(out) if kind == "branched" else out
    if kind == "ito":
        update = _recursions.ito_truncated
    else:
        update = _recursions.branched_truncated
    out = node_sweep(update, increment, (0.0,) * depth, xs, ys)
    if kind == "branched":
        out = _recursions.forests_from_trees(out)[1:]
    return 1 + sum(out[1:], out[0])

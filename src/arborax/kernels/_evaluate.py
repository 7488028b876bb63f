"""Dispatch of one block of pairs to the recursion that fits."""

import functools as ft

import equinox as eqx
import jax.lax as lax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, PyTree

from . import _recursions
from ._bracket import bracket_kernel
from ._prepare import Kind
from ._series import series_kernel
from ._static import AbstractStaticKernel, LinearKernel
from ._wavefront import sweep


_LISTED = 16  # up to this many channels, pairs are stored channel by channel


def _linear_outer(theta: PyTree, x: Array, y: Array) -> Array:
    # Channels before batch on the right: both this product and its transposes then
    # run without a transposed copy.
    return jnp.einsum("nid,ndj->nij", x, y)


def _linear_pairs(theta: PyTree, x: PyTree, y: PyTree) -> Array:
    if isinstance(x, list):
        total = x[0] * y[0]
        for a, b in zip(x[1:], y[1:], strict=True):
            total = total + a * b
        return total
    return jnp.sum(x * y, axis=-1)


def _static(
    frame: AbstractStaticKernel,
    outer: bool,
    factor: float,
    theta: PyTree,
    x: tuple[Array, Array],
    y: tuple[Array, Array],
) -> Array:
    """Second difference of a static kernel over cells given by their end points."""
    kernel = eqx.combine(theta, frame)
    value = kernel.gram if outer else kernel
    (x0, x1), (y0, y1) = jtu.tree_map(lambda p: jnp.swapaxes(p, -1, -2), (x, y))

    def difference(y: Array) -> Array:
        return value(x1, y) - value(x0, y)

    if outer:
        # A loop of two, because its inputs are stored. XLA would otherwise slice them
        # out of the path within the loop over pairs, which it then cannot vectorise.
        ends = lax.map(difference, jnp.stack([y0, y1]))
        c = ends[1] - ends[0]
    else:
        c = difference(y1) - difference(y0)
    return c if factor == 1 else c * factor


def _cells(points: Array, linear: bool, times: int, outer: bool) -> PyTree:
    """Cell data from points `(batch, times, d)`, refined.

    Increments `(steps, batch, d)` for the linear kernel, otherwise both end points
    `(steps, d, batch)`: their distances are summed channel by channel.
    """
    if not linear:
        points = jnp.transpose(points, (1, 2, 0))
        left, right = points[:-1], points[1:]
        if times > 1:
            left, right = (jnp.repeat(p, times, axis=0) for p in (left, right))
        return left, right
    points = jnp.swapaxes(points, 0, 1)
    dx = jnp.diff(points, axis=0)
    if times > 1:
        dx = jnp.repeat(dx, times, axis=0) / times
    if not outer and dx.shape[-1] <= _LISTED:
        return [dx[..., i] for i in range(dx.shape[-1])]
    return dx


def evaluate(
    kind: Kind,
    depth: int | None,
    static_kernel: AbstractStaticKernel,
    solver: str,
    refinement: tuple[int, int],
    outer: bool,
    x: Array,
    y: Array,
    ax: Array | None = None,
    ay: Array | None = None,
) -> Array:
    """Kernel values of `(b, times, d)` with `(b', times', d)`.

    Result `(b, b')` if `outer`, else `(b,)` for paths paired one by one.
    """
    batch = (x.shape[0], y.shape[0]) if outer else (x.shape[0],)
    if x.shape[1] < 2 or y.shape[1] < 2:
        return jnp.ones(batch, x.dtype)
    if ax is not None or ay is not None:
        return bracket_kernel(kind, depth, outer, x, y, ax, ay)  # pyright: ignore
    if x.shape[1] * 2 ** refinement[0] > y.shape[1] * 2 ** refinement[1]:
        # The diagonal runs along the shorter path.
        finer = (refinement[1], refinement[0])
        swapped = evaluate(kind, depth, static_kernel, solver, finer, outer, y, x)
        return jnp.swapaxes(swapped, 0, 1) if outer else swapped
    linear = isinstance(static_kernel, LinearKernel)
    theta, frame = eqx.partition(static_kernel, eqx.is_inexact_array)
    times = (2 ** refinement[0], 2 ** refinement[1])
    xs = _cells(x, linear, times[0], outer)
    ys = _cells(y, linear, times[1], outer)
    if linear and outer:
        ys = jnp.swapaxes(ys, 1, 2)
    if linear:
        increment, theta = (_linear_outer if outer else _linear_pairs), ()
    else:
        increment = ft.partial(_static, frame, outer, 1 / (times[0] * times[1]))

    exact = depth is not None or solver == "series"
    if kind == "planar" or (kind == "geometric" and exact):
        like, inner = jnp.ones((1, *batch), x.dtype), ft.partial(increment, theta)
        return series_kernel(inner, kind == "planar", depth, xs, ys, like)

    if depth is None:
        update, boundary = {
            "geometric": (_recursions.goursat, (1.0,)),
            "ito": (_recursions.ito, (1.0,)),
            "branched": (_recursions.branched, (0.0,)),
        }[kind]
    elif kind == "ito":
        update, boundary = _recursions.ito_truncated, (0.0,) * depth
    else:
        update, boundary = _recursions.branched_truncated, (0.0,) * depth
    out = sweep(update, increment, boundary, theta, xs, ys)
    if depth is None:
        return jnp.exp(out[0]) if kind == "branched" else out[0]
    if kind == "ito":
        return 1 + sum(out[1:], out[0])
    forests = _recursions.forests_from_trees(out)
    return sum(forests[1:], forests[0])

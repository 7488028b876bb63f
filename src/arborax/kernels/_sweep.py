"""Two-parameter recursions, swept along the anti-diagonals of the grid of two paths.

All cells of one anti-diagonal are independent: a sweep is a loop over `Lx + Ly`
diagonals of element-wise work, vectorised over the diagonal and the batch. The matrix
of increments is never formed. Reverse mode keeps one state out of `_CHUNK` and
recomputes those between, so its memory is `O(L^{3/2})` per pair; the gradient is that
of the discrete recursion, and forward mode and higher orders are the ordinary ones.

Layout: time first, batch last.
"""

import functools as ft
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.lax as lax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, PyTree

from .._xla import scan


State = tuple[Array, ...]
# (value at (n+1, m), value at (n, m+1), value at (n, m), increment) -> new value
Update = Callable[[State, State, State, Array], State]
# (cells of x, cells of y, on one diagonal) -> increments (cells, *batch)
Increment = Callable[[PyTree, PyTree], Array]
# (lower edge, left edge, cells of x, cells of y) -> (upper edge, right edge)
Cell = Callable[[PyTree, PyTree, PyTree, PyTree], tuple[PyTree, PyTree]]

_CHUNK = 16  # diagonals per stored state


class Ends(NamedTuple):
    """End points of cells, where increments do not say enough."""

    left: Array
    right: Array


def _reversed_and_padded(ys: PyTree, before: int, after: int) -> PyTree:
    """Time reversed, with cells that do nothing on both sides: zero data, or end points
    that coincide."""
    if isinstance(ys, Ends):
        last = jnp.repeat(ys.right[-1:], before, axis=0)
        first = jnp.repeat(ys.left[:1], after, axis=0)
        return Ends(*(jnp.concatenate([last, y[::-1], first]) for y in ys))

    def pad(leaf):
        return jnp.pad(leaf[::-1], [(before, after)] + [(0, 0)] * (leaf.ndim - 1))

    return jtu.tree_map(pad, ys)


def _cut(tree: PyTree, start: Any, size: int) -> PyTree:
    return jtu.tree_map(lambda y: lax.dynamic_slice_in_dim(y, start, size, 0), tree)


def _shifted(first: PyTree, rest: PyTree) -> PyTree:
    """Every row moved to the next cell of `x`, with `first` on the axis."""
    return jtu.tree_map(lambda a, b: jnp.concatenate([a[:1], b]), first, rest)


def _sweep(step: Callable, start: PyTree, xs: PyTree, ys: PyTree, unroll: int = 1):
    """The state after the last diagonal; `step(state, xs, cells of y)` does one."""
    nx, ny = (jtu.tree_leaves(cells)[0].shape[0] for cells in (xs, ys))
    chunks = -(-(nx + ny - 1) // _CHUNK)
    padded = _reversed_and_padded(ys, chunks * _CHUNK - ny, nx)

    @ft.partial(jax.checkpoint, prevent_cse=False)  # inside a loop: not needed
    def chunk(state, first):
        near = _cut(padded, first, nx + _CHUNK - 1)  # all that its diagonals meet

        def one(state, p):
            return step(state, xs, _cut(near, _CHUNK - 1 - p, nx)), None

        return scan(one, state, jnp.arange(_CHUNK), unroll=unroll)[0], None

    return scan(chunk, start, _CHUNK * jnp.arange(chunks)[::-1])[0]


def edge_sweep(
    cell: Cell, lower: PyTree, left: PyTree, xs: PyTree, ys: PyTree
) -> tuple[PyTree, PyTree]:
    """A recursion from whole edges of cells to whole edges: the upper edge of cell `(n,
    m)` is the lower edge of cell `(n, m+1)`, its right edge the left edge of `(n+1,
    m)`. For values that are polynomials inside a cell.

    `cell` maps entering to leaving edges, element-wise in time and batch, and hands
    them on unchanged where `y` does not move. `lower` and `left` are the edge of one
    cell on the two axes, leaves `(1, ...)`. **Returns** the upper and the right edge of
    the last cell.
    """
    nx = jtu.tree_leaves(xs)[0].shape[0]

    def step(edges, x, y):
        upper, right = edges
        entering = _shifted(left, jtu.tree_map(lambda r: r[:-1], right))
        return cell(upper, entering, x, y)

    start = jtu.tree_map(
        lambda leaf: jnp.broadcast_to(leaf, (nx, *leaf.shape[1:])), (lower, left)
    )
    return jtu.tree_map(lambda leaf: leaf[-1], _sweep(step, start, xs, ys))


def node_sweep(
    update: Update,
    increment: Increment,
    boundary: tuple[float, ...],
    xs: PyTree,
    ys: PyTree,
) -> State:
    """A recursion from three corners of a cell to the fourth: all components at the far
    corner.

    `increment` is zero on cells with zero data, or with end points that coincide;
    `boundary` holds the value of each component on the two axes.
    """

    first = jax.eval_shape(increment, *jtu.tree_map(lambda c: c[:1], (xs, ys)))
    nx = jtu.tree_leaves(xs)[0].shape[0]
    shape = (nx + 1, *first.shape[1:])  # row 0 lies on the axis
    start = tuple(jnp.full(shape, value, first.dtype) for value in boundary)

    @ft.partial(jax.checkpoint, prevent_cse=False)  # keeps two diagonals, no more
    def step(diagonals, x, y):
        last, before = diagonals
        upper = tuple(s[1:] for s in last)
        right, corner = (tuple(s[:-1] for s in d) for d in (last, before))
        return _shifted(start, update(upper, right, corner, increment(x, y))), last

    last, _ = _sweep(step, (start, start), xs, ys, unroll=2)
    return tuple(s[-1] for s in last)

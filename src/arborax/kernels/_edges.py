"""Sweeps that carry whole cell edges instead of corner values.

Where the value inside a cell is a polynomial of its two coordinates (piecewise linear
paths, steps `exp(s ell)`), a corner value is not enough to continue: the upper edge of
cell `(n, m)` is the lower edge of cell `(n, m+1)`, its right edge the left edge of
`(n+1, m)`. Ordinary reverse mode with recomputed chunks gives the exact discrete
gradient with `O(L^{3/2})` memory, and forward mode works too.
"""

import functools as ft
from collections.abc import Callable

import jax
import jax.lax as lax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import PyTree

from .._xla import scan


# (lower edge, left edge, cells of x, cells of y) -> (upper edge, right edge)
Cell = Callable[[PyTree, PyTree, PyTree, PyTree], tuple[PyTree, PyTree]]

_CHUNK = 16


def edge_sweep(
    cell: Cell, lower: PyTree, left: PyTree, xs: PyTree, ys: PyTree
) -> tuple[PyTree, PyTree]:
    """Sweep the grid along anti-diagonals and return the edges of the last cell.

    **Arguments:**

    - `cell`: the map from entering to leaving edges, element-wise in time and batch.
        A cell with zero data in `ys` must hand its edges on unchanged.
    - `lower`, `left`: edge of one cell on the two axes, leaves `(1, ...)`.
    - `xs`, `ys`: cell data, time first: arrays or tuples of arrays.

    **Returns:**

    Upper and right edge of the last cell, leaves without the leading axis.
    """
    nx = jtu.tree_leaves(xs)[0].shape[0]
    ny = jtu.tree_leaves(ys)[0].shape[0]
    chunks = -(-(nx + ny - 1) // _CHUNK)
    diagonals = chunks * _CHUNK

    def pad(leaf):
        rest = [(0, 0)] * (leaf.ndim - 1)
        return jnp.pad(leaf[::-1], [(diagonals - ny, nx), *rest])

    padded = jtu.tree_map(pad, ys)

    def step(carry, p):
        upper, right = carry
        start = diagonals - 1 - p
        window = jtu.tree_map(
            lambda y: lax.dynamic_slice_in_dim(y, start, nx, 0), padded
        )
        entering = jtu.tree_map(
            lambda first, r: jnp.concatenate([first, r[:-1]]), left, right
        )
        return cell(upper, entering, xs, window), None

    @ft.partial(jax.checkpoint, prevent_cse=False)  # inside a loop: not needed
    def chunk(carry, ps):
        return scan(step, carry, ps)[0], None

    def repeat(leaf):
        return jnp.broadcast_to(leaf, (nx, *leaf.shape[1:]))

    start = jtu.tree_map(repeat, (lower, left))
    ps = jnp.arange(diagonals).reshape(chunks, _CHUNK)
    carry, _ = scan(chunk, start, ps)
    return jtu.tree_map(lambda leaf: leaf[-1], carry)

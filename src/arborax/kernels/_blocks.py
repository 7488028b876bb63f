"""Gram matrices in blocks of bounded memory."""

import functools as ft
from collections.abc import Callable

import jax
import jax.lax as lax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, PyTree


def split(tree: PyTree, size: int) -> PyTree:
    """Batches of `size`; the last one is filled with legal paths, to be thrown away."""

    def one(a: Array) -> Array:
        short = -a.shape[0] % size
        a = jnp.concatenate([a, jnp.repeat(a[-1:], short, axis=0)]) if short else a
        return a.reshape(-1, size, *a.shape[1:])

    return jtu.tree_map(one, tree)


def in_blocks(
    values: Callable[[PyTree, PyTree], Array], x: PyTree, y: PyTree, block: int
) -> Array:
    """All pairs of two batches, block by block: memory is that of one block.

    `values` gives all pairs of two small batches, `block` is their size. If `y is x`
    the matrix is symmetric, and only the upper half of the blocks is computed.
    """
    nx, ny = (jtu.tree_leaves(side)[0].shape[0] for side in (x, y))
    if nx <= block and ny <= block:
        return values(x, y)
    symmetric = y is x
    rows, columns = min(block, nx), min(block, ny)
    x, y = split(x, rows), split(y, columns)
    shape = -(-nx // rows), -(-ny // columns)
    grid = [(i, j) for i, j in np.ndindex(shape) if i <= j or not symmetric]
    at_x, at_y = np.array(grid, dtype=np.int32).T

    @ft.partial(jax.checkpoint, prevent_cse=False)  # inside a loop: not needed
    def one(index):
        i, j = index
        return values(jtu.tree_map(lambda a: a[i], x), jtu.tree_map(lambda a: a[j], y))

    tiles = lax.map(one, (jnp.asarray(at_x), jnp.asarray(at_y)))
    full = jnp.zeros((*shape, rows, columns), tiles.dtype).at[at_x, at_y].set(tiles)
    if symmetric:
        full = full.at[at_y, at_x].set(jnp.swapaxes(tiles, 1, 2))
    full = jnp.swapaxes(full, 1, 2).reshape(shape[0] * rows, -1)
    return full[:nx, :ny]

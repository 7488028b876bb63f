"""Gram matrices in blocks of bounded memory."""

import functools as ft
from collections.abc import Callable
from typing import Any

import jax
import jax.lax as lax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array


def split(a: Array | None, size: int) -> Any:
    """Batches of `size`; the last one is filled with legal paths, to be thrown away."""
    if a is None:
        return None
    short = -a.shape[0] % size
    a = jnp.concatenate([a, jnp.repeat(a[-1:], short, axis=0)]) if short else a
    return a.reshape(-1, size, *a.shape[1:])


def in_blocks(
    values: Callable[..., Array],
    px: Array,
    py: Array,
    ax: Array | None,
    ay: Array | None,
    block: int,
) -> Array:
    """All pairs, block by block: memory bounded by one block.

    **Arguments:**

    - `values`: kernel of all pairs of two small batches with their brackets.
    - `px`, `py`, `ax`, `ay`: all paths and brackets. If `py is px`, the matrix is
        symmetric and only the upper half of the blocks is computed.
    - `block`: rows and columns of a block.

    **Returns:**

    The matrix `(len(px), len(py))`.
    """
    nx, ny = px.shape[0], py.shape[0]
    if nx <= block and ny <= block:
        return values(px, py, ax, ay)
    symmetric = py is px
    rows, columns = min(block, nx), min(block, ny)

    px, ax = split(px, rows), split(ax, rows)
    py, ay = split(py, columns), split(ay, columns)
    grid = [(i, j) for i in range(px.shape[0]) for j in range(py.shape[0])]
    if symmetric:
        grid = [(i, j) for i, j in grid if i <= j]
    at_x, at_y = np.array(grid, dtype=np.int32).T

    @ft.partial(jax.checkpoint, prevent_cse=False)  # inside a loop: not needed
    def one(index):
        i, j = index
        pick = lambda a, k: None if a is None else a[k]  # noqa: E731
        return values(pick(px, i), pick(py, j), pick(ax, i), pick(ay, j))

    tiles = lax.map(one, (jnp.asarray(at_x), jnp.asarray(at_y)))
    full = jnp.zeros((px.shape[0], py.shape[0], rows, columns), tiles.dtype)
    full = full.at[at_x, at_y].set(tiles)
    if symmetric:
        full = full.at[at_y, at_x].set(jnp.swapaxes(tiles, 1, 2))
    full = jnp.swapaxes(full, 1, 2).reshape(px.shape[0] * rows, -1)
    return full[:nx, :ny]

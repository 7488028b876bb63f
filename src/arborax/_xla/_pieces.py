"""A function of a batch, evaluated a few paths at a time.

Intermediate arrays of a large batch would have to be written to memory and read back;
those of a few paths stay in the caches of a CPU.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import tree_map
from jaxtyping import Array

from ._barrier import barrier
from ._switch import uses


def in_pieces(function: Callable, args: Any, size: int, axis: int) -> Any:
    """`function(*args)` from pieces of at most `size` along the first axis.

    **Arguments:**

    - `args`: tuple of arrays, or containers of them, with the batch as first axis.
    - `axis`: the batch axis of the results.

    Reverse mode recomputes each piece.
    """
    if not uses("pieces"):
        return function(*args)
    batch = jax.tree_util.tree_leaves(args)[0].shape[0]
    count = -(-batch // size)
    size = -(-batch // count)

    def cut(x: Array) -> Array:
        x = jnp.pad(x, [(0, count * size - batch)] + [(0, 0)] * (x.ndim - 1))
        return x.reshape(count, size, *x.shape[1:])

    def join(x: Array) -> Array:
        x = jnp.moveaxis(x, 0, axis)
        x = x.reshape(*x.shape[:axis], count * size, *x.shape[axis + 2 :])
        return jax.lax.slice_in_dim(x, 0, batch, axis=axis)

    def run(piece):
        # Stored, as is its cotangent: else XLA cuts the piece out of the whole in every
        # loop that uses it, and computes the cotangent, a sum of many terms, while it
        # places it in that of the whole, one number at a time.
        return function(*tree_map(barrier, piece))

    pieces = jax.lax.map(jax.checkpoint(run, prevent_cse=False), tree_map(cut, args))
    return tree_map(join, pieces)

"""A function of a batch, evaluated a few paths at a time.

Intermediate arrays of a large batch would have to be written to memory and read back;
those of a few paths stay in the caches of a CPU.
"""

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax.tree_util import tree_leaves, tree_map

from ._barrier import barrier
from ._switch import uses


def in_pieces(
    function: Callable, args: Any, size: int, *, place: Literal["first", "last"]
) -> Any:
    """`function(*args)` from pieces of at most `size` along the first axis of all
    arrays in `args`, which is the first or last one of the results. Reverse mode
    recomputes each piece."""
    if not uses("pieces"):
        return function(*args)
    batch = tree_leaves(args)[0].shape[0]
    count = -(-batch // size)
    size = -(-batch // count)

    def cut(x):
        x = jnp.pad(x, [(0, count * size - batch)] + [(0, 0)] * (x.ndim - 1))
        return x.reshape(count, size, *x.shape[1:])

    def run(piece):
        # Stored, as is its cotangent: otherwise XLA cuts it out of the whole, or places
        # it there, one number at a time and in every loop that uses it.
        return function(*tree_map(barrier, piece))

    def join(x):
        if place == "first":
            return x.reshape(count * size, *x.shape[2:])[:batch]
        x = jnp.moveaxis(x, 0, -2)
        return x.reshape(*x.shape[:-2], count * size)[..., :batch]

    pieces = jax.lax.map(jax.checkpoint(run, prevent_cse=False), tree_map(cut, args))
    return tree_map(join, pieces)

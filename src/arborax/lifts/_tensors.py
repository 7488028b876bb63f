"""Sums and entries of small tensors."""

import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float, PyTree

from .._xla import small_product


def trace(x: Float[Array, "n n dim"]) -> Float[Array, " dim"]:
    """The sum of `x[i, i]`."""
    n = x.shape[0]
    diagonal = jnp.eye(n, dtype=x.dtype).reshape(1, -1)
    return small_product(diagonal, x.reshape(n * n, -1))[0]


def take(i: int, tree: PyTree[Array]) -> PyTree[Array]:
    """Entry `i` along the leading axis of every leaf."""
    return jtu.tree_map(lambda leaf: leaf[i], tree)

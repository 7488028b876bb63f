"""Small sums and products, in the form that compiles best."""

import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float, PyTree

from ..geometry._small_product import small_product as small_product


def trace(x: Float[Array, "n n dim"]) -> Float[Array, " dim"]:
    """The sum of `x[i, i]`."""
    n = x.shape[0]
    diagonal = jnp.eye(n, dtype=x.dtype).reshape(1, -1)
    return small_product(diagonal, x.reshape(n * n, -1))[0]


def take(i: int, tree: PyTree[Array]) -> PyTree[Array]:
    """Entry `i` along the leading axis of every leaf."""
    return jtu.tree_map(lambda leaf: leaf[i], tree)


def sum_rows(tree: PyTree[Array]) -> PyTree[Array]:
    """Sum over the leading axis of every leaf."""
    return jtu.tree_map(lambda leaf: jnp.sum(leaf, axis=0), tree)


def add(x: PyTree[Array], y: PyTree[Array]) -> PyTree[Array]:
    """The sum of two vectors of the same form."""
    return jtu.tree_map(jnp.add, x, y)

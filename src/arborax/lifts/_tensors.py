"""Sums and products of small tensors over frame coordinates."""

from typing import Literal

import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float, PyTree

from .._xla import barrier, small_einsum, small_product


_LONG_ROW = 16  # rows of numbers for which the batch comes first


class Tensors:
    """Products of small tensors over `dim` frame coordinates, each computed once and
    stored: the batch last if there are few coordinates, otherwise first."""

    def __init__(self, dim: int):
        self.place: Literal["first", "last"] = "first" if dim >= _LONG_ROW else "last"

    def einsum(self, spec: str, a: Array, b: Array) -> Array:
        """As `jnp.einsum`, for two tensors."""
        return barrier(small_einsum(spec, a, b, place=self.place))

    def bring(self, axes: str, x: Array) -> Array:
        """A tensor with these axes, stored in the order of the others."""
        if self.place == "first":
            return x
        x = small_einsum(f"{axes},->{axes}", x, jnp.ones((), x.dtype), place="last")
        return barrier(x)


def trace(x: Float[Array, "n n dim"]) -> Float[Array, " dim"]:
    """The sum of `x[i, i]`."""
    n = x.shape[0]
    diagonal = jnp.eye(n, dtype=x.dtype).reshape(1, -1)
    return small_product(diagonal, x.reshape(n * n, -1))[0]


def take(i: int, tree: PyTree[Array]) -> PyTree[Array]:
    """Entry `i` along the leading axis of every leaf."""
    return jtu.tree_map(lambda leaf: leaf[i], tree)

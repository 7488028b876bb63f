"""Products of small tensors, stored in the layout that suits their rows."""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array

from ._barrier import barrier
from ._einsum import small_einsum


_LONG_ROW = 16  # rows of numbers for which the batch comes first


class Tensors:
    """Products of small tensors over rows of `dim` numbers, each computed once and
    stored: the batch last if rows are short, otherwise first."""

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

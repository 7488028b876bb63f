"""Fields of trees at a point."""

import dataclasses
from collections.abc import Callable

from jaxtyping import Array, Float

from ._linear import small_product


@dataclasses.dataclass(frozen=True)
class Trees:
    """The fields of all trees of one weight at a point: how many there are, and the
    contraction of coefficients `(trees, _)` with them to `(dim, _)`."""

    count: int
    contract: Callable[[Array], Array]


def trees_of(values: Float[Array, "trees dim"]) -> Trees:
    """From the values of the fields."""
    return Trees(values.shape[0], lambda x: small_product(values.T, x))

"""Chen's identity for tree algebras on rows `(size, batch)`, gathers both ways."""

import functools as ft

import numpy as np
from jaxtyping import Array, Float

from .._xla import apply_rows
from ..algebra import AbstractHopfAlgebra, SparseMap


Group = list[Float[Array, "size batch"]]


@ft.cache
def _factors(alg: AbstractHopfAlgebra) -> tuple[SparseMap, SparseMap, SparseMap]:
    """Left and right factors of every term of the product, and the sum of terms."""
    table = alg.product_table
    count = table.out.size
    term, ones = np.arange(count), np.ones(count)
    left = SparseMap(term, table.left, ones, (count, alg.size))
    right = SparseMap(term, table.right, ones, (count, alg.size))
    return left, right, SparseMap(table.out, term, table.value, (alg.size, count))


def tree_multiply(alg: AbstractHopfAlgebra, a: Group, b: Group) -> Group:
    """`(1 + a)(1 + b) - 1`; elements are lists of one array."""
    left, right, total = _factors(alg)
    terms = apply_rows(left, a[0]) * apply_rows(right, b[0])
    return [a[0] + b[0] + apply_rows(total, terms)]


def tree_divide(alg: AbstractHopfAlgebra, c: Group, b: Group) -> Group:
    """The `a` with `(1 + a)(1 + b) = 1 + c`, for a group-like `b`."""
    return tree_multiply(alg, c, [apply_rows(alg.antipode_map, b[0])])

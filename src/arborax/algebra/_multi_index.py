"""The algebra of multi-indices: scalar equations."""

import dataclasses
import functools as ft
from collections import Counter

import numpy as np

from ._base import AbstractHopfAlgebra
from ._grossman_larson import GrossmanLarson
from ._multi_indices import (
    count_multi_indices,
    factor,
    Forest,
    forests,
    index_cuts,
    tree_of_index,
)
from ._sparse import ProductTable, selection, SparseMap
from ._trees import count_multisets


@dataclasses.dataclass(frozen=True)
class MultiIndex(AbstractHopfAlgebra):
    r"""Forests of multi-indices: branched rough paths as a scalar state sees them.

    For a scalar state only label $i$ and number of children $k$ of each vertex of a
    tree matter: its elementary differential is $\prod_v f_i^{(k)}$. A multi-index is
    the multiset of these letters, a sorted tuple of pairs `(i, k)` with
    $\sum (1 - k) = 1$; `((0, 0), (1, 1))` is $f_0 f_1'$, the tree $[0]_1$. With
    $D f_i^{(k)} = f_i^{(k+1)}$, a multi-index $a$ is grafted on $b$ by $a\, D b$, and
    several at once by $a_1 \cdots a_j D^j b$; the product grafts or keeps the members
    of the left factor, as in `GrossmanLarson`, of which this is a quotient
    ([`arborax.algebra.forget_shape`][]).

    Keys are sorted tuples of multi-indices, by weight (number of letters), number of
    members and entries. Public coordinates are pairings
    $\langle x, f\rangle = \sigma(f) c_f$ with $\sigma(f)$ the product of all $k!$ and
    of the factorials of multiplicities. Primitive elements are combinations of
    multi-indices; `primitive_basis` holds them bare. Sizes by weight: 1, 1, 2, 3, 5, 7
    for one channel and 2, 4, 12, 28, 66 for two, where trees number 2, 4, 14, 52, 214.

    Vector fields are lifted from the derivatives $f_i, \dots, f_i^{(N-1)}$ alone, on
    `Euclidean(1)`. For semimartingales `Ito` is smaller.

    ??? cite "Reference"

        P. Linares, F. Otto, M. Tempelmayr, The structure group for quasi-linear
        equations via universal enveloping algebras, Communications of the AMS 3 (2023).
    """

    @property
    def _counts(self) -> list[int]:
        return count_multi_indices(self.dim, self.depth)

    @property
    def size(self) -> int:
        return sum(count_multisets(self._counts)[1:])

    @property
    def primitive_size(self) -> int:
        return sum(self._counts)

    @ft.cached_property
    def basis(self) -> tuple[Forest, ...]:
        weights = range(1, self.depth + 1)
        return tuple(f for n in weights for f in forests(self.dim, n))

    @ft.cached_property
    def weights(self) -> np.ndarray:
        return np.array([sum(map(len, forest)) for forest in self.basis])

    @ft.cached_property
    def free_positions(self) -> np.ndarray:
        return np.array([k for k, f in enumerate(self.basis) if len(f) == 1])

    @ft.cached_property
    def primitive_basis(self) -> tuple:
        return tuple(self.basis[k][0] for k in self.free_positions)

    @property
    def primitive_weights(self) -> np.ndarray:
        return self.weights[self.free_positions]

    @property
    def product_table(self) -> ProductTable:
        return _product_table(self)

    @ft.cached_property
    def primitive_maps(self) -> tuple[SparseMap, SparseMap]:
        select = selection(self.free_positions, self.size)
        return select, select.transpose()

    def cuts(self, key) -> dict:
        return _cuts(self, key)

    def dual_product(self, left, right) -> dict:
        return {tuple(sorted(left + right)): 1}

    @property
    def calculus(self) -> None:
        return None

    def elementary_step(self, letter: tuple[int, ...]) -> np.ndarray:
        out = np.zeros(self.primitive_size)
        orders = [letter, letter[::-1]] if len(letter) == 2 else [letter]
        for top, *below in orders:
            index = tuple(sorted([(top, 0), *((i, 1) for i in below)]))
            out[self.primitive_index[index]] += 1 / len(orders)
        return out

    @property
    def tree_algebra(self) -> GrossmanLarson:
        return GrossmanLarson(self.dim, self.depth)

    @property
    def planar(self) -> bool:
        return False

    @property
    def scalar(self) -> bool:
        return True

    @ft.cached_property
    def forests(self) -> tuple[tuple, SparseMap]:
        """One tree for each multi-index."""
        size, keys = np.arange(self.primitive_size), self.primitive_basis
        scale = [1 / factor(index) for index in keys]
        diagonal = SparseMap(size, size, scale, (size.size, size.size))
        return tuple((tree_of_index(index),) for index in keys), diagonal


@ft.cache
def _cuts(alg: MultiIndex, key: Forest) -> dict:
    """Cuts of all members, side by side."""
    if not key:
        return {((), ()): 1}
    out: Counter = Counter()
    for (left, trunk), times in _cuts(alg, key[:-1]).items():
        for (more, last), ways in index_cuts(alg.dim, alg.depth)[key[-1]].items():
            pair = tuple(sorted(left + more)), tuple(sorted(trunk + last))
            out[pair] += times * ways
    return out


@ft.cache
def _product_table(alg: MultiIndex) -> ProductTable:
    entries = [
        (row, alg.index[left], alg.index[right], value)
        for row, key in enumerate(alg.basis)
        for (left, right), value in alg.cuts(key).items()
        if left and right
    ]
    out, left, right, value = np.array(entries, int).reshape(-1, 4).T
    return ProductTable(out, left, right, value, alg.size)

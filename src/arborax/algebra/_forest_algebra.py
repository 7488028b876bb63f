"""The base of algebras of forests: grafting, planar or not."""

import dataclasses
import functools as ft
from collections import Counter

import numpy as np

from ._base import AbstractHopfAlgebra
from ._cuts import cuts, dual_product
from ._forests import forest_basis, ForestBasis
from ._sparse import ProductTable, SparseMap
from ._trees import canonical, count_nonplanar, count_planar, Forest


@dataclasses.dataclass(frozen=True)
class AbstractForestAlgebra(AbstractHopfAlgebra):
    """Forests of `planar` or non-planar trees, with grafting as product.

    Keys are tuples of trees `(colour, (child, ...))`, by weight, number of trees, shape
    (decreasing level sequence: ladders first, corollas last) and colours in preorder.
    """

    @property
    def _counts(self) -> tuple[list[int], list[int]]:
        """Numbers of trees and forests of each weight `0..depth`."""
        count = count_planar if self.planar else count_nonplanar
        return count(self.dim, self.depth)

    @property
    def size(self) -> int:
        return sum(self._counts[1][1:])

    @property
    def _forests(self) -> ForestBasis:
        return forest_basis(self.dim, self.depth, planar=self.planar)

    @ft.cached_property
    def basis(self) -> tuple[Forest, ...]:
        return tuple(self._forests.keys)

    @ft.cached_property
    def weights(self) -> np.ndarray:
        return np.array(self._forests.weights)

    @ft.cached_property
    def _tree_positions(self) -> np.ndarray:
        """Positions in `basis` of the one-tree forests."""
        return np.array([k for k, f in enumerate(self._forests.keys) if len(f) == 1])

    @property
    def product_table(self) -> ProductTable:
        return self._forests.product_table

    @property
    def antipode_map(self) -> SparseMap:
        return self._forests.antipode_map

    def _key(self, forest: Forest) -> Forest:
        return forest if self.planar else canonical(forest)

    def cuts(self, key) -> dict:
        out: Counter = Counter()
        for (pruned, trunk), times in cuts(key, self.planar).items():
            out[self._key(pruned), self._key(trunk)] += times
        return out

    def dual_product(self, left, right) -> dict:
        terms = dual_product(left, right, self.planar).items()
        return {self._key(forest): times for forest, times in terms}

    @property
    def calculus(self) -> None:
        return None

    def elementary_step(self, letter: tuple[int, ...]) -> np.ndarray:
        out = np.zeros(self.size)
        orders = [letter, letter[::-1]] if len(letter) == 2 else [letter]
        for channels in orders:
            ladder: Forest = ()
            for channel in channels:
                ladder = ((channel, ladder),)
            out[self.index[ladder]] += 1 / len(orders)
        return self.to_primitive(out)

    @property
    def tree_algebra(self) -> AbstractHopfAlgebra:
        return self

"""The Grossman-Larson algebra of non-planar forests: Euclidean Itô calculus."""

import dataclasses
import functools as ft
from collections import Counter

import numpy as np

from ._base import AbstractHopfAlgebra
from ._cuts import cuts
from ._forests import forest_basis, ForestBasis
from ._sparse import ProductTable, SparseMap
from ._trees import canonical, count_nonplanar, Forest, symmetry_factor
from ._words_as_forests import words_as_forests


@dataclasses.dataclass(frozen=True)
class GrossmanLarson(AbstractHopfAlgebra):
    r"""Forests of non-planar rooted trees, grafted.

    In a product each tree of the left factor is kept as a root or grafted on any
    vertex of the right factor; the product is the sum over all such maps.

    Keys are sorted tuples of trees `(colour, (child, ...))`, children sorted; by
    weight, number of trees, shape (Beyer-Hedetniemi order: ladders first, corollas
    last) and colours. Public coordinates are pairings
    $\langle x, f\rangle = \sigma(f) c_f$, where $x = \sum_f c_f f$ and $\sigma$ is
    the symmetry factor: for a signature they are products of iterated integrals.
    Primitive elements are combinations of trees; `primitive_basis` holds the
    one-tree forests as bare trees, with pairings as coordinates. The factor
    $1/\sigma$ appears once, in the lift of vector fields.

    ??? cite "References"

        R. Grossman and R. Larson, Hopf-algebraic structure of families of trees,
        Journal of Algebra 126 (1989). M. Gubinelli, Ramification of rough paths,
        Journal of Differential Equations 248 (2010).
    """

    @property
    def primitive_size(self) -> int:
        return sum(count_nonplanar(self.dim, self.depth)[0])

    @property
    def size(self) -> int:
        return sum(count_nonplanar(self.dim, self.depth)[1][1:])

    @property
    def _forests(self) -> ForestBasis:
        return forest_basis(self.dim, self.depth, planar=False)

    @ft.cached_property
    def basis(self) -> tuple[Forest, ...]:
        return tuple(self._forests.keys)

    @ft.cached_property
    def weights(self) -> np.ndarray:
        return np.array(self._forests.weights)

    @ft.cached_property
    def tree_positions(self) -> np.ndarray:
        """Positions in `basis` of the one-tree forests."""
        return np.array([k for k, f in enumerate(self._forests.keys) if len(f) == 1])

    @ft.cached_property
    def primitive_basis(self) -> tuple:
        return tuple(self.basis[k][0] for k in self.tree_positions)

    @property
    def primitive_weights(self) -> np.ndarray:
        return self.weights[self.tree_positions]

    @property
    def product_table(self) -> ProductTable:
        return self._forests.product_table

    @property
    def antipode_map(self) -> SparseMap:
        return self._forests.antipode_map

    @ft.cached_property
    def primitive_maps(self) -> tuple[SparseMap, SparseMap]:
        trees = self.tree_positions
        count = len(trees)
        embed = SparseMap(trees, np.arange(count), np.ones(count), (self.size, count))
        return embed.transpose(), embed

    def cuts(self, key) -> dict:
        out: Counter = Counter()
        for (pruned, trunk), times in cuts(key, planar=False).items():
            out[canonical(pruned), canonical(trunk)] += times
        return out

    def dual_product(self, left, right) -> dict:
        return {canonical(left + right): 1}

    @property
    def calculus(self) -> None:
        return None

    def elementary_step(self, letter: tuple[int, ...]) -> np.ndarray:
        out = np.zeros(self.primitive_size)
        trees = [(letter[0], ())]
        if len(letter) == 2:
            i, j = letter
            trees = [(i, ((j, ()),)), (j, ((i, ()),))]
        for tree in trees:
            out[self.primitive_index[tree]] += 1 / len(trees)
        return out

    def from_words(self, words: AbstractHopfAlgebra) -> SparseMap:
        return words_as_forests(self, words, planar=False)

    @property
    def free_positions(self) -> np.ndarray:
        return self.tree_positions

    @property
    def of_trees(self) -> bool:
        return True

    @property
    def planar(self) -> bool:
        return False

    @ft.cached_property
    def forests(self) -> tuple[tuple[Forest, ...], SparseMap]:
        size, trees = np.arange(self.primitive_size), self.primitive_basis
        scale = [1 / symmetry_factor(tree) for tree in trees]
        diagonal = SparseMap(size, size, scale, (size.size, size.size))
        return tuple((tree,) for tree in trees), diagonal

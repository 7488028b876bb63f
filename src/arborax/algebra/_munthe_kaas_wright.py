"""The Munthe-Kaas-Wright algebra of planar forests: Itô calculus on manifolds."""

import dataclasses
import functools as ft
from collections import Counter

import numpy as np

from ._base import AbstractHopfAlgebra
from ._cuts import cuts, shuffles
from ._forests import forest_basis, ForestBasis
from ._lyndon import lyndon_basis, LyndonBasis, triangular_inverse
from ._sparse import ProductTable, SparseMap
from ._trees import count_planar, Forest
from ._words import count_lyndon_words
from ._words_as_forests import words_as_forests


@dataclasses.dataclass(frozen=True)
class MuntheKaasWright(AbstractHopfAlgebra):
    r"""Ordered forests of planar rooted trees, grafted to the left.

    The product is that of `GrossmanLarson`, but grafted trees go left of the existing
    children and keep their order, and kept trees stand left, in order.

    Keys are tuples of planar trees `(colour, (child, ...))`, by weight, number of
    trees, shape (decreasing level sequence, tree by tree) and colours in preorder.

    Primitive elements form the free Lie algebra over planar trees. `primitive_basis`
    holds Lyndon words over the alphabet `letters` of planar trees, ordered by weight,
    shape and colours, bracketed with the *commutator of this product*,
    $[l] = [u] * [v] - [v] * [u]$. Planar trees alone are not enough: they lose the
    torsion terms, and with them half an order of convergence.

    ??? cite "Reference"

        H. Munthe-Kaas and W. Wright, On the Hopf algebraic structure of Lie group
        integrators, Foundations of Computational Mathematics 8 (2008).
    """

    @property
    def primitive_size(self) -> int:
        trees = count_planar(self.dim, self.depth)[0]
        return sum(count_lyndon_words(trees, self.depth))

    @property
    def size(self) -> int:
        return sum(count_planar(self.dim, self.depth)[1][1:])

    @property
    def _forests(self) -> ForestBasis:
        return forest_basis(self.dim, self.depth, planar=True)

    @ft.cached_property
    def basis(self) -> tuple[Forest, ...]:
        return tuple(self._forests.keys)

    @ft.cached_property
    def weights(self) -> np.ndarray:
        return np.array(self._forests.weights)

    @ft.cached_property
    def letters(self) -> tuple:
        """The alphabet of the primitive basis: planar trees, in basis order."""
        return tuple(f[0] for f in self._forests.keys if len(f) == 1)

    @ft.cached_property
    def letter_weights(self) -> np.ndarray:
        """Number of vertices of each letter."""
        return np.array(
            [
                n
                for f, n in zip(self._forests.keys, self._forests.weights)
                if len(f) == 1
            ]
        )

    @property
    def _lyndon(self) -> LyndonBasis:
        return lyndon_basis(tuple(self.letter_weights.tolist()), self.depth)

    def _spell(self, word: tuple[int, ...]) -> Forest:
        return tuple(self.letters[letter] for letter in word)

    @property
    def words(self) -> tuple[tuple[int, ...], ...]:
        """Words over `letters` as tuples of letter numbers.

        A word stands for the product `t1 * t2 * ... * tk` of its trees. The order is
        by weight, then lexicographic, and differs from that of `basis`.
        """
        return self._lyndon.words

    @ft.cached_property
    def primitive_basis(self) -> tuple[Forest, ...]:
        return tuple(self._spell(word) for word in self._lyndon.lyndon)

    @property
    def primitive_weights(self) -> np.ndarray:
        return self._lyndon.lyndon_weights

    @property
    def product_table(self) -> ProductTable:
        return self._forests.product_table

    @property
    def antipode_map(self) -> SparseMap:
        return self._forests.antipode_map

    @ft.cached_property
    def primitive_maps(self) -> tuple[SparseMap, SparseMap]:
        position = {forest: k for k, forest in enumerate(self._forests.keys)}
        words = [position[self._spell(word)] for word in self._lyndon.words]
        spell = SparseMap(
            words, np.arange(self.size), np.ones(self.size), (self.size, self.size)
        )
        embed = self._forests.star_words @ (spell @ self._lyndon.expansion)
        lyndon = self._lyndon.lyndon
        rows = np.array([position[self._spell(word)] for word in lyndon])
        # Grafting lowers the number of trees, so words of more trees come first.
        order = sorted(range(len(lyndon)), key=lambda k: (-len(lyndon[k]), lyndon[k]))
        return triangular_inverse(embed, rows, order), embed

    def expand(self, coordinates):
        """Primitive coordinates to coefficients of `words`, products of trees."""
        coordinates = self._check(coordinates, "l", primitive=True)
        return self._lyndon.expansion(coordinates)

    def cuts(self, key) -> dict:
        return dict(cuts(key, planar=True))

    def dual_product(self, left, right) -> dict:
        return Counter(shuffles(left, right))

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
            out[self.primitive_index[(tree,)]] += 1 / len(trees)
        return out

    def from_words(self, words: AbstractHopfAlgebra) -> SparseMap:
        return words_as_forests(self, words, planar=True)

    @property
    def of_trees(self) -> bool:
        return True

    @property
    def planar(self) -> bool:
        return True

    @property
    def forests(self) -> tuple[tuple[Forest, ...], SparseMap]:
        return self.basis, self.primitive_maps[1]

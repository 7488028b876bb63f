"""The Munthe-Kaas-Wright algebra of planar forests: Itô calculus on manifolds."""

import dataclasses
import functools as ft

import numpy as np

from ._forest_algebra import AbstractForestAlgebra
from ._lyndon import lyndon_basis, LyndonBasis, triangular_inverse
from ._sparse import selection, SparseMap
from ._trees import Forest
from ._words import count_lyndon_words


@dataclasses.dataclass(frozen=True)
class MuntheKaasWright(AbstractForestAlgebra):
    """Ordered forests of planar trees: the algebra of planarly branched rough paths,
    for any manifold with a connection.

    The product is that of `GrossmanLarson` with an order: grafted trees go to the left
    of the existing children, the others to the left of the right factor, and both keep
    their own order.

    Primitive elements form the free Lie algebra over planar trees. `primitive_basis`
    holds Lyndon words over the alphabet `letters` of planar trees, ordered by weight,
    shape and colours, bracketed with the *commutator of this product*, $[l] = [u] * [v]
    - [v] * [u]$. Planar trees alone are not enough: they lose the torsion terms, and
    with them half an order of convergence.

    **Arguments:**

    - `dim`: number of channels, the colours of the vertices.
    - `depth`: largest number of vertices of a forest.

    ??? cite "Reference"

        H. Munthe-Kaas and W. Wright, On the Hopf algebraic structure of Lie group
        integrators, Foundations of Computational Mathematics 8 (2008).
    """

    @property
    def planar(self) -> bool:
        return True

    @property
    def primitive_size(self) -> int:
        return sum(count_lyndon_words(self._counts[0], self.depth))

    @ft.cached_property
    def letters(self) -> tuple:
        """The alphabet of the primitive basis: planar trees, in basis order."""
        return tuple(self.basis[k][0] for k in self._tree_positions)

    @property
    def letter_weights(self) -> np.ndarray:
        """Number of vertices of each letter."""
        return self.weights[self._tree_positions]

    @property
    def _lyndon(self) -> LyndonBasis:
        return lyndon_basis(tuple(self.letter_weights.tolist()), self.depth)

    def _spell(self, word: tuple[int, ...]) -> Forest:
        return tuple(self.letters[letter] for letter in word)

    @ft.cached_property
    def primitive_basis(self) -> tuple[Forest, ...]:
        return tuple(self._spell(word) for word in self._lyndon.lyndon)

    @property
    def primitive_weights(self) -> np.ndarray:
        return self._lyndon.lyndon_weights

    @ft.cached_property
    def primitive_maps(self) -> tuple[SparseMap, SparseMap]:
        words = [self.index[self._spell(word)] for word in self._lyndon.words]
        spell = selection(words, self.size).transpose()
        embed = self._forests.star_words @ (spell @ self._lyndon.expansion)
        lyndon = self._lyndon.lyndon
        rows = np.array([self.index[key] for key in self.primitive_basis])
        # Grafting lowers the number of trees, so words of more trees come first.
        order = sorted(range(len(lyndon)), key=lambda k: (-len(lyndon[k]), lyndon[k]))
        return triangular_inverse(embed, rows, order), embed

    @property
    def forests(self) -> tuple[tuple[Forest, ...], SparseMap]:
        return self.basis, self.primitive_maps[1]

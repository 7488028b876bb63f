"""The tensor algebra: words, Stratonovich calculus."""

import dataclasses
import functools as ft
from collections import Counter

import numpy as np

from ._base import AbstractHopfAlgebra
from ._cuts import shuffles
from ._lyndon import lyndon_basis, LyndonBasis
from ._sparse import ProductTable, SparseMap
from ._word_tables import concatenation_table, reversal_map
from ._words import count_lyndon_words


@dataclasses.dataclass(frozen=True)
class Shuffle(AbstractHopfAlgebra):
    r"""Words with concatenation; signatures are characters of the shuffle product.

    Keys are tuples of letters `0..dim-1`, by length and then lexicographically. The
    primitive basis is that of Lyndon words $l = uv$ ($v$ the longest proper Lyndon
    suffix), bracketed $[l] = [u][v] - [v][u]$; primitive coordinates are
    coefficients of these *brackets*, not of Lyndon words in the expanded logarithm.

    Size $\sum_{n \le N} d^n$.

    ??? cite "Reference"

        C. Reutenauer, Free Lie Algebras, Oxford University Press, 1993, chapters 1, 5.
    """

    @property
    def primitive_size(self) -> int:
        return sum(count_lyndon_words([0, self.dim], self.depth))

    @property
    def size(self) -> int:
        return sum(self.dim**n for n in range(1, self.depth + 1))

    @property
    def letters(self) -> tuple[int, ...]:
        """The alphabet, `0..dim-1`."""
        return tuple(range(self.dim))

    @property
    def letter_weights(self) -> np.ndarray:
        """Weight of each letter, one."""
        return np.ones(self.dim, np.int64)

    @property
    def _lyndon(self) -> LyndonBasis:
        return lyndon_basis((1,) * self.dim, self.depth)

    @property
    def words(self) -> tuple[tuple[int, ...], ...]:
        """All words as tuples of letter numbers; the same as `basis`."""
        return self._lyndon.words

    @property
    def basis(self) -> tuple[tuple[int, ...], ...]:
        return self._lyndon.words

    @property
    def weights(self) -> np.ndarray:
        return self._lyndon.word_weights

    @property
    def primitive_basis(self) -> tuple[tuple[int, ...], ...]:
        return self._lyndon.lyndon

    @property
    def primitive_weights(self) -> np.ndarray:
        return self._lyndon.lyndon_weights

    @property
    def product_table(self) -> ProductTable:
        return concatenation_table((1,) * self.dim, self.depth)

    @property
    def antipode_map(self) -> SparseMap:
        return reversal_map((1,) * self.dim, self.depth)

    @ft.cached_property
    def primitive_maps(self) -> tuple[SparseMap, SparseMap]:
        return self._lyndon.projection, self._lyndon.expansion

    def expand(self, coordinates):
        """Primitive coordinates to coefficients of `words`; here `from_primitive`."""
        return self.from_primitive(coordinates)

    def cuts(self, key) -> dict:
        return Counter((key[:k], key[k:]) for k in range(len(key) + 1))

    def dual_product(self, left, right) -> dict:
        return Counter(shuffles(left, right))

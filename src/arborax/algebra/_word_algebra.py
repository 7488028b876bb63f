"""The base of algebras of words: concatenation over a weighted alphabet."""

import abc
import dataclasses
import functools as ft
from collections import Counter
from typing import Any

import numpy as np

from ._base import AbstractHopfAlgebra
from ._cuts import shuffles
from ._lyndon import lyndon_basis, LyndonBasis
from ._munthe_kaas_wright import MuntheKaasWright
from ._sparse import ProductTable, SparseMap
from ._words import count_lyndon_words, count_words


@dataclasses.dataclass(frozen=True)
class AbstractWordAlgebra(AbstractHopfAlgebra):
    """Words over `letters`, with concatenation as product.

    Signatures are characters of the shuffle product. The primitive basis is that of
    bracketed Lyndon words, ordered like `basis` by weight, then lexicographically.
    """

    @property
    @abc.abstractmethod
    def letter_counts(self) -> tuple[int, ...]:
        """Number of letters of weight 1, 2, .."""

    @property
    @abc.abstractmethod
    def letters(self) -> tuple[Any, ...]:
        """The alphabet, by weight."""

    @abc.abstractmethod
    def _spell(self, word: tuple[int, ...]) -> tuple[Any, ...]:
        """The key in `basis` of a word of letter numbers."""

    @ft.cached_property
    def letter_weights(self) -> np.ndarray:
        """Weight of each letter."""
        weights = np.arange(1, 1 + len(self.letter_counts))
        return np.repeat(weights, self.letter_counts)

    @property
    def size(self) -> int:
        return sum(count_words([0, *self.letter_counts], self.depth)[1:])

    @property
    def primitive_size(self) -> int:
        return sum(count_lyndon_words([0, *self.letter_counts], self.depth))

    @ft.cached_property
    def _lyndon(self) -> LyndonBasis:
        return lyndon_basis(tuple(self.letter_weights.tolist()), self.depth)

    @property
    def words(self) -> tuple[tuple[int, ...], ...]:
        """All words as tuples of letter numbers, in the order of `basis`."""
        return self._lyndon.words

    @ft.cached_property
    def basis(self) -> tuple[tuple[Any, ...], ...]:
        return tuple(self._spell(word) for word in self._lyndon.words)

    @property
    def weights(self) -> np.ndarray:
        return self._lyndon.word_weights

    @ft.cached_property
    def primitive_basis(self) -> tuple[tuple[Any, ...], ...]:
        return tuple(self._spell(word) for word in self._lyndon.lyndon)

    @property
    def primitive_weights(self) -> np.ndarray:
        return self._lyndon.lyndon_weights

    @property
    def product_table(self) -> ProductTable:
        return _concatenation_table(self._lyndon)

    @property
    def antipode_map(self) -> SparseMap:
        return _reversal_map(self._lyndon)

    @property
    def primitive_maps(self) -> tuple[SparseMap, SparseMap]:
        return self._lyndon.projection, self._lyndon.expansion

    def elementary_step(self, letter: tuple[int, ...]) -> np.ndarray:
        if letter not in self._letter_numbers:
            raise ValueError(f"{self} has no letter {letter}.")
        out = np.zeros(self.primitive_size)
        word = (self._letter_numbers[letter],)
        out[self.primitive_index[self._spell(word)]] = 1.0
        return out

    @ft.cached_property
    def _letter_numbers(self) -> dict[tuple[int, ...], int]:
        return {tuple(np.atleast_1d(a).tolist()): k for k, a in enumerate(self.letters)}

    @property
    def planar(self) -> bool:
        return True

    @ft.cached_property
    def forests(self) -> tuple[tuple[Any, ...], SparseMap]:
        planar = MuntheKaasWright(self.dim, self.depth)
        return planar.basis, planar.from_words(self) @ self.primitive_maps[1]

    def cuts(self, key) -> dict:
        return Counter((key[:k], key[k:]) for k in range(len(key) + 1))

    def dual_product(self, left, right) -> dict:
        return Counter(shuffles(left, right))


@ft.cache
def _concatenation_table(basis: LyndonBasis) -> ProductTable:
    """`<a b, w>` is the sum over splittings `w = u v` into non-empty words."""
    index = basis.word_index
    triples = [
        (k, index[word[:cut]], index[word[cut:]])
        for k, word in enumerate(basis.words)
        for cut in range(1, len(word))
    ]
    table = np.array(triples, np.int64).reshape(-1, 3)
    out, left, right = table.T
    return ProductTable(out, left, right, np.ones(len(table)), len(basis.words))


@ft.cache
def _reversal_map(basis: LyndonBasis) -> SparseMap:
    """Antipode: reverse the word, with the sign of its length."""
    size = len(basis.words)
    columns = [basis.word_index[word[::-1]] for word in basis.words]
    signs = [(-1) ** len(word) for word in basis.words]
    return SparseMap(np.arange(size), columns, signs, (size, size))

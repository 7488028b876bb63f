"""Lyndon bases: bracketed Lyndon words as coordinates of a free Lie algebra."""

import functools as ft

import numpy as np

from ._sparse import SparseMap
from ._words import bracket_expansion, lyndon_words, weighted_words, Word


def _weigh(words: tuple[Word, ...], letter_weights: tuple[int, ...]) -> np.ndarray:
    return np.array([sum(letter_weights[k] for k in word) for word in words])


class LyndonBasis:
    """Words and bracketed Lyndon words over an alphabet with weights.

    Both are ordered by weight, then lexicographically in the order of the letters.
    """

    def __init__(self, letter_weights: tuple[int, ...], depth: int):
        self.words: tuple[Word, ...] = weighted_words(letter_weights, depth)
        self.word_index = {word: k for k, word in enumerate(self.words)}
        self.factors = lyndon_words(letter_weights, depth)
        self.lyndon: tuple[Word, ...] = tuple(self.factors)
        self.word_weights = _weigh(self.words, letter_weights)
        self.lyndon_weights = _weigh(self.lyndon, letter_weights)

    @ft.cached_property
    def expansion(self) -> SparseMap:
        """Coordinates `(lyndon words)` to coefficients of words."""
        return bracket_map(self.factors, self.word_index)

    @ft.cached_property
    def projection(self) -> SparseMap:
        """Coefficients of words of a Lie element to coordinates."""
        rows = [self.word_index[word] for word in self.lyndon]
        order = sorted(range(len(rows)), key=lambda k: self.lyndon[k])
        return triangular_inverse(self.expansion, np.array(rows), order)


def bracket_map(factors: dict, word_index: dict[Word, int]) -> SparseMap:
    """Coefficients of brackets, see `bracket_expansion`, to coefficients of words."""
    entries = [
        (word_index[word], column, value)
        for column, terms in enumerate(bracket_expansion(factors).values())
        for word, value in terms.items()
    ]
    row, column, value = zip(*entries)
    return SparseMap(row, column, value, (len(word_index), len(factors)))


def triangular_inverse(expansion: SparseMap, rows: np.ndarray, order) -> SparseMap:
    """Left inverse of `expansion` that reads only the given rows.

    `rows` are the positions of the leading terms of the columns, and `order` an order
    of the columns in which the square part `expansion[rows]` is unitriangular. The
    inverse of an integer unitriangular matrix is integer.
    """
    square = expansion.take_rows(rows)
    starts, counts = square._rows
    done: dict[int, dict[int, float]] = {}
    for k in order:
        inverse = {k: 1.0}
        for entry in range(starts[k], starts[k] + counts[k]):
            other, value = int(square.column[entry]), square.value[entry]
            if other == k:
                continue
            for column, inner in done[other].items():
                inverse[column] = inverse.get(column, 0.0) - value * inner
        done[k] = inverse
    triples = [(k, rows[c], v) for k, terms in done.items() for c, v in terms.items()]
    row, column, value = zip(*triples)
    return SparseMap(row, column, value, (expansion.shape[1], expansion.shape[0]))


@ft.cache
def lyndon_basis(letter_weights: tuple[int, ...], depth: int) -> LyndonBasis:
    """The shared instance of [`LyndonBasis`][]."""
    return LyndonBasis(letter_weights, depth)

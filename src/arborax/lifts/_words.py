"""Words over a weighted alphabet in the block layout of `Grading`."""

import functools as ft

import numpy as np

from ..algebra import Ito, Shuffle, SparseMap
from ._grading import Grading, word_grading


def alphabet(alg: Shuffle | Ito) -> Grading:
    """The layout of the words of the algebra."""
    counts = np.bincount(alg.letter_weights, minlength=alg.depth + 1)[1:]
    return word_grading(tuple(int(c) for c in counts[: alg.depth]))


@ft.cache
def word_maps(alg: Shuffle | Ito) -> tuple[SparseMap, ...]:
    """Primitive coordinates to coefficients of words, one map for each weight."""
    grading = alphabet(alg)
    weights = alg.letter_weights
    rank = np.concatenate(
        [np.arange(count) for count in np.bincount(weights, minlength=1)[1:]]
    )

    def position(word) -> int:
        total, k = int(weights[list(word)].sum()), int(weights[word[0]])
        start = grading.offset(total, k)
        if len(word) == 1:
            return start + int(rank[word[0]])
        size = grading.sizes[total - k - 1]
        return start + int(rank[word[0]]) * size + position(word[1:])

    rows = [np.zeros(size, np.int64) for size in grading.sizes]
    for k, word in enumerate(alg.words):
        rows[int(weights[list(word)].sum()) - 1][position(word)] = k
    return tuple(alg.primitive_maps[1].take_rows(row) for row in rows)

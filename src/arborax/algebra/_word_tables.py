"""Product and antipode of the concatenation algebra over a weighted alphabet."""

import functools as ft

import numpy as np

from ._lyndon import lyndon_basis
from ._sparse import ProductTable, SparseMap


@ft.cache
def concatenation_table(letter_weights: tuple[int, ...], depth: int) -> ProductTable:
    """`<a b, w>` is the sum over splittings `w = u v` into non-empty words."""
    basis = lyndon_basis(letter_weights, depth)
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
def reversal_map(letter_weights: tuple[int, ...], depth: int) -> SparseMap:
    """Antipode: reverse the word, with the sign of its length."""
    basis = lyndon_basis(letter_weights, depth)
    size = len(basis.words)
    columns = [basis.word_index[word[::-1]] for word in basis.words]
    signs = [(-1) ** len(word) for word in basis.words]
    return SparseMap(np.arange(size), columns, signs, (size, size))

"""Words as forests: the morphism that grafts letter after letter."""

import functools as ft
from typing import Any

import numpy as np

from ._base import AbstractHopfAlgebra
from ._forests import forest_basis
from ._sparse import SparseMap


def _letter_of_tree(letters: tuple, tree) -> tuple[int, float] | None:
    """The letter, with its coefficient, in which a one- or two-vertex tree occurs."""
    colour, children = tree
    if not children:
        return colour, 1.0
    pair = tuple(sorted((colour, children[0][0])))
    if pair not in letters:
        return None
    return letters.index(pair), 1.0 if pair[0] == pair[1] else 0.5


@ft.cache
def words_as_forests(trees: AbstractHopfAlgebra, words: Any, planar: bool) -> SparseMap:
    r"""Coordinates of words to coordinates of forests.

    The morphism sends a letter `i` to the vertex $\bullet_i$ and, from `Ito`, a letter
    `(i, j)` to $S_{ij} = ([j]_i + [i]_j)/2$; concatenation goes to grafting. It maps
    the (extended) tensor signature of a path to its branched signature: the canonical
    lift from `Shuffle`, the Itô lift from `Ito`.

    Row by row: $\langle w\,\ell, f\rangle = \sum \langle w, P\rangle \langle \ell,
    R\rangle$ over the cuts of $f$ whose trunk $R$ has one or two vertices.
    """
    basis = forest_basis(trees.dim, trees.depth, planar=planar)
    out, pruned, trunk, value = basis.letter_cuts()
    letters = {}
    for position in np.unique(trunk):
        found = _letter_of_tree(words.letters, trees.basis[position][0])
        if found is not None:
            letters[int(position)] = found
    keep = np.isin(trunk, list(letters))
    out, pruned, trunk, value = (a[keep] for a in (out, pruned, trunk, value))
    letter = np.array([letters[int(t)][0] for t in trunk])
    value = value * np.array([letters[int(t)][1] for t in trunk])

    word_index = {word: k for k, word in enumerate(words.words)}
    # append[k, letter]: position of the word k followed by the letter.
    append = np.full((words.size + 1, len(words.letters)), -1)
    for word, k in word_index.items():
        *head, last = word
        append[word_index[tuple(head)] if head else words.size, last] = k

    weights = trees.weights
    starts = np.zeros(trees.size + 1, np.int64)
    done: list[np.ndarray] = [np.zeros(0, int), np.zeros(0, int), np.zeros(0)]
    for n in range(1, trees.depth + 1):
        here = weights[out] == n
        whole = here & (pruned < 0)
        rows = [out[whole]]
        columns = [append[words.size, letter[whole]]]
        values = [value[whole]]
        part = here & (pruned >= 0)
        first, last = starts[pruned[part]], starts[pruned[part] + 1]
        repeats = last - first
        entry = np.repeat(first, repeats) + (
            np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        )
        rows.append(np.repeat(out[part], repeats))
        columns.append(append[done[1][entry], np.repeat(letter[part], repeats)])
        values.append(done[2][entry] * np.repeat(value[part], repeats))
        level = SparseMap(
            np.concatenate(rows),
            np.concatenate(columns),
            np.concatenate(values),
            (trees.size, words.size),
        )
        done = [
            np.concatenate(pair)
            for pair in zip(done, (level.row, level.column, level.value))
        ]
        counts = np.bincount(done[0], minlength=trees.size)
        starts = np.concatenate([[0], np.cumsum(counts)])
    row, column, entries = done
    return SparseMap(row, column, entries, (trees.size, words.size))

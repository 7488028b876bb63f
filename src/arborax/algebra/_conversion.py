"""Maps between the algebras.

Every map here is a Hopf-algebra morphism, given as a static sparse map on the
coordinates used everywhere else (pairings, bracket coefficients).
"""

import functools as ft

import numpy as np

from ._base import AbstractHopfAlgebra
from ._forests import forest_basis
from ._grossman_larson import GrossmanLarson
from ._ito import Ito
from ._munthe_kaas_wright import MuntheKaasWright
from ._shuffle import Shuffle
from ._sparse import SparseMap
from ._trees import canonical, symmetry_factor


TreeAlgebra = GrossmanLarson | MuntheKaasWright
WordAlgebra = Shuffle | Ito


def _letter_of_tree(words: WordAlgebra, tree) -> tuple[int, float] | None:
    """The letter, with its coefficient, in which a one- or two-vertex tree occurs."""
    colour, children = tree
    if not children:
        return colour, 1.0
    if isinstance(words, Shuffle):
        return None
    pair = tuple(sorted((colour, children[0][0])))
    return words.letters.index(pair), 1.0 if pair[0] == pair[1] else 0.5


@ft.cache
def _letter_cuts(trees: TreeAlgebra):
    planar = isinstance(trees, MuntheKaasWright)
    return forest_basis(trees.dim, trees.depth, planar).letter_cuts()


@ft.cache
def tree_coordinates(words: WordAlgebra, trees: TreeAlgebra) -> SparseMap:
    r"""Coordinates of words to coordinates of forests.

    The morphism sends a letter `i` to the vertex $\bullet_i$ and, from `Ito`, a letter
    `(i, j)` to $S_{ij} = ([j]_i + [i]_j)/2$; concatenation goes to grafting. It maps
    the (extended) tensor signature of a path to its branched signature: the canonical
    lift from `Shuffle`, the Itô lift from `Ito`.

    Row by row: $\langle w\,\ell, f\rangle = \sum \langle w, P\rangle \langle \ell,
    R\rangle$ over the cuts of $f$ whose trunk $R$ has one or two vertices.
    """
    _check_pair(words, trees)
    out, pruned, trunk, value = _letter_cuts(trees)
    letters = {}
    for position in np.unique(trunk):
        found = _letter_of_tree(words, trees.basis[position][0])
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


@ft.cache
def primitive_conversion(source: AbstractHopfAlgebra, target: AbstractHopfAlgebra):
    """Primitive coordinates of `source` to those of `target`, as a sparse map.

    Exists for `Shuffle` into every algebra, `Ito` into the two tree algebras, and
    `MuntheKaasWright` into `GrossmanLarson` (forgetting the order of branches), with
    equal `dim` and `depth`. In the other direction see
    [`arborax.algebra.ito_from_tree`][].
    """
    _check_pair(source, target)
    if source == target:
        size = source.primitive_size
        return SparseMap(np.arange(size), np.arange(size), np.ones(size), (size, size))
    if isinstance(source, WordAlgebra) and isinstance(target, TreeAlgebra):
        embed = tree_coordinates(source, target)
    elif isinstance(source, Shuffle) and isinstance(target, Ito):
        embed = _letters_to_extended(source, target)
    elif isinstance(source, MuntheKaasWright) and isinstance(target, GrossmanLarson):
        embed = forget_order(source, target)
    else:
        raise ValueError(
            f"there is no Hopf-algebra morphism from {source} to {target}; morphisms "
            "go from Shuffle to all, from Ito to GrossmanLarson and MuntheKaasWright, "
            "and from MuntheKaasWright to GrossmanLarson"
        )
    return target.primitive_maps[0] @ (embed @ source.primitive_maps[1])


def _letters_to_extended(source: Shuffle, target: Ito) -> SparseMap:
    index = {word: k for k, word in enumerate(target.words)}
    rows = [index[word] for word in source.words]
    size = source.size
    return SparseMap(rows, np.arange(size), np.ones(size), (target.size, size))


@ft.cache
def forget_order(planar: MuntheKaasWright, nonplanar: GrossmanLarson) -> SparseMap:
    r"""Coordinates of ordered forests to coordinates of non-planar forests.

    Forgetting the order of branches is a morphism: the coefficient of a non-planar
    forest is the sum over its planar forms, so
    $\langle x, f\rangle = \sigma(f) \sum_p \langle x, p\rangle$.
    """
    _check_pair(planar, nonplanar)
    index = nonplanar.index
    rows = [index[canonical(forest)] for forest in planar.basis]
    values = [symmetry_factor(forest) for forest in planar.basis]
    shape = (nonplanar.size, planar.size)
    return SparseMap(rows, np.arange(planar.size), values, shape)


@ft.cache
def ito_from_tree(trees: TreeAlgebra) -> np.ndarray:
    """Left inverse `(Ito primitive_size, trees.primitive_size)`, dense.

    Recovers the compressed coordinates of a tree log-signature that came from a
    semimartingale; with [`arborax.algebra.primitive_conversion`][] it converts
    non-planar to planar coordinates where that is possible. Anything outside the image
    is projected away (least squares), so apply it to Itô or canonical lifts only.
    """
    ito = Ito(trees.dim, trees.depth)
    embed = primitive_conversion(ito, trees).todense()
    out = np.zeros(embed.shape[::-1])
    for n in range(1, trees.depth + 1):
        rows = np.flatnonzero(trees.primitive_weights == n)
        columns = np.flatnonzero(ito.primitive_weights == n)
        out[np.ix_(columns, rows)] = np.linalg.pinv(embed[np.ix_(rows, columns)])
    return out


def _check_pair(source: AbstractHopfAlgebra, target: AbstractHopfAlgebra) -> None:
    if (source.dim, source.depth) != (target.dim, target.depth):
        raise ValueError(
            f"{source} and {target} differ in dim or depth; build both with the same"
        )

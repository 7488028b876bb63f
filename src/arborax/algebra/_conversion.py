"""Maps between the algebras.

Every map here is a Hopf-algebra morphism, given as a static sparse map on the
coordinates of the library (pairings, bracket coefficients).
"""

import functools as ft
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from ._base import AbstractHopfAlgebra
from ._branched_words import BranchedWords
from ._forest_algebra import AbstractForestAlgebra
from ._grossman_larson import GrossmanLarson
from ._ito import Ito
from ._multi_index import MultiIndex
from ._multi_indices import index_of_tree, symmetry
from ._munthe_kaas_wright import MuntheKaasWright
from ._shuffle import Shuffle
from ._sparse import selection, SparseMap
from ._trees import canonical, symmetry_factor
from ._word_algebra import AbstractWordAlgebra


def word_algebra(alg: AbstractHopfAlgebra, brackets: bool) -> Shuffle | Ito:
    """The word algebra whose image is the signature in `alg`, with brackets or
    without."""
    if isinstance(alg, Shuffle | Ito):
        return alg
    return (Ito if brackets else Shuffle)(alg.dim, alg.depth)


@ft.cache
def primitive_conversion(
    source: AbstractHopfAlgebra, target: AbstractHopfAlgebra
) -> SparseMap:
    """Primitive coordinates of `source` to those of `target`, as a sparse map.

    Exists, with equal `dim` and `depth`, from `Shuffle` into every algebra; from `Ito`
    and `BranchedWords` into those that have their letters (`BranchedWords`, trees,
    `MultiIndex`); from `MuntheKaasWright` into `GrossmanLarson`; and from trees into
    `MultiIndex` and, up to depth 3, `BranchedWords`. Coefficients are integers and
    halves, so that fractions stay exact. For the way back from trees to words see
    [`arborax.algebra.words_from_tree`][].
    """
    _check_pair(source, target)
    if source == target:
        return selection(range(source.primitive_size), source.primitive_size)
    if isinstance(source, AbstractWordAlgebra) and _has_letters(source, target):
        embed = target.from_words(source)
    elif isinstance(source, MuntheKaasWright) and isinstance(target, GrossmanLarson):
        embed = forget_order(source, target)
    elif isinstance(source, GrossmanLarson) and isinstance(target, MultiIndex):
        embed = forget_shape(source, target)
    elif isinstance(source, GrossmanLarson) and target.tree_algebra == source:
        # An isomorphism; halves are the only fractions in its inverse.
        return SparseMap.from_dense(np.rint(2 * words_from_tree(source, target)) / 2)
    elif isinstance(source, MuntheKaasWright) and target.tree_algebra is not None:
        middle = GrossmanLarson(source.dim, source.depth)
        return primitive_conversion(middle, target) @ primitive_conversion(
            source, middle
        )
    else:
        raise ValueError(
            f"no canonical morphism from {source} to {target}; these go from Shuffle "
            "to Ito to BranchedWords to trees, from planar to other trees, and from "
            "trees to MultiIndex or, up to depth 3, BranchedWords. From trees to words "
            "see `words_from_tree`"
        )
    return target.primitive_maps[0] @ (embed @ source.primitive_maps[1])


def _has_letters(source: AbstractWordAlgebra, target: AbstractHopfAlgebra) -> bool:
    if not isinstance(target, AbstractWordAlgebra):
        return True
    return len(source.letter_counts) <= len(target.letter_counts)


@ft.cache
def forget_order(planar: MuntheKaasWright, nonplanar: GrossmanLarson) -> SparseMap:
    r"""Coordinates of ordered forests to coordinates of non-planar forests.

    Forgetting the order of branches is a morphism: the coefficient of a non-planar
    forest is the sum over its planar forms, so
    $\langle x, f\rangle = \sigma(f) \sum_p \langle x, p\rangle$.
    """
    return _forget(planar, nonplanar, canonical, symmetry_factor)


@ft.cache
def forget_shape(trees: GrossmanLarson, indices: MultiIndex) -> SparseMap:
    r"""Coordinates of non-planar forests to coordinates of multi-indices.

    Keeping only the label and the number of children of each vertex is a morphism: in
    coefficients a sum over the fibre, so
    $\langle x, \beta\rangle = \sigma(\beta) \sum_f \langle x, f\rangle / \sigma(f)$.
    """
    return _forget(
        trees,
        indices,
        lambda forest: tuple(sorted(map(index_of_tree, forest))),
        lambda forest: (
            symmetry(tuple(map(index_of_tree, forest))) // symmetry_factor(forest)
        ),
    )


def _forget(
    source: AbstractForestAlgebra,
    target: AbstractHopfAlgebra,
    image: Callable,
    value: Callable,
) -> SparseMap:
    _check_pair(source, target)
    rows = [target.index[image(forest)] for forest in source.basis]
    values = [value(forest) for forest in source.basis]
    shape = (target.size, source.size)
    return SparseMap(rows, np.arange(source.size), values, shape)


@ft.cache
def words_from_tree(
    trees: AbstractForestAlgebra, words: Ito | BranchedWords, exact: bool = False
) -> np.ndarray:
    """Left inverse `(words.primitive_size, trees.primitive_size)`, dense.

    Recovers the word coordinates of a tree log-signature that came from words: for
    `Ito` a semimartingale, for `BranchedWords` a branched rough path given up to weight
    three. Other parts are projected away (least squares). It also takes non-planar to
    planar coordinates where that is possible.

    With `exact` the entries are fractions: a left inverse without rounding, of as many
    trees of each weight as there are words. Other parts are not projected but lost.
    """
    embed = primitive_conversion(words, trees).todense()
    out = np.full(embed.shape[::-1], Fraction(0)) if exact else np.zeros(embed.T.shape)
    for n in range(1, trees.depth + 1):
        rows = np.flatnonzero(trees.primitive_weights == n)
        columns = np.flatnonzero(words.primitive_weights == n)
        block = embed[np.ix_(rows, columns)]
        inverse = _eliminate(block) if exact else np.linalg.pinv(block)
        out[np.ix_(columns, rows)] = inverse
    return out


def _eliminate(matrix: np.ndarray) -> np.ndarray:
    """A left inverse in fractions, by elimination with the first row that serves."""
    rows, columns = matrix.shape
    left = [{k: Fraction(v) for k, v in enumerate(row) if v} for row in matrix.tolist()]
    right = [{k: Fraction(1)} for k in range(rows)]
    out = np.full((columns, rows), Fraction(0))
    free, pivots = set(range(rows)), []
    for column in range(columns):
        pivot = min(k for k in free if column in left[k])
        free.remove(pivot)
        pivots.append(pivot)
        scale = 1 / left[pivot][column]
        for part in (left, right):
            part[pivot] = {k: scale * v for k, v in part[pivot].items()}
        for k in (*free, *pivots[:-1]):
            factor = left[k].get(column, Fraction(0))
            for part in (left, right) if factor else ():
                part[k] = _minus(part[k], factor, part[pivot])
    for column, pivot in enumerate(pivots):
        for k, value in right[pivot].items():
            out[column, k] = value
    return out


def _minus(row: dict, factor: Fraction, other: dict) -> dict:
    """`row - factor * other`, without zeros."""
    out = dict(row)
    for k, value in other.items():
        out[k] = out.get(k, 0) - factor * value
    return {k: v for k, v in out.items() if v}


def _check_pair(source: AbstractHopfAlgebra, target: AbstractHopfAlgebra) -> None:
    if (source.dim, source.depth) != (target.dim, target.depth):
        raise ValueError(
            f"{source} and {target} differ in dim or depth; build both with the same"
        )

"""Maps between the algebras.

Every map here is a Hopf-algebra morphism, given as a static sparse map on the
coordinates used everywhere else (pairings, bracket coefficients).
"""

import functools as ft

import numpy as np

from ._base import AbstractHopfAlgebra
from ._grossman_larson import GrossmanLarson
from ._ito import Ito
from ._munthe_kaas_wright import MuntheKaasWright
from ._shuffle import Shuffle
from ._sparse import SparseMap
from ._trees import canonical, symmetry_factor


TreeAlgebra = GrossmanLarson | MuntheKaasWright
WordAlgebra = Shuffle | Ito


def word_algebra(alg: AbstractHopfAlgebra, brackets: bool) -> WordAlgebra:
    """The word algebra whose image is the signature in `alg`, with brackets or
    without."""
    if isinstance(alg, WordAlgebra):
        return alg
    return (Ito if brackets else Shuffle)(alg.dim, alg.depth)


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
    to_ito = isinstance(source, Ito) and target.calculus == "stratonovich"
    if isinstance(source, WordAlgebra) and not to_ito:
        embed = target.from_words(source)
    elif isinstance(source, MuntheKaasWright) and isinstance(target, GrossmanLarson):
        embed = forget_order(source, target)
    else:
        raise ValueError(
            f"there is no Hopf-algebra morphism from {source} to {target}; morphisms "
            "go from Shuffle to all, from Ito to GrossmanLarson and MuntheKaasWright, "
            "and from MuntheKaasWright to GrossmanLarson"
        )
    return target.primitive_maps[0] @ (embed @ source.primitive_maps[1])


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

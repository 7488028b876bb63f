"""Coordinate orders and bases of other libraries.

Each function returns a [`SparseMap`][] `m` with `m(ours) == theirs`, so that results
can be compared or data moved over. `SparseMap.transpose` undoes a mere reordering.
Log-signatures of iisignature (bracketed Lyndon words) are in our order.
"""

import functools as ft
import itertools as it

import numpy as np

from ._base import AbstractHopfAlgebra
from ._forest_algebra import AbstractForestAlgebra
from ._lyndon import bracket_map
from ._shuffle import Shuffle
from ._sparse import selection, SparseMap
from ._trees import canonical


def _pysiglib_keys(alg: AbstractHopfAlgebra) -> list[tuple]:
    """Trees by weight, branches in the outer loop, the root's colour in the inner; and
    ordered forests likewise, tree by tree, in the planar case."""
    trees: list[tuple[int, tuple]] = []  # (weight, tree)

    def sequences(rest: int, first: int = 0):
        if rest == 0:
            yield ()
        for position in range(first, len(trees)):
            weight, tree = trees[position]
            if weight <= rest:
                for tail in sequences(rest - weight, 0 if alg.planar else position):
                    yield (tree, *tail)

    for n in range(1, alg.depth + 1):
        branches = list(sequences(n - 1))
        trees += [(n, (c, part)) for part in branches for c in range(alg.dim)]
    if not alg.planar:
        return [canonical((tree,)) for _, tree in trees]
    return [forest for n in range(1, alg.depth + 1) for forest in sequences(n)]


@ft.cache
def to_pysiglib(alg: AbstractHopfAlgebra) -> SparseMap:
    """Signature coordinates in the order of pysiglib 4.0, without the unit.

    `Shuffle`: `sig`, the same order as ours. `GrossmanLarson`:
    `branched_sig(planar=False)`, trees only. `MuntheKaasWright`:
    `branched_sig(planar=True)`, ordered forests.
    """
    if isinstance(alg, Shuffle):
        return selection(range(alg.size), alg.size)
    if isinstance(alg, AbstractForestAlgebra):
        return selection([alg.index[key] for key in _pysiglib_keys(alg)], alg.size)
    raise ValueError(f"pysiglib has no counterpart of {alg}")


@ft.cache
def to_roughpy(alg: Shuffle) -> SparseMap:
    """Log-signature coordinates in roughpy's Hall basis (iisignature's `"H"`)."""
    factors: dict[tuple, tuple | None] = {(i,): None for i in range(alg.dim)}
    weights = [1] * alg.dim
    for n in range(2, alg.depth + 1):
        keys = list(factors)
        place = {key: k for k, key in enumerate(keys)}
        for weight in range(1, n // 2 + 1):
            for i, j in it.combinations(range(len(keys)), 2):
                parents = factors[keys[j]]
                fits = (weights[i], weights[j]) == (weight, n - weight)
                if fits and (parents is None or place[parents[0]] <= i):
                    factors[keys[i], keys[j]] = (keys[i], keys[j])
                    weights.append(n)
    # Hall to Lyndon brackets: integer, with integer inverse.
    change = alg.primitive_maps[0] @ bracket_map(factors, alg.index)
    return SparseMap.from_dense(np.rint(np.linalg.inv(change.todense())))

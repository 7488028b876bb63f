"""Coordinate orders and bases of other libraries.

Each function returns a [`SparseMap`][] `m` with `m(ours) == theirs`, so that results
can be compared or data moved over. `SparseMap.transpose` undoes a mere reordering.
"""

import functools as ft
import itertools as it

import numpy as np

from ._base import AbstractHopfAlgebra
from ._grossman_larson import GrossmanLarson
from ._munthe_kaas_wright import MuntheKaasWright
from ._shuffle import Shuffle
from ._sparse import SparseMap
from ._trees import canonical


def _selection(positions: list[int], size: int) -> SparseMap:
    count = len(positions)
    return SparseMap(np.arange(count), positions, np.ones(count), (count, size))


def _pysiglib_trees(dim: int, depth: int, planar: bool) -> list[list[tuple]]:
    """Trees by weight: branches in the outer loop, the root's colour in the inner."""
    flat: list[tuple[int, tuple]] = []  # (weight, tree)
    levels: list[list[tuple]] = [[]]

    def branches(rest: int, first: int):
        if rest == 0:
            yield ()
            return
        for position in range(first, len(flat)):
            weight, tree = flat[position]
            if weight <= rest:
                for tail in branches(rest - weight, 0 if planar else position):
                    yield (tree, *tail)

    for n in range(1, depth + 1):
        level = [
            (colour, children)
            for children in branches(n - 1, 0)
            for colour in range(dim)
        ]
        levels.append(level)
        flat.extend((n, tree) for tree in level)
    return levels


@ft.cache
def to_pysiglib(alg: AbstractHopfAlgebra) -> SparseMap:
    """Signature coordinates in the order of pysiglib 4.0, without the unit.

    `Shuffle`: `sig`, the same order as ours. `GrossmanLarson`:
    `branched_sig(planar=False)`, trees only. `MuntheKaasWright`:
    `branched_sig(planar=True)`, ordered forests.
    """
    if isinstance(alg, Shuffle):
        return _selection(list(range(alg.size)), alg.size)
    if isinstance(alg, GrossmanLarson):
        trees = it.chain(*_pysiglib_trees(alg.dim, alg.depth, planar=False))
        return _selection([alg.index[canonical((t,))] for t in trees], alg.size)
    if isinstance(alg, MuntheKaasWright):
        levels = _pysiglib_trees(alg.dim, alg.depth, planar=True)

        def forests(rest: int):
            if rest == 0:
                yield ()
                return
            for weight in range(1, rest + 1):
                for tree in levels[weight]:
                    for tail in forests(rest - weight):
                        yield (tree, *tail)

        keys = it.chain.from_iterable(forests(n) for n in range(1, alg.depth + 1))
        return _selection([alg.index[key] for key in keys], alg.size)
    raise ValueError(f"pysiglib has no counterpart of {alg}")


@ft.cache
def to_iisignature(alg: Shuffle) -> SparseMap:
    """Log-signature coordinates in the default basis of iisignature: the same as ours.

    Bracketed Lyndon words by length, then lexicographically.
    """
    return _selection(list(range(alg.primitive_size)), alg.primitive_size)


@ft.cache
def to_roughpy(alg: Shuffle) -> SparseMap:
    """Log-signature coordinates in roughpy's Hall basis (iisignature's `"H"`)."""
    keys: list[tuple[int, tuple | None]] = [(1, None) for _ in range(alg.dim)]
    for n in range(2, alg.depth + 1):
        fresh = []
        for weight in range(1, n // 2 + 1):
            for i, (wi, _) in enumerate(keys):
                for j, (wj, parents) in enumerate(keys):
                    right = wi == weight and wj == n - weight and j > i
                    if right and (parents is None or parents[0] <= i):
                        fresh.append((n, (i, j)))
        keys.extend(fresh)
    expansions: list[dict[tuple, int]] = []
    for position, (_, parents) in enumerate(keys):
        if parents is None:
            expansions.append({(position,): 1})
            continue
        terms: dict[tuple, int] = {}
        for u, a in expansions[parents[0]].items():
            for v, b in expansions[parents[1]].items():
                terms[u + v] = terms.get(u + v, 0) + a * b
                terms[v + u] = terms.get(v + u, 0) - a * b
        expansions.append(terms)
    embed = np.zeros((alg.size, len(keys)))
    for column, terms in enumerate(expansions):
        for word, value in terms.items():
            embed[alg.index[word], column] = value
    # Hall to Lyndon brackets: integer, with integer inverse.
    inverse = np.rint(np.linalg.inv(alg.primitive_maps[0].todense() @ embed))
    row, column = np.nonzero(inverse)
    return SparseMap(row, column, inverse[row, column], inverse.shape)

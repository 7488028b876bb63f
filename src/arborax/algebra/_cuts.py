"""Cuts of labelled forests: the coproducts dual to the grafting products.

Products graft the trees of the left factor on the right factor. Dually, a forest is cut
into a pruned part and a trunk: `<a * b, f> = sum over cuts of <a, pruned> <b, trunk>`.
"""

import functools as ft
from collections import Counter
from collections.abc import Callable, Iterator

from ._trees import Forest


Terms = dict  # {(pruned forest, trunk forest): multiplicity}


@ft.cache
def shuffles(left: tuple, right: tuple) -> tuple[tuple, ...]:
    """All interleavings of two tuples, with repetitions."""
    if not left:
        return (right,)
    if not right:
        return (left,)
    first = tuple((left[0], *rest) for rest in shuffles(left[1:], right))
    return first + tuple((right[0], *rest) for rest in shuffles(left, right[1:]))


def _times(left: Terms, right: Terms, planar: bool) -> Terms:
    """Cuts of two neighbours: pruned parts multiply, trunks stand in order."""
    out: Counter = Counter()
    for (pruned, trunk), a in left.items():
        for (pruned_, trunk_), b in right.items():
            for joined, ways in dual_product(pruned, pruned_, planar).items():
                out[joined, trunk + trunk_] += a * b * ways
    return out


def _keep_roots(forest: Forest, planar: bool) -> Terms:
    """Cuts below which every root of the forest stays in the trunk."""
    out: Terms = {((), ()): 1}
    for colour, children in forest:
        kept = {
            (pruned, ((colour, trunk),)): times
            for (pruned, trunk), times in cuts(children, planar).items()
        }
        out = _times(out, kept, planar)
    return out


def cuts(forest: Forest, planar: bool) -> Terms:
    """All cuts of a forest, the empty and the total one included.

    Non-planar: each tree is pruned whole or keeps its root, vertex by vertex.
    Planar: at every vertex, and at the imaginary vertex below the forest, a *leftmost*
    run of branches is pruned, and the pruned runs are shuffled (grafted trees stand
    left of what was there and keep their order).
    """
    out: Counter = Counter()
    if planar:
        for k in range(len(forest) + 1):
            prefix: Terms = {(forest[:k], ()): 1}
            out.update(_times(prefix, _keep_roots(forest[k:], planar), planar))
        return out
    terms: Terms = {((), ()): 1}
    for tree in forest:
        whole: Counter = Counter({((tree,), ()): 1})
        whole.update(_keep_roots((tree,), planar))
        terms = _times(terms, whole, planar)
    return terms


def star_word(trees: tuple) -> dict[Forest, int]:
    """The planar product `t1 * t2 * ... * tk` of trees, expanded in forests."""
    out: Counter = Counter({(): 1})
    for tree in reversed(trees):
        step: Counter = Counter()
        for forest, times in out.items():
            for grafted in graft(tree, forest):
                step[grafted] += times
        out = step
    return dict(out)


def graft(tree, forest: Forest) -> Iterator[Forest]:
    """The tree kept, left of the forest, or grafted on one of its vertices, left of
    the branches there."""
    yield (tree, *forest)
    for k, (colour, children) in enumerate(forest):
        for grown in graft(tree, children):
            yield (*forest[:k], (colour, grown), *forest[k + 1 :])


def dual_product(left: Forest, right: Forest, planar: bool) -> Counter:
    """Product of the dual algebra: shuffle of ordered forests, or disjoint union."""
    return Counter(shuffles(left, right) if planar else (left + right,))


def dual_antipode(key, cuts: Callable, multiply: Callable, done: dict) -> dict:
    """Antipode of a commutative Hopf algebra, `S(f) = -f - sum S(left) . right` over
    the proper cuts of `f`. Results on the way are kept in `done`."""
    if key not in done:
        out: Counter = Counter({key: -1})
        for (left, right), times in cuts(key).items():
            if left and right:
                inner = dual_antipode(left, cuts, multiply, done)
                for part, value in inner.items():
                    for joined, ways in multiply(part, right).items():
                        out[joined] -= times * value * ways
        done[key] = {f: c for f, c in out.items() if c}
    return done[key]

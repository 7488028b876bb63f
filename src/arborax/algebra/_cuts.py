"""Cuts of labelled forests: the coproducts dual to the grafting products.

The products of MATH (Grossman-Larson and Munthe-Kaas-Wright) graft the trees of the
left factor on the right factor. Dually, a forest is cut into a pruned part and a
trunk: `<a * b, f> = sum over cuts of <a, pruned> <b, trunk>`.

Everything here acts on forests with arbitrary colours. The algebras use it on
shapes whose vertices carry distinct labels, so that the work does not grow with the
number of colours.
"""

import functools as ft
from collections import Counter

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
            if planar:
                for joined in shuffles(pruned, pruned_):
                    out[joined, trunk + trunk_] += a * b
            else:
                out[pruned + pruned_, trunk + trunk_] += a * b
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


def star_word(trees: tuple, planar: bool = True) -> dict[Forest, int]:
    """The product `t1 * t2 * ... * tk` of trees, expanded in forests."""
    out: dict[Forest, int] = {(): 1}
    for tree in reversed(trees):
        step: Counter = Counter()
        for forest, times in out.items():
            for grafted in graft((tree,), forest):
                step[grafted] += times
        out = step
    return dict(out)


def graft(left: Forest, right: Forest) -> list[Forest]:
    """All results of grafting the trees of `left` on `right`, or keeping them.

    Planar convention: grafted trees go left of the existing branches and keep their
    order, kept trees stand left. Forget the order for the non-planar product.
    """
    results = []
    for targets in _assignments(len(left), 1 + _size(right)):
        groups: dict[int, list] = {}
        for tree, target in zip(left, targets):
            groups.setdefault(target, []).append(tree)
        rebuilt, _ = _insert(right, groups, 1)
        results.append((*groups.get(0, ()), *rebuilt))
    return results


def _assignments(count: int, targets: int):
    if count == 0:
        yield ()
        return
    for rest in _assignments(count - 1, targets):
        for target in range(targets):
            yield (*rest, target)


def _size(forest: Forest) -> int:
    return sum(1 + _size(children) for _, children in forest)


def _insert(forest: Forest, groups: dict[int, list], position: int):
    """Insert each group as leftmost branches of the vertex of that preorder number."""
    trees = []
    for colour, children in forest:
        own = tuple(groups.get(position, ()))
        above, position = _insert(children, groups, position + 1)
        trees.append((colour, own + above))
    return tuple(trees), position


def dual_product(left: Forest, right: Forest, planar: bool) -> Counter:
    """Product of the dual algebra: shuffle of ordered forests, or disjoint union."""
    if planar:
        return Counter(shuffles(left, right))
    return Counter({left + right: 1})


def dual_antipode(forest: Forest, planar: bool) -> dict[Forest, int]:
    """Antipode of the dual (commutative) Hopf algebra on a labelled forest.

    `S(f) = -f - sum S(pruned) . trunk` over the proper cuts.
    """
    out: Counter = Counter()
    if not forest:
        return {(): 1}
    for (pruned, trunk), times in cuts(forest, planar).items():
        if not trunk:
            out[pruned] -= times
            continue
        if not pruned:
            continue
        # S is linear and the cut is proper: both parts are smaller than the forest.
        for part, value in dual_antipode(pruned, planar).items():
            for joined, ways in dual_product(part, trunk, planar).items():
                out[joined] -= times * value * ways
    return {f: c for f, c in out.items() if c}

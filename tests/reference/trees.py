"""Trees `(colour, (child, ...))` and forests (tuples of trees), by plain recursion."""

import itertools as it
import math
from functools import cache


def weight(x):
    """Number of vertices of a tree or of a forest."""
    if is_tree(x):
        return 1 + weight(x[1])
    return sum(weight(t) for t in x)


def is_tree(x):
    return len(x) == 2 and isinstance(x[0], int)


def canonical(x):
    """Sort the children of every vertex, and the trees of a forest."""
    if is_tree(x):
        return (x[0], canonical(x[1]))
    return tuple(sorted(canonical(t) for t in x))


@cache
def planar_trees(dim, n):
    """All planar trees with exactly n vertices."""
    return tuple((c, f) for c in range(dim) for f in ordered_forests(dim, n - 1))


@cache
def ordered_forests(dim, n):
    """All ordered forests with exactly n vertices in total."""
    if n == 0:
        return ((),)
    return tuple(
        (t, *f)
        for k in range(1, n + 1)
        for t in planar_trees(dim, k)
        for f in ordered_forests(dim, n - k)
    )


@cache
def nonplanar_trees(dim, n):
    return tuple(sorted({canonical(t) for t in planar_trees(dim, n)}))


@cache
def forests(dim, n):
    return tuple(sorted({canonical(f) for f in ordered_forests(dim, n)}))


def symmetry(x):
    """sigma of a tree or forest: the number of automorphisms, colours kept."""
    if is_tree(x):
        return symmetry(x[1])
    x = canonical(x)
    repeats = math.prod(math.factorial(x.count(t)) for t in set(x))
    return repeats * math.prod(symmetry(t) for t in x)


def factorial(x):
    """Tree factorial: product over the vertices of the size of the subtree there."""
    if is_tree(x):
        return weight(x) * factorial(x[1])
    return math.prod(factorial(t) for t in x)


def vertices(forest):
    """Addresses of all vertices: (i, j, ...) is child j of ... of tree i."""
    for i, (_, children) in enumerate(forest):
        yield (i,)
        for rest in vertices(children):
            yield (i, *rest)


def graft_all(left, right):
    """Every way to keep or graft each tree of `left` on `right`, as ordered forests.

    Kept trees stand left, in order; grafted ones go left of the children, in order.
    """
    for places in it.product([None, *vertices(right)], repeat=len(left)):
        yield _place(right, (), dict(_group(left, places)))


def _group(left, places):
    groups = {}
    for tree, place in zip(left, places):
        groups.setdefault(place, []).append(tree)
    return ((place, tuple(trees)) for place, trees in groups.items())


def _place(forest, address, groups):
    kept = groups.get(None, ()) if not address else ()
    new = []
    for i, (colour, children) in enumerate(forest):
        here = (*address, i)
        new.append((colour, groups.get(here, ()) + _place(children, here, groups)))
    return (*kept, *new)


def shuffle(a, b):
    """All interleavings of two tuples, with repetition."""
    for positions in it.combinations(range(len(a) + len(b)), len(a)):
        left, right = iter(a), iter(b)
        yield tuple(
            next(left) if i in positions else next(right)
            for i in range(len(a) + len(b))
        )

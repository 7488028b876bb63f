"""Rooted trees and forests as nested tuples.

A tree is `(colour, (child, ...))` and a forest a tuple of trees. In a *planar* tree
the order of the children matters. A *non-planar* tree is kept in canonical form:
children, and the trees of a forest, sorted as Python sorts tuples.
"""

import functools as ft
import math
from collections import Counter
from collections.abc import Iterable


Tree = tuple  # (int, tuple[Tree, ...]); recursive aliases defeat run-time checkers
Forest = tuple  # tuple[Tree, ...]


def is_tree(key: tuple) -> bool:
    """Whether `key` is a tree rather than a forest."""
    return len(key) == 2 and not isinstance(key[0], tuple) and isinstance(key[1], tuple)


def _as_forest(key: tuple) -> Forest:
    return (key,) if is_tree(key) else key


def weight(key: tuple) -> int:
    """Number of vertices of a tree or forest."""
    return sum(1 + weight(children) for _, children in _as_forest(key))


def canonical(key: tuple) -> tuple:
    """Non-planar canonical form of a tree or forest: sorted at every vertex."""
    if is_tree(key):
        return (key[0], canonical(key[1]))
    return tuple(sorted(canonical(tree) for tree in key))


def symmetry_factor(key: tuple) -> int:
    """Order of the automorphism group of a non-planar coloured tree or forest."""
    if is_tree(key):
        return symmetry_factor(key[1])
    factor = 1
    for tree, times in Counter(canonical(key)).items():
        factor *= math.factorial(times) * symmetry_factor(tree) ** times
    return factor


def tree_factorial(key: tuple) -> int:
    """Product over all vertices of the size of the subtree above the vertex."""
    if is_tree(key):
        return weight(key) * tree_factorial(key[1])
    return math.prod(tree_factorial(tree) for tree in key)


def level_sequence(tree: Tree, level: int = 1) -> tuple[int, ...]:
    """Levels of the vertices in preorder, the root being at level one."""
    above = (level_sequence(child, level + 1) for child in tree[1])
    return (level,) + tuple(entry for part in above for entry in part)


def colours(key: tuple) -> tuple:
    """Colours of the vertices in preorder."""
    if is_tree(key):
        return (key[0], *colours(key[1]))
    return tuple(colour for tree in key for colour in colours(tree))


def recolour(key: tuple, new: Iterable) -> tuple:
    """The same shape with colours `new`, given in preorder."""
    new = iter(new)  # shared by the recursion
    if is_tree(key):
        return (next(new), recolour(key[1], new))
    return tuple([(next(new), recolour(children, new)) for _, children in key])


def _descending(tree: Tree) -> tuple[int, ...]:
    return tuple(-level for level in level_sequence(tree))


def _shape_order(tree: Tree) -> tuple:
    return (weight(tree), _descending(tree))


def _forest_order(forest: Forest) -> tuple:
    return (len(forest), tuple(_shape_order(tree) for tree in forest))


def arrange(key: tuple) -> tuple:
    """A planar form whose uncoloured shape depends on the non-planar shape alone.

    Children stand in Beyer-Hedetniemi order, larger level sequences first; equal
    shapes are ordered by colours, so that the result is canonical as well.
    """
    if is_tree(key):
        return (key[0], arrange(key[1]))
    trees = [arrange(tree) for tree in key]
    return tuple(sorted(trees, key=lambda tree: (_descending(tree), colours(tree))))


@ft.cache
def tree_shapes(n: int, planar: bool) -> tuple[Tree, ...]:
    """Uncoloured trees (all colours 0) of `n` vertices in Beyer-Hedetniemi order.

    Decreasing level sequences: the ladder comes first, the corolla last.
    Non-planar shapes are in the form of [`arrange`][].
    """
    if n == 0:
        return ()
    trees = [(0, forest) for forest in forest_shapes(n - 1, planar)]
    return tuple(sorted(trees, key=_shape_order))


@ft.cache
def forest_shapes(n: int, planar: bool) -> tuple[Forest, ...]:
    """Uncoloured forests of `n` vertices, by number of trees, then tree by tree."""

    def build(rest: int, bound: int | None):
        if rest == 0:
            yield ()
            return
        for size in range(1, rest + 1):
            for rank, tree in enumerate(tree_shapes(size, planar)):
                index = offsets[size] + rank
                if planar or bound is None or index <= bound:
                    for tail in build(rest - size, index):
                        yield (tree, *tail)

    offsets, total = {}, 0
    for size in range(1, n + 1):
        offsets[size] = total
        total += len(tree_shapes(size, planar))
    forests = list(build(n, None))
    if not planar:
        forests = [arrange(forest) for forest in forests]
    return tuple(sorted(forests, key=_forest_order))


def count_multisets(members: list[int]) -> list[int]:
    """Numbers of multisets of each total weight, from those of members (entry 0: no
    member)."""
    counts = [1]
    for n in range(1, len(members)):
        total = 0
        for k in range(1, n + 1):
            divisors = sum(m * members[m] for m in range(1, k + 1) if k % m == 0)
            total += divisors * counts[n - k]
        counts.append(total // n)
    return counts


def count_nonplanar(dim: int, depth: int) -> tuple[list[int], list[int]]:
    """Numbers of non-planar trees and forests of each weight `0..depth`."""
    trees = [0]
    for n in range(depth):
        trees.append(dim * count_multisets(trees)[n])
    return trees, count_multisets(trees)


def count_planar(dim: int, depth: int) -> tuple[list[int], list[int]]:
    """Numbers of planar trees and ordered forests of each weight `0..depth`."""
    catalan = [math.comb(2 * n, n) // (n + 1) for n in range(depth + 1)]
    trees = [0] + [catalan[n - 1] * dim**n for n in range(1, depth + 1)]
    forests = [catalan[n] * dim**n for n in range(depth + 1)]
    return trees, forests

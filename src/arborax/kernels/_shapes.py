"""Unlabelled tree shapes, for random features of word and tree kernels."""

import functools as ft
import math


Shape = tuple  # children of the root, sorted; a vertex is ()


@ft.lru_cache(None)
def forest_shapes(weight: int) -> tuple[tuple[Shape, ...], ...]:
    """Forests of unlabelled trees with `weight` vertices, as sorted tuples."""
    if weight == 0:
        return ((),)
    found = set()
    for size in range(1, weight + 1):
        for tree in forest_shapes(size - 1):
            for rest in forest_shapes(weight - size):
                found.add(tuple(sorted((tree, *rest))))
    return tuple(sorted(found))


def ladder(weight: int) -> Shape:
    """The tree without branches."""
    shape: Shape = ()
    for _ in range(weight - 1):
        shape = (shape,)
    return shape


def shape_symmetry(forest: tuple[Shape, ...]) -> int:
    """Symmetry factor of an unlabelled forest."""
    own = math.prod(math.factorial(forest.count(t)) for t in set(forest))
    return own * math.prod(shape_symmetry(t) for t in forest)

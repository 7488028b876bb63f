"""Iterated sums of scalar functions along paths, indexed by unlabelled trees.

The first sum of a chain is explicit (`sum du = u_n - u_0`), and so is the last one,
read backwards: `sum_n P_n du_n = sum_k dP_k (u_end - u_{k+1})`. Chains of up to three
functions are then plain reductions.
"""

import functools as ft
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array


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


class _Trees:
    """Increments, paths and end values of trees with one function for each vertex."""

    def __init__(self, functions: list[Array], bracket):
        self.u = functions
        self.du = [u[:, 1:] - u[:, :-1] for u in functions]
        self.bracket = bracket
        self._corrections: dict[tuple[int, int], Array] = {}

    def start(self, i: int) -> Array:
        """`u_n - u_0` before each step."""
        return self.u[i][:, :-1] - self.u[i][:, :1]

    def rest(self, i: int) -> Array:
        """`u_end - u_{n+1}` after each step."""
        return self.u[i][:, -1:] - self.u[i][:, 1:]

    def correction(self, i: int, j: int) -> Any:
        """Step value of the two-vertex tree."""
        pair = (min(i, j), max(i, j))
        if pair not in self._corrections:
            value = (self.du[i] * self.du[j] - self.bracket(*pair)) / 2
            self._corrections[pair] = value
        return self._corrections[pair]

    def split(self, tree: Shape, first: int) -> list[tuple[Shape, int]]:
        """Children with the number of their root vertex."""
        out, place = [], first + 1
        for child in tree:
            out.append((child, place))
            place += _vertices(child)
        return out

    def product(self, parts: list[tuple[Shape, int]]) -> Any:
        return math.prod(self.path(tree, place) for tree, place in parts)

    def increment(self, tree: Shape, root: int) -> Array:
        children = self.split(tree, root)
        return self.product(children) * self.du[root] + self._two_vertex(children, root)

    def _two_vertex(self, children: list, root: int) -> Any:
        """Steps in which the root and one child move together."""
        if self.bracket is None:
            return 0
        total: Any = 0
        for r, (child, place) in enumerate(children):
            above = children[:r] + children[r + 1 :] + self.split(child, place)
            total = total + self.product(above) * self.correction(place, root)
        return total

    def path(self, tree: Shape, root: int) -> Array:
        if tree == ():
            return self.start(root)
        return _sums_before(self.increment(tree, root))

    def end(self, tree: Shape, root: int) -> Array:
        if tree == ():
            return self.u[root][:, -1] - self.u[root][:, 0]
        children = self.split(tree, root)
        if len(children) > 1:
            return jnp.sum(self.increment(tree, root), axis=1)
        child, place = children[0]
        total = self.increment(child, place) * self.rest(root)
        return jnp.sum(total + self._two_vertex(children, root), axis=1)


def _sums_before(x: Array) -> Array:
    """Sums over the entries before each one, without itself, along axis 1."""
    return jnp.cumsum(x, axis=1) - x


def _vertices(tree: Shape) -> int:
    return 1 + sum(_vertices(t) for t in tree)


def _geometric_word(u: list[Array], length: int) -> Array:
    """Word `1..length` of the piecewise linear path with channels `u`."""
    if length == 1:
        return u[0][:, -1] - u[0][:, 0]
    du = [v[:, 1:] - v[:, :-1] for v in u[:length]]
    prefixes = [jnp.ones_like(du[0])]
    for j in range(1, length - 1):
        if j == 1:
            prefixes.append(u[0][:, :-1] - u[0][:, :1])
            continue
        step = jnp.ones_like(du[0])
        total: Any = 0
        for i in range(1, j + 1):  # the last i letters fall into this segment
            step = step * du[j - i]
            total = total + prefixes[j - i] * step * (1 / math.factorial(i))
        prefixes.append(_sums_before(total))
    last = length - 1
    rest = u[last][:, -1:] - u[last][:, 1:]
    step = jnp.ones_like(du[0])
    total: Any = 0
    for i in range(1, length):  # letters last-i..last-1 in one segment, then the last
        step = step * du[last - i]
        prefix = prefixes[last - i]
        after = rest * (1 / math.factorial(i))
        same = du[last] * (1 / math.factorial(i + 1))
        total = total + prefix * step * (after + same)
    return jnp.sum(total, axis=1)


def random_levels(
    kind: str,
    forests: tuple[tuple[Shape, ...], ...],
    functions: list[Array],
    bracket: Callable[[int, int], Array] | None,
) -> list[Array]:
    """End value `(batch, features)` of each forest of iterated sums.

    Vertices of `forests` take the `functions`, values `(batch, times, features)`, in
    order; those of kind `"geometric"` are ladders. `bracket` gives the bracket
    increments of two functions by number.
    """
    if kind == "geometric":
        return [_geometric_word(functions, m + 1) for m in range(len(forests))]
    trees = _Trees(functions, bracket)
    out = []
    for forest in forests:
        place, total = 0, 1
        for tree in forest:
            total = total * trees.end(tree, place)
            place += _vertices(tree)
        out.append(total)
    return out

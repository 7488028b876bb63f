r"""Coefficients of a window field: a log-signature by what its coordinates multiply.

An algebra says by `forests` which ordered forests of planar trees its primitive
coordinates stand for. The field of a tree,
$F([t_1 \dots t_k]_i) = \nabla^k V_i(F(t_1), \dots, F(t_k))$, has total covariant
derivatives, whose correction terms multiply with `k`. Written as a free magma,
$F(a \triangleright m) = \nabla_{F(a)} F(m)$, there are none. Both families have
$\mathrm{Catalan}(n-1)\, d^n$ members of $n$ vertices, and since $a \triangleright$
grafts `a` on every vertex,

$$[t_1 \dots t_k]_i = t_1 \triangleright [t_2 \dots t_k]_i
    - \sum_r [t_2 \dots (t_1 \triangleright t_r) \dots t_k]_i$$

is a triangular change of basis. It is linear and known beforehand, so it is applied
once to the coordinates of a window.
"""

import dataclasses
import functools as ft
import itertools as it
import math
from collections import Counter, defaultdict
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from .._xla import apply_map
from ..algebra import AbstractHopfAlgebra, colours, recolour, SparseMap


class Coefficients(eqx.Module):
    """The coefficient of each tree and each forest, in the order of a `Layout`.

    `trees[n - 1]` belongs to the trees of `n` vertices, `forests[k, .., m]` to forests
    of two or more trees with these numbers of vertices, row-major. Forests whose fields
    vanish on the geometry are left out. `None` stands for those of `i |> j` or of `i |>
    (j |> k)`, up to what no Lie bracket sees.
    """

    trees: tuple[Float[Array, " _"], ...]
    forests: dict[tuple[int, ...], Any] = eqx.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Layout:
    r"""The order of trees $a \triangleright m$ of one weight.

    A tree is one of `dim` single vertices, or $a \triangleright m$ with a *head* $a$ of
    at most `heads` vertices. The trees of weight $n$ come in blocks by the weight $k$
    of their heads, each a row-major matrix `(sizes[k-1], sizes[n-k-1])`: taking off the
    head is a reshape. Words need heads of one vertex, words of the Itô alphabet heads
    of two, and planar trees all.
    """

    dim: int
    depth: int
    heads: int

    @ft.cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of trees of each weight."""
        sizes = [self.dim]
        for weight in range(2, self.depth + 1):
            heads = self.head_weights(weight)
            sizes.append(sum(sizes[k - 1] * sizes[weight - k - 1] for k in heads))
        return tuple(sizes)

    def head_weights(self, weight: int) -> range:
        """Weights of the heads of trees of this weight."""
        return range(1, min(self.heads, weight - 1) + 1)

    def offset(self, weight: int, k: int) -> int:
        """Where the trees of this weight with heads of weight `k` begin."""
        return sum(self.sizes[j - 1] * self.sizes[weight - j - 1] for j in range(1, k))

    def block(
        self, x: Float[Array, " size"], weight: int, k: int
    ) -> Float[Array, "heads tails"]:
        """The coefficients of trees with a head of weight `k`, one row per head."""
        shape = (self.sizes[k - 1], self.sizes[weight - k - 1])
        start = self.offset(weight, k)
        return x[start : start + shape[0] * shape[1]].reshape(shape)

    @ft.cached_property
    def largest_heads(self) -> list[np.ndarray]:
        """For each weight, the weight of the largest head along each tree."""
        out = [np.zeros(self.dim, np.int64)]
        for weight in range(2, self.depth + 1):
            tails = [np.maximum(k, out[weight - k - 1]) for k in range(1, weight)]
            parts = [np.tile(t, self.sizes[k]) for k, t in enumerate(tails)]
            out.append(np.concatenate(parts))
        return out


@dataclasses.dataclass(frozen=True)
class Tables:
    """Linear maps from primitive coordinates to the parts of `Coefficients`; `None` as
    there."""

    layout: Layout
    trees: tuple[SparseMap, ...]
    forests: dict[tuple[int, ...], Any]

    def __call__(self, lam: Float[Array, " primitives"]) -> Coefficients:
        trees = tuple(apply_map(table, lam) for table in self.trees)
        forests = {
            key: None if table is None else apply_map(table, lam)
            for key, table in self.forests.items()
        }
        return Coefficients(trees, forests)


def _graft(scion, tree) -> list:
    """All trees with `scion` grafted as leftmost child of one vertex of `tree`."""
    root, children = tree
    grafts = [(root, (scion, *children))]
    for r, child in enumerate(children):
        grafts += [
            (root, children[:r] + (new,) + children[r + 1 :])
            for new in _graft(scion, child)
        ]
    return grafts


@ft.cache
def _in_magma(tree) -> dict:
    """A planar tree as a combination of magma elements: an element is a label, or a
    pair `(a, m)` that stands for `a |> m`."""
    root, children = tree
    if not children:
        return {root: 1}
    first, rest = children[0], children[1:]
    out: Counter = Counter()
    for a, x in _in_magma(first).items():
        for m, y in _in_magma((root, rest)).items():
            out[a, m] += x * y
    for r, child in enumerate(rest):
        for new in _graft(first, child):
            lower = (root, rest[:r] + (new,) + rest[r + 1 :])
            for m, y in _in_magma(lower).items():
                out[m] -= y
    return {m: x for m, x in out.items() if x}


def _weight(element) -> int:
    return sum(map(_weight, element)) if isinstance(element, tuple) else 1


def _position(element, colouring: np.ndarray, layout: Layout) -> np.ndarray:
    """Position within its weight of a labelled element, for many colourings."""
    if not isinstance(element, tuple):
        return colouring[:, element]
    k, r = map(_weight, element)
    first, second = (_position(part, colouring, layout) for part in element)
    return layout.offset(k + r, k) + first * layout.sizes[r - 1] + second


def _by_shape(forests):
    """Labelled shapes of the forests, with positions and colourings of their
    members."""
    groups = defaultdict(list)
    for k, forest in enumerate(forests):
        colouring = colours(forest)
        groups[recolour(forest, it.count())].append((k, colouring))
    for shape, members in groups.items():
        columns, colourings = zip(*members)
        yield shape, np.array(columns), np.array(colourings)


def _forests_in_magma(forests, layout: Layout) -> dict[tuple[int, ...], SparseMap]:
    """One map from forest coefficients for each tuple of weights."""
    entries = defaultdict(list)
    for shape, columns, colouring in _by_shape(forests):
        for factors in it.product(*(_in_magma(tree).items() for tree in shape)):
            weights = tuple(_weight(element) for element, _ in factors)
            rows = np.zeros(len(columns), np.int64)
            for (element, _), weight in zip(factors, weights):
                rows *= layout.sizes[weight - 1]
                rows += _position(element, colouring, layout)
            value = math.prod(coefficient for _, coefficient in factors)
            entries[weights].append((rows, columns, np.full(len(columns), value)))
    maps = {}
    for weights, parts in sorted(entries.items()):
        row, column, value = map(np.concatenate, zip(*parts))
        height = math.prod(layout.sizes[k - 1] for k in weights)
        maps[weights] = SparseMap(row, column, value, (height, len(forests)))
    return maps


@ft.cache
def coefficient_tables(
    alg: AbstractHopfAlgebra, flat: bool, torsion_free: bool
) -> Tables:
    """The maps of an algebra, and the smallest layout that holds what they reach.
    Forests of two or more trees are left out if `flat`, those of two trees if
    `torsion_free`."""
    forests, embed = alg.forests
    full = Layout(alg.dim, alg.depth, alg.depth)
    maps = {}
    for weights, table in _forests_in_magma(forests, full).items():
        count, table = len(weights), table @ embed
        if (count > 1 and flat) or (count == 2 and torsion_free) or not table.nnz:
            continue
        if count == 2 and weights[0] != weights[1]:
            # Primitive elements are Lie polynomials in their trees, so those of two
            # trees are antisymmetric: one order is enough, counted twice.
            if weights[0] > weights[1]:
                continue
            table = SparseMap(table.row, table.column, 2 * table.value, table.shape)
        maps[weights] = table

    largest = 1
    for weights, table in maps.items():
        sizes = [full.sizes[k - 1] for k in weights]
        for k, trees in zip(weights, np.unravel_index(table.row, sizes)):
            largest = max(largest, int(full.largest_heads[k - 1][trees].max()))
    layout = Layout(alg.dim, alg.depth, largest)
    kept = [np.flatnonzero(heads <= layout.heads) for heads in full.largest_heads]

    def restricted(weights: tuple[int, ...]) -> SparseMap:
        grid = np.ix_(*(kept[k - 1] for k in weights))
        sizes = [full.sizes[k - 1] for k in weights]
        rows = np.ravel_multi_index(np.broadcast_arrays(*grid), sizes)
        empty = SparseMap([], [], [], (math.prod(sizes), embed.shape[1]))
        return maps.get(weights, empty).take_rows(rows.ravel())

    trees = tuple(restricted((n,)) for n in range(1, alg.depth + 1))
    rest: dict[tuple[int, ...], Any]
    rest = {key: restricted(key) for key in maps if len(key) > 1}
    for n in (2, 3) if alg.depth <= 3 else ():  # the closed forms can share them
        forests = rest.get((1,) * n)
        if forests is not None and _same_brackets(forests, trees[n - 1], n, alg.dim):
            rest[(1,) * n] = None
    return Tables(layout, trees, rest)


def _same_brackets(forests: SparseMap, trees: SparseMap, n: int, dim: int) -> bool:
    """Whether forests of `n` single vertices have the coefficients of the trees `i |>
    (j |> ..)`; pairs up to a symmetric part, which torsion does not see. In words they
    have, since there `i * j` is the forest `(i, j)` and the tree `i |> j`."""
    trees = trees.take_rows(np.arange(dim**n))
    row = np.concatenate([forests.row, trees.row])
    column = np.concatenate([forests.column, trees.column])
    value = np.concatenate([forests.value, -trees.value])
    if n == 2:
        i, j = np.divmod(row, dim)
        row, column = np.concatenate([row, j * dim + i]), np.tile(column, 2)
        value = np.concatenate([value, -value])
    return not SparseMap(row, column, value, forests.shape).nnz

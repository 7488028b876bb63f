r"""Planar trees as the free magma of covariant derivatives.

The tree field $F([t_1 \dots t_k]_i) = \nabla^k V_i(F(t_1), \dots, F(t_k))$ is defined
with total covariant derivatives, whose correction terms multiply with `k`. Written with
$F(a \triangleright m) = \nabla_{F(a)} F(m)$ there are none. Both families have
$\mathrm{Catalan}(n-1) d^n$ members of $n$ vertices, and since $a \triangleright$ grafts
`a` on every vertex,

$$[t_1 \dots t_k]_i = t_1 \triangleright [t_2 \dots t_k]_i
    - \sum_r [t_2 \dots (t_1 \triangleright t_r) \dots t_k]_i$$

is a triangular change of basis, applied once to the coefficients of a window.
"""

import functools as ft
import itertools as it
from collections import Counter, defaultdict

import numpy as np

from ..algebra import (
    AbstractHopfAlgebra,
    GrossmanLarson,
    Ito,
    MuntheKaasWright,
    Shuffle,
    SparseMap,
    symmetry_factor,
    weight,
)
from ._grading import Grading, tree_grading


def _colours(tree) -> tuple:
    return (tree[0], *it.chain.from_iterable(map(_colours, tree[1])))


def _labelled(tree, labels):
    """The same shape with labels 0, 1, .. in preorder, taken from the iterator."""
    return (next(labels), tuple(_labelled(child, labels) for child in tree[1]))


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
def magma_expansion(tree) -> dict:
    """A planar tree as a combination of magma elements.

    A magma element is a label, or a pair `(a, m)` that stands for `a |> m`.
    """
    root, children = tree
    if not children:
        return {root: 1}
    first, rest = children[0], children[1:]
    trunk = (root, rest)
    out: Counter = Counter()
    for a, x in magma_expansion(first).items():
        for m, y in magma_expansion(trunk).items():
            out[a, m] += x * y
    for r, child in enumerate(rest):
        for new in _graft(first, child):
            lower = (root, rest[:r] + (new,) + rest[r + 1 :])
            for m, y in magma_expansion(lower).items():
                out[m] -= y
    return {m: x for m, x in out.items() if x}


def _weight(element) -> int:
    return sum(map(_weight, element)) if isinstance(element, tuple) else 1


def _position(element, colouring: np.ndarray, grading: Grading) -> np.ndarray:
    """Position within its weight of a labelled element, for many colourings."""
    if not isinstance(element, tuple):
        return colouring[:, element]
    head, tail = element
    k, r = _weight(head), _weight(tail)
    first = _position(head, colouring, grading)
    second = _position(tail, colouring, grading)
    return grading.offset(k + r, k) + first * grading.sizes[r - 1] + second


def _forest_terms(forest, colouring: np.ndarray, grading: Grading):
    """Magma terms of a labelled forest: `(position, value)`, trees row-major."""
    for factors in it.product(*(magma_expansion(tree).items() for tree in forest)):
        position, value = np.zeros(len(colouring), np.int64), 1
        for element, coefficient in factors:
            size = grading.sizes[_weight(element) - 1]
            position = position * size + _position(element, colouring, grading)
            value *= coefficient
        yield position, value


def _by_shape(forests):
    """Positions and colourings of the forests of each shape, shapes labelled."""
    groups = defaultdict(list)
    for k, forest in enumerate(forests):
        labels = it.count()
        shape = tuple(_labelled(tree, labels) for tree in forest)
        colouring = tuple(it.chain.from_iterable(map(_colours, forest)))
        groups[shape].append((k, colouring))
    for shape, members in groups.items():
        columns = np.array([k for k, _ in members])
        yield shape, columns, np.array([c for _, c in members])


def _forests_to_magma(forests, scale, grading: Grading) -> dict:
    """One sparse map for each composition of weights, from forest coefficients."""
    entries = defaultdict(list)
    for shape, columns, colouring in _by_shape(forests):
        composition = tuple(weight(tree) for tree in shape)
        for rows, value in _forest_terms(shape, colouring, grading):
            entries[composition].append((rows, columns, value * scale[columns]))
    maps = {}
    for composition, parts in sorted(entries.items()):
        row, column, value = (np.concatenate(p) for p in zip(*parts))
        height = int(np.prod([grading.sizes[k - 1] for k in composition]))
        maps[composition] = SparseMap(row, column, value, (height, len(forests)))
    return maps


def _words_to_magma(alg: Shuffle | Ito) -> dict:
    r"""Words of weight at most two: $i * j = ij + i \triangleright j$; pairs are
    trees."""
    d = alg.dim
    entries = defaultdict(list)
    for column, word in enumerate(alg.words):
        letters = [np.atleast_1d(alg.letters[k]).tolist() for k in word]
        if sum(map(len, letters)) > 2:
            continue
        if len(letters) == 2:
            (i,), (j,) = letters
            entries[2,].append((i * d + j, column, 1.0))
            entries[1, 1].append((i * d + j, column, 1.0))
        elif len(letters[0]) == 2:
            i, j = letters[0]
            entries[2,].append((i * d + j, column, 0.5))
            entries[2,].append((j * d + i, column, 0.5))
        else:
            entries[1,].append((letters[0][0], column, 1.0))
    out = {}
    for composition, parts in entries.items():
        rows, columns, values = zip(*parts)
        shape = (d ** sum(composition), len(alg.words))
        out[composition] = SparseMap(rows, columns, values, shape)
    return out


@ft.cache
def magma_maps(alg: AbstractHopfAlgebra, flat: bool) -> dict:
    """Sparse maps from primitive coordinates to coefficients of magma forests.

    **Arguments:**

    - `alg`: the algebra; of a word algebra weights one and two are mapped.
    - `flat`: leave out forests of two or more trees, whose fields vanish.

    **Returns:**

    A dictionary `{(k1, .., km): SparseMap}`: forests of `m` trees of those weights,
    each numbered as in `tree_grading`, row-major.
    """
    grading = tree_grading(alg.dim, alg.depth)
    if isinstance(alg, GrossmanLarson):
        forests = [(tree,) for tree in alg.primitive_basis]
        scale = np.array([1 / symmetry_factor(tree) for tree in alg.primitive_basis])
        return _forests_to_magma(forests, scale, grading)
    if isinstance(alg, MuntheKaasWright):
        maps = _forests_to_magma(alg.basis, np.ones(alg.size), grading)
    else:
        assert isinstance(alg, Shuffle | Ito)
        maps = _words_to_magma(alg)
    embed = alg.primitive_maps[1]
    return {
        composition: table @ embed
        for composition, table in maps.items()
        if len(composition) == 1 or not flat
    }

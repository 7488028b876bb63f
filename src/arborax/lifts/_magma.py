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


def _compose(letter: dict, forests: dict) -> dict:
    r"""A field as an operator before a sum of forests of magma elements: $u \nabla^m
    \phi(w_1, ..) = \nabla^{m+1} \phi(u, w_1, ..) + \sum_r \nabla^m \phi(..,
    \nabla_u w_r, ..)$."""
    out: Counter = Counter()
    for (element, x), (forest, y) in it.product(letter.items(), forests.items()):
        out[element, *forest] += x * y
        for r, tree in enumerate(forest):
            out[*forest[:r], (element, tree), *forest[r + 1 :]] += x * y
    return out


def _letter(letter) -> dict:
    """A letter of the alphabet as magma elements."""
    if isinstance(letter, int):
        return {letter: 1.0}
    if len(letter) == 1:
        return {letter[0]: 1.0}
    i, j = letter
    return {(i, j): 0.5, (j, i): 0.5} if i != j else {(i, i): 1.0}


def _words_to_magma(alg: Shuffle | Ito, grading: Grading) -> dict:
    """One sparse map for each composition of weights, from word coefficients."""
    colours = np.arange(alg.dim)[None]
    entries = defaultdict(list)
    for column, word in enumerate(alg.words):
        letters = [_letter(alg.letters[k]) for k in word]
        forests = {(element,): x for element, x in letters[-1].items()}
        for letter in reversed(letters[:-1]):
            forests = _compose(letter, forests)
        for forest, value in forests.items():
            position = 0
            for element in forest:
                size = grading.sizes[_weight(element) - 1]
                position = position * size + int(
                    _position(element, colours, grading)[0]
                )
            entries[tuple(map(_weight, forest))].append((position, column, value))
    out = {}
    for composition, parts in sorted(entries.items()):
        rows, columns, values = zip(*parts)
        height = int(np.prod([grading.sizes[k - 1] for k in composition]))
        out[composition] = SparseMap(rows, columns, values, (height, len(alg.words)))
    return out


@ft.cache
def magma_maps(alg: AbstractHopfAlgebra, flat: bool) -> dict:
    """Sparse maps from primitive coordinates to coefficients of magma forests.

    **Arguments:**

    - `alg`: the algebra.
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
        maps = _words_to_magma(alg, grading)
    embed = alg.primitive_maps[1]
    return {
        composition: table @ embed
        for composition, table in maps.items()
        if len(composition) == 1 or not flat
    }

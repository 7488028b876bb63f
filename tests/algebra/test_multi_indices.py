"""Multi-indices, exactly, against composed differential operators and against trees."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from reference import paths, reference
from reference.bridge import (
    random_brackets,
    random_fractions,
    random_path,
    to_array,
)
from reference.hopf import add

import arborax as abx
from arborax import algebra


MODES = [None, "realised", "supplied", "left-point"]


def derivative(terms):
    """Of a polynomial in the letters (i, k): `{sorted letters: coefficient}`."""
    out = Counter()
    for letters, value in terms.items():
        for place, (i, k) in enumerate(letters):
            new = (*letters[:place], (i, k + 1), *letters[place + 1 :])
            out[tuple(sorted(new))] += value
    return out


def compose(x, y, depth):
    """Of operators `{(letters, m): coefficient}`, which stand for `letters d^m`."""
    out = Counter()
    for (a, m), u in x.items():
        for (b, n), v in y.items():
            terms = {b: u * v} if len(a) + len(b) <= depth else {}
            for j in range(m + 1):
                for c, w in terms.items():
                    out[tuple(sorted(a + c)), m + n - j] += math.comb(m, j) * w
                terms = derivative(terms)
    return {key: value for key, value in out.items() if value}


def logarithm(x, depth):
    power, total = {((), 0): Fraction(1)}, []
    for n in range(1, depth + 1):
        power = compose(power, x, depth)
        total.append((Fraction((-1) ** (n + 1), n), power))
    return add(*total)


def exponential(x, depth):
    power, total = {((), 0): Fraction(1)}, []
    for n in range(1, depth + 1):
        power = compose(power, x, depth)
        total.append((Fraction(1, math.factorial(n)), power))
    return add(*total)


def segment(dx, da):
    """`sum dx^i f_i d - 1/2 sum dA^ij f_j f_i' d`."""
    terms = [(v, {(((i, 0),), 1): 1}) for i, v in enumerate(dx)]
    for i, row in enumerate(da):
        for j, value in enumerate(row):
            letters = tuple(sorted([(j, 0), (i, 1)]))
            terms.append((-Fraction(value) / 2, {(letters, 1): 1}))
    return add(*terms)


def exact(alg, path, brackets):
    """The log-signature by the operations of the algebra, in fractions."""
    group = np.full(alg.size, Fraction(0), dtype=object)
    for dx, da in zip(paths.increments(path), brackets):
        ell = sum(alg.elementary_step((i,)).astype(int) * v for i, v in enumerate(dx))
        for i, row in enumerate(da):
            for j, value in enumerate(row):
                pair = alg.elementary_step((min(i, j), max(i, j)))
                ell = ell - np.array([Fraction(p) * value / 2 for p in pair])
        group = alg.product(group, alg.exp(alg.from_primitive(ell)))
    return alg.to_primitive(alg.log(group))


@pytest.mark.parametrize("dim, depth", [(1, 6), (2, 5)])
def test_logarithms_are_those_of_composed_operators(dim, depth):
    """Of first order only, for segments and for their products, with these numbers."""
    alg = abx.MultiIndex(dim, depth)
    path, brackets = random_path(3, 3, dim), random_brackets(3, 2, dim)
    total = {((), 0): Fraction(1)}
    for dx, da in zip(paths.increments(path), brackets):
        step = exponential(segment(dx, da), depth)
        assert logarithm(step, depth) == segment(dx, da)
        total = compose(total, add((1, {((), 0): 1}), (1, step)), depth)
    total = add((1, total), (-1, {((), 0): 1}))
    assert {m for _, m in total} == set(range(1, depth + 1))
    log = logarithm(total, depth)
    assert {m for _, m in log} == {1}
    factors = [math.prod(math.factorial(k) for _, k in b) for b in alg.primitive_basis]
    expected = [log.get((b, 1), 0) * f for b, f in zip(alg.primitive_basis, factors)]
    assert list(exact(alg, path, brackets)) == expected


@pytest.mark.parametrize("dim, depth", [(2, 4), (3, 3)])
def test_forgetting_the_shape_is_a_morphism(dim, depth):
    trees, indices = abx.GrossmanLarson(dim, depth), abx.MultiIndex(dim, depth)
    forget = algebra.forget_shape(trees, indices)
    a, b = (random_fractions(s, trees.size, zeros=0.6) for s in (1, 2))
    same = lambda x, y: list(x) == list(y)  # noqa: E731
    assert same(forget(trees.product(a, b)), indices.product(forget(a), forget(b)))
    assert same(forget(trees.antipode(a)), indices.antipode(forget(a)))
    ref = reference(indices)
    terms = [(v, {ref.of_forest(f): 1}) for f, v in zip(trees.basis, a)]
    scaled = [
        (v / algebra.symmetry_factor(f), t) for (v, t), f in zip(terms, trees.basis)
    ]
    assert same(forget(a), to_array(indices, add(*scaled)))
    planar = abx.MuntheKaasWright(dim, depth)
    c = random_fractions(3, planar.primitive_size, zeros=0.5)
    both = algebra.primitive_conversion(trees, indices)(
        algebra.primitive_conversion(planar, trees)(c)
    )
    assert same(algebra.primitive_conversion(planar, indices)(c), both)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("cls, depth", [(abx.MultiIndex, 4), (abx.BranchedWords, 3)])
def test_signatures_are_the_images_of_tree_signatures(cls, depth, mode):
    """And these are the exact ones of the reference."""
    trees, target = abx.GrossmanLarson(2, depth), cls(2, depth)
    path = random_path(5, 4, 2)
    brackets = random_brackets(5, 3, 2) if mode == "supplied" else mode
    expected = to_array(trees, paths.log_signature(reference(trees), path, brackets))
    convert = algebra.primitive_conversion(trees, target)
    expected = convert(trees.to_primitive(expected)).astype(float)
    xs = np.array(path, float)
    if mode == "supplied":
        brackets = np.array(brackets, float)
    got = abx.log_signature(xs, target, brackets)
    np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-12)
    group = target.exp(target.from_primitive(expected))
    got = abx.signature(xs, target, brackets)
    np.testing.assert_allclose(got, group, rtol=1e-11, atol=1e-12)


def test_left_point_sums_of_depth_four_need_trees_of_four_vertices():
    with pytest.raises(ValueError, match="use GrossmanLarson"):
        abx.signature(np.zeros((3, 2)), abx.BranchedWords(2, 4), "left-point")

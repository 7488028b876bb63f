"""The laws of a Hopf algebra, one suite for all, exact on random rationals."""

import itertools as it
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from reference import reference

import arborax as abx


ALGEBRAS = [
    abx.Shuffle(2, 4),
    abx.Shuffle(3, 3),
    abx.GrossmanLarson(1, 4),
    abx.GrossmanLarson(2, 3),
    abx.MuntheKaasWright(1, 4),
    abx.MuntheKaasWright(2, 3),
    abx.Ito(2, 4),
    abx.BranchedWords(2, 4),
    abx.MultiIndex(1, 5),
    abx.MultiIndex(2, 4),
]
laws = settings(max_examples=12, deadline=None, derandomize=True)
fractions = st.fractions(min_value=-2, max_value=2, max_denominator=4)
all_algebras = pytest.mark.parametrize("alg", ALGEBRAS, ids=str)


@st.composite
def vectors(draw, size):
    """Exact vectors with at most twelve entries that are not zero."""
    out = np.full(size, Fraction(0), dtype=object)
    places = st.integers(min_value=0, max_value=size - 1)
    for place, value in draw(st.lists(st.tuples(places, fractions), max_size=12)):
        out[place] = value
    return out


def elements(alg):
    return vectors(alg.size)


def primitives(alg):
    return vectors(alg.primitive_size)


def group_like(alg, coordinates):
    return alg.exp(alg.from_primitive(coordinates))


def same(a, b):
    assert list(a) == list(b)


@all_algebras
@laws
@given(data=st.data())
def test_associativity(alg, data):
    a, b, c = (data.draw(elements(alg)) for _ in range(3))
    same(alg.product(alg.product(a, b), c), alg.product(a, alg.product(b, c)))
    same(alg.star(alg.star(a, b), c), alg.star(a, alg.star(b, c)))


@all_algebras
@laws
@given(data=st.data())
def test_unit_and_bilinearity(alg, data):
    a, b, c = (data.draw(elements(alg)) for _ in range(3))
    s = data.draw(fractions)
    zero = np.full(alg.size, Fraction(0), dtype=object)
    same(alg.product(a, zero), a)
    same(alg.product(zero, a), a)
    same(alg.star(a + s * b, c), alg.star(a, c) + s * alg.star(b, c))
    same(alg.product(a, b), a + b + alg.star(a, b))


@all_algebras
def test_coassociativity(alg):
    """The coproduct dual to the product, cut twice on the left or on the right."""

    def cuts(key):
        return alg.cuts(key) if key else {((), ()): 1}

    for key in alg.basis:
        left, right = {}, {}
        for (a, b), n in cuts(key).items():
            for (a1, a2), m in cuts(a).items():
                left[a1, a2, b] = left.get((a1, a2, b), 0) + n * m
            for (b1, b2), m in cuts(b).items():
                right[a, b1, b2] = right.get((a, b1, b2), 0) + n * m
        assert left == right


@all_algebras
@laws
@given(data=st.data())
def test_product_of_characters_is_a_character(alg, data):
    """The compatibility of product and coproduct, in its dual form."""
    g = alg.product(*(group_like(alg, data.draw(primitives(alg))) for _ in range(2)))
    assert is_character(alg, g)


def is_character(alg, g):
    value = dict(zip(alg.basis, g))
    for a, b in it.combinations_with_replacement(alg.basis, 2):
        if alg.weights[alg.index[a]] + alg.weights[alg.index[b]] <= alg.depth:
            total = sum(n * value[k] for k, n in alg.dual_product(a, b).items())
            if total != value[a] * value[b]:
                return False
    return True


def test_is_character_can_say_no():
    alg = abx.Shuffle(2, 2)
    assert not is_character(alg, np.full(alg.size, Fraction(1), dtype=object))


@all_algebras
@laws
@given(data=st.data())
def test_antipode(alg, data):
    """Anti-automorphism, an involution (cocommutative), the inverse on group-likes."""
    a, b = (data.draw(elements(alg)) for _ in range(2))
    reverse = alg.product(alg.antipode(b), alg.antipode(a))
    same(alg.antipode(alg.product(a, b)), reverse)
    same(alg.antipode(alg.antipode(a)), a)
    c = data.draw(primitives(alg))
    g = group_like(alg, c)
    assert not np.any(alg.product(g, alg.antipode(g)))
    assert not np.any(alg.product(alg.antipode(g), g))
    same(alg.antipode(g), group_like(alg, -c))


@all_algebras
@laws
@given(data=st.data())
def test_exp_and_log(alg, data):
    x = data.draw(elements(alg))
    s = data.draw(fractions)
    same(alg.log(alg.exp(x)), x)
    same(alg.exp(alg.log(x)), x)
    same(alg.product(alg.exp(x), alg.exp(s * x)), alg.exp((1 + s) * x))


@all_algebras
@laws
@given(data=st.data())
def test_logarithm_of_a_group_like_is_primitive(alg, data):
    """Zero on every proper dual product, and in the span of the bracket basis."""
    g = alg.product(*(group_like(alg, data.draw(primitives(alg))) for _ in range(2)))
    x = alg.log(g)
    value = dict(zip(alg.basis, x))
    for a, b in it.combinations_with_replacement(alg.basis, 2):
        if alg.weights[alg.index[a]] + alg.weights[alg.index[b]] <= alg.depth:
            assert sum(n * value[k] for k, n in alg.dual_product(a, b).items()) == 0
    same(alg.from_primitive(alg.to_primitive(x)), x)


@all_algebras
@laws
@given(data=st.data())
def test_primitives_are_closed_under_the_commutator(alg, data):
    c = data.draw(primitives(alg))
    same(alg.to_primitive(alg.from_primitive(c)), c)
    x, y = alg.from_primitive(c), alg.from_primitive(data.draw(primitives(alg)))
    bracket = alg.star(x, y) - alg.star(y, x)
    same(alg.from_primitive(alg.to_primitive(bracket)), bracket)


@all_algebras
@laws
@given(data=st.data())
def test_grading(alg, data):
    """Scaling keys by r^weight is an automorphism."""
    a, b = (data.draw(elements(alg)) for _ in range(2))
    r = data.draw(fractions)
    scale = np.array([r ** int(w) for w in alg.weights], dtype=object)
    same(alg.product(scale * a, scale * b), scale * alg.product(a, b))
    c = data.draw(primitives(alg))
    primitive_scale = np.array(
        [r ** int(w) for w in alg.primitive_weights], dtype=object
    )
    same(alg.from_primitive(primitive_scale * c), scale * alg.from_primitive(c))


@all_algebras
def test_the_reference_agrees_on_the_weights(alg):
    ref = reference(alg)
    assert [ref.weight(k) for k in alg.basis] == list(alg.weights)

"""Products, series, antipode and primitive coordinates, exactly, by brute force."""

import jax.numpy as jnp
import numpy as np
import pytest
from reference import reference
from reference.bridge import (
    coordinates,
    floats,
    letters,
    random_fractions,
    to_array,
    to_element,
)
from reference.hopf import add, bracket_basis

import arborax as abx


ALGEBRAS = [
    abx.Shuffle,
    abx.GrossmanLarson,
    abx.MuntheKaasWright,
    abx.Ito,
    abx.BranchedWords,
    abx.MultiIndex,
]
SIZES = [(1, 4), (2, 1), (2, 2), (2, 4), (3, 3)]
CASES = [(cls, d, n) for cls in ALGEBRAS for d, n in SIZES]
CASES += [(abx.Shuffle, 3, 4), (abx.Ito, 3, 4)]

cases = pytest.mark.parametrize("cls, dim, depth", CASES)


def same(a, b):
    assert a.shape == b.shape
    assert all(x == y for x, y in zip(a.ravel(), b.ravel()))


@cases
def test_product(cls, dim, depth):
    alg = cls(dim, depth)
    a, b = (random_fractions(s, alg.size, zeros=0.6) for s in (1, 2))
    x, y = to_element(alg, a, unit=1), to_element(alg, b, unit=1)
    same(alg.product(a, b), to_array(alg, reference(alg).product(x, y)))
    x, y = to_element(alg, a), to_element(alg, b)
    same(alg.star(a, b), to_array(alg, reference(alg).product(x, y)))


@cases
def test_exp_and_log(cls, dim, depth):
    alg = cls(dim, depth)
    a = random_fractions(3, alg.size, zeros=0.8)
    ref = reference(alg)
    same(alg.exp(a), to_array(alg, ref.exp(to_element(alg, a))))
    same(alg.log(a), to_array(alg, ref.log(to_element(alg, a, unit=1))))
    same(alg.log(alg.exp(a)), a)
    same(alg.exp(alg.log(a)), a)


@cases
def test_antipode(cls, dim, depth):
    alg = cls(dim, depth)
    g = random_fractions(4, alg.size)
    same(alg.antipode(g), to_array(alg, reference(alg).antipode(to_element(alg, g, 1))))


@pytest.mark.parametrize("cls", ALGEBRAS)
def test_antipode_of_the_interface_is_that_of_the_algebra(cls):
    """What an algebra gets that gives cuts and dual products alone."""
    alg = cls(2, 3)
    general = abx.AbstractHopfAlgebra.antipode_map.__get__(alg)
    np.testing.assert_array_equal(general.todense(), alg.antipode_map.todense())


@cases
def test_primitive_coordinates(cls, dim, depth):
    alg = cls(dim, depth)
    ref = reference(alg)
    c = random_fractions(5, alg.primitive_size, zeros=0.5)
    basis = bracket_basis(ref, letters(alg), alg.primitive_basis)
    element = add(*zip(c, basis))
    same(alg.from_primitive(c), to_array(alg, element))
    same(alg.to_primitive(to_array(alg, element)), c)
    same(coordinates(alg, element), c)


@pytest.mark.parametrize("dim, depth", [(1, 4), (2, 3)])
@pytest.mark.parametrize("cls", ALGEBRAS)
def test_cuts_are_dual_to_the_product(cls, dim, depth):
    alg = cls(dim, depth)
    ref = reference(alg)
    a, b = (random_fractions(s, alg.size, zeros=0.2) for s in (7, 8))
    x, y = to_element(alg, a, 1), to_element(alg, b, 1)
    xy = ref.product(x, y)
    for key in alg.basis:
        terms = alg.cuts(key).items()
        total = sum(n * ref.pair(x, u) * ref.pair(y, v) for (u, v), n in terms)
        assert total == ref.pair(xy, key)


@pytest.mark.parametrize("cls", ALGEBRAS)
def test_dual_product_is_the_character_product(cls):
    alg = cls(2, 3)
    ref = reference(alg)
    for a in alg.basis:
        for b in alg.basis:
            if ref.weight(a) + ref.weight(b) <= 3:
                expected = {}
                for key in ref.character_product(a, b):
                    expected[key] = expected.get(key, 0) + 1
                got = {ref.canonical(k): n for k, n in alg.dual_product(a, b).items()}
                assert got == expected


@pytest.mark.parametrize("dtype, tol", [(np.float32, 2e-5), (np.float64, 1e-12)])
@pytest.mark.parametrize("cls", ALGEBRAS)
def test_floats_numpy_and_jax_agree_with_the_fractions(cls, dtype, tol):
    alg = cls(2, 3)
    a, b = (random_fractions(s, alg.size, zeros=0.4) / 4 for s in (9, 10))
    c = random_fractions(11, alg.primitive_size)
    exact = {
        "product": (alg.product(a, b), (a, b)),
        "star": (alg.star(a, b), (a, b)),
        "exp": (alg.exp(a), (a,)),
        "log": (alg.log(a), (a,)),
        "antipode": (alg.antipode(a), (a,)),
        "from_primitive": (alg.from_primitive(c), (c,)),
        "to_primitive": (
            alg.to_primitive(alg.from_primitive(c)),
            (alg.from_primitive(c),),
        ),
    }
    for name, (expected, args) in exact.items():
        method = getattr(alg, name)
        args = [floats(x, dtype) for x in args]
        from_numpy = method(*args)
        from_jax = method(*(jnp.asarray(x) for x in args))
        assert isinstance(from_numpy, np.ndarray), name
        assert isinstance(from_jax, jnp.ndarray), name
        assert from_numpy.dtype == from_jax.dtype == dtype, name
        np.testing.assert_allclose(from_numpy, floats(expected), tol, tol, err_msg=name)
        np.testing.assert_allclose(from_jax, floats(expected), tol, tol, err_msg=name)


@pytest.mark.parametrize("cls", ALGEBRAS)
def test_leading_axes_broadcast(cls):
    alg = cls(2, 3)
    rng = np.random.default_rng(0)
    a = rng.normal(size=(3, 2, alg.size))
    b = rng.normal(size=(3, 2, alg.size))
    out = alg.product(a, b)
    assert out.shape == (3, 2, alg.size)
    np.testing.assert_allclose(out[2, 1], alg.product(a[2, 1], b[2, 1]), 1e-13, 1e-13)
    for name in ("exp", "log", "antipode"):
        method = getattr(alg, name)
        np.testing.assert_allclose(method(a)[1, 0], method(a[1, 0]), 1e-13, 1e-13)
    c = rng.normal(size=(3, 2, alg.primitive_size))
    lifted = alg.from_primitive(c)
    assert lifted.shape == (3, 2, alg.size)
    np.testing.assert_allclose(alg.to_primitive(lifted), c, 1e-12, 1e-12)

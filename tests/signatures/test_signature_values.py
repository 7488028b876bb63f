"""Signatures and log-signatures of rational paths against the exact reference."""

from fractions import Fraction

import jax.numpy as jnp
import jitted
import numpy as np
import pytest
from reference import paths, reference
from reference.bridge import (
    coordinates,
    floats,
    letters,
    random_brackets,
    random_path,
    to_array,
)
from reference.hopf import add, bracket_basis, UNIT
from reference.trees import nonplanar_trees

import arborax as abx


TREES = [abx.GrossmanLarson, abx.MuntheKaasWright]
MODES = {
    abx.Shuffle: [None],
    abx.GrossmanLarson: [None, "realised", "supplied", "left-point"],
    abx.MuntheKaasWright: [None, "realised", "supplied", "left-point"],
    abx.Ito: ["realised", "supplied"],
}
CASES = [(c, m, 2, 4) for c in MODES for m in MODES[c]]
CASES += [(c, MODES[c][-1], d, n) for c in MODES for d, n in [(1, 4), (2, 1), (3, 3)]]
CASES += [(abx.Shuffle, None, 3, 4), (abx.Ito, "supplied", 3, 4)]


def given_brackets(mode, seed, steps, dim):
    """The mode for the reference and for the library."""
    if mode != "supplied":
        return mode, mode
    exact = random_brackets(seed, steps, dim)
    return exact, jnp.asarray(floats(exact))


@pytest.mark.parametrize("cls, mode, dim, depth", CASES)
def test_signature_and_log_signature(cls, mode, dim, depth):
    alg = cls(dim, depth)
    seed = 10 * dim + depth
    path = random_path(seed, 5, dim)
    exact, supplied = given_brackets(mode, seed, 4, dim)
    group_like = paths.signature(reference(alg), path, exact)
    got, log = jitted.both(jnp.asarray(floats(path)), alg, brackets=supplied)
    expected = floats(to_array(alg, group_like))
    assert got.shape == (alg.size,)
    assert got.dtype == jnp.float64
    np.testing.assert_allclose(got, expected, 1e-12, 1e-12)
    expected = floats(coordinates(alg, reference(alg).log(group_like)))
    assert log.shape == (alg.primitive_size,)
    np.testing.assert_allclose(log, expected, 1e-12, 1e-12)


@pytest.mark.parametrize("cls, mode", [(c, MODES[c][-1]) for c in MODES])
def test_float32(cls, mode):
    alg = cls(2, 3)
    path = random_path(3, 6, 2)
    exact, supplied = given_brackets(mode, 3, 5, 2)
    if mode == "supplied":
        supplied = supplied.astype(jnp.float32)
    xs = jnp.asarray(floats(path, np.float32))
    group_like = paths.signature(reference(alg), path, exact)
    got, log = jitted.both(xs, alg, brackets=supplied)
    assert got.dtype == log.dtype == jnp.float32
    np.testing.assert_allclose(got, floats(to_array(alg, group_like)), 2e-5, 2e-5)
    expected = floats(coordinates(alg, reference(alg).log(group_like)))
    np.testing.assert_allclose(log, expected, 2e-5, 2e-5)


def test_left_point_sums_by_their_own_recursion():
    alg = abx.GrossmanLarson(2, 4)
    path = random_path(5, 6, 2)
    got = jitted.signature(jnp.asarray(floats(path)), alg, brackets="left-point")
    index = {reference(alg).canonical(k): i for i, k in enumerate(alg.basis)}
    for n in range(1, 5):
        for tree in nonplanar_trees(2, n):
            sums = paths.left_point_sums(reference(alg), path, tree)
            value = float(got[index[(tree,)]])
            np.testing.assert_allclose(value, float(sums[-1]), 1e-12, 1e-12)


@pytest.mark.parametrize("cls", TREES)
def test_realised_is_left_point_at_depth_two(cls):
    alg = cls(3, 2)
    xs = jnp.asarray(floats(random_path(6, 7, 3)))
    realised = jitted.signature(xs, alg, brackets="realised")
    left_point = jitted.signature(xs, alg, brackets="left-point")
    np.testing.assert_allclose(realised, left_point, 1e-13, 1e-13)


def at(alg, array, key):
    return float(array[alg.index[key]])


def test_values_on_the_parabola():
    """X_t = (t, t^2) on [0, 1]: the values of the conventions page."""
    t = jnp.linspace(0.0, 1.0, 2001)
    xs = jnp.stack([t, t**2], axis=-1)
    a, b = (0, ()), (1, ())
    close = dict(rel=1e-6)

    shuffle = abx.Shuffle(2, 3)
    x = jitted.signature(xs, shuffle)
    assert at(shuffle, x, (0, 1)) == pytest.approx(2 / 3, **close)
    assert at(shuffle, x, (1, 0)) == pytest.approx(1 / 3, **close)

    gl = abx.GrossmanLarson(2, 3)
    x = jitted.signature(xs, gl)
    assert at(gl, x, ((1, (a,)),)) == pytest.approx(2 / 3, **close)
    assert at(gl, x, ((0, (b,)),)) == pytest.approx(1 / 3, **close)
    (cherry,) = (k for k in gl.basis if reference(gl).canonical(k) == ((1, (a, b)),))
    assert at(gl, x, cherry) == pytest.approx(2 / 5, **close)

    mkw = abx.MuntheKaasWright(2, 3)
    x = jitted.signature(xs, mkw)
    assert at(mkw, x, ((1, (a, b)),)) == pytest.approx(4 / 15, **close)
    assert at(mkw, x, ((1, (b, a)),)) == pytest.approx(2 / 15, **close)
    assert at(mkw, x, (a, b)) == pytest.approx(2 / 3, **close)
    assert at(mkw, x, (b, a)) == pytest.approx(1 / 3, **close)


@pytest.mark.parametrize("cls", list(MODES))
def test_batches_are_native(cls):
    alg = cls(2, 3)
    rng = np.random.default_rng(0)
    xs = jnp.asarray(rng.normal(size=(2, 3, 6, 2)))
    square = rng.normal(size=(2, 3, 5, 2, 2))
    supplied = jnp.asarray(square + square.swapaxes(-1, -2))
    mode = MODES[cls][-1]
    out, log = jitted.both(xs, alg, supplied if mode == "supplied" else mode)
    assert out.shape == (2, 3, alg.size)
    assert log.shape == (2, 3, alg.primitive_size)
    single = jitted.both(xs[1, 2], alg, supplied[1, 2] if mode == "supplied" else mode)
    np.testing.assert_allclose(out[1, 2], single[0], 1e-12, 1e-12)
    np.testing.assert_allclose(log[1, 2], single[1], 1e-12, 1e-12)


@pytest.mark.parametrize("cls", list(MODES))
def test_long_path_equals_the_product_of_its_steps(cls):
    """Lengths around the internal chunk sizes, against step-by-step Chen."""
    alg = cls(2, 3)
    mode = MODES[cls][0]
    rng = np.random.default_rng(1)
    xs = rng.normal(size=(70, 2)) / 8
    total = np.zeros(alg.size)
    steps = jitted.signature(jnp.asarray(np.stack([xs[:-1], xs[1:]], 1)), alg, mode)
    for n, step in enumerate(np.asarray(steps), start=2):
        total = alg.product(total, step)
        if n in (17, 64, 70):  # one step of zero is appended to 63
            got = jitted.signature(jnp.asarray(xs[:n]), alg, brackets=mode)
            np.testing.assert_allclose(got, total, 1e-11, 1e-11)


@pytest.mark.parametrize("cls", list(MODES))
def test_general_increments(cls):
    """Any primitive element per step, also those no semimartingale has."""
    alg = cls(2, 3)
    rng = np.random.default_rng(2)
    ell = rng.normal(size=(4, 5, alg.primitive_size))
    got = jitted.signature_from_increments(jnp.asarray(ell), alg)
    assert got.shape == (4, alg.size)
    total = np.zeros((4, alg.size))
    for k in range(5):
        total = alg.product(total, alg.exp(alg.from_primitive(ell[:, k])))
    np.testing.assert_allclose(got, total, 1e-11, 1e-11)


@pytest.mark.parametrize("cls", TREES)
def test_general_increments_against_the_reference(cls):
    alg = cls(2, 4)
    ref = reference(alg)
    rng = np.random.default_rng(3)
    ell = rng.integers(-2, 3, size=(3, alg.primitive_size)) / 4
    basis = bracket_basis(ref, letters(alg), alg.primitive_basis)
    total = UNIT
    for row in ell:
        step = add(*((Fraction(float(v)), x) for v, x in zip(row, basis)))
        total = ref.product(total, ref.exp(step))
    got = jitted.signature_from_increments(jnp.asarray(ell), alg)
    np.testing.assert_allclose(got, floats(to_array(alg, total)), 1e-11, 1e-11)

"""Laws of signatures, one suite for all algebras and bracket modes."""

import functools as ft
import itertools as it

import equinox as eqx
import jax.numpy as jnp
import jitted
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import arborax as abx
from arborax import algebra


STEPS = 6
CASES = [
    (abx.Shuffle(3, 3), None),
    (abx.GrossmanLarson(2, 3), None),
    (abx.GrossmanLarson(2, 3), "realised"),
    (abx.GrossmanLarson(2, 3), "left-point"),
    (abx.MuntheKaasWright(2, 3), None),
    (abx.MuntheKaasWright(2, 3), "supplied"),
    (abx.MuntheKaasWright(2, 3), "left-point"),
    (abx.Ito(2, 4), "supplied"),
]
all_cases = pytest.mark.parametrize("alg, mode", CASES, ids=str)
canonical_lifts = pytest.mark.parametrize(
    "alg, mode", [case for case in CASES if case[1] is None], ids=str
)
laws = settings(max_examples=8, deadline=None, derandomize=True)
seeds = st.integers(min_value=0, max_value=2**31)
close = ft.partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10)


def both(xs, alg, supplied, mode):
    return jitted.both(xs, alg, supplied if mode == "supplied" else mode)


def signature(xs, alg, supplied, mode):
    return both(xs, alg, supplied, mode)[0]


def log_signature(xs, alg, supplied, mode):
    return both(xs, alg, supplied, mode)[1]


def draw(seed, dim):
    """A path of `STEPS` steps and symmetric bracket increments."""
    rng = np.random.default_rng(seed)
    xs = rng.uniform(-1, 1, size=(STEPS + 1, dim))
    square = rng.uniform(-1, 1, size=(STEPS, dim, dim))
    return jnp.asarray(xs), jnp.asarray((square + square.swapaxes(-1, -2)) / 2)


@all_cases
@laws
@given(seed=seeds)
def test_chen(alg, mode, seed):
    """Two halves of equal length, so that all examples share one compilation."""
    xs, supplied = draw(seed, alg.dim)
    half = STEPS // 2
    first = signature(xs[: half + 1], alg, supplied[:half], mode)
    second = signature(xs[half:], alg, supplied[half:], mode)
    whole = signature(xs, alg, supplied, mode)
    close(jitted.combine(first, second, alg), whole)


@all_cases
@laws
@given(seed=seeds)
def test_signatures_are_characters(alg, mode, seed):
    """Shuffle of words; product of forests; shuffle of ordered forests."""
    xs, supplied = draw(seed, alg.dim)
    value = dict(zip(alg.basis, np.asarray(signature(xs, alg, supplied, mode))))
    for a, b in it.combinations_with_replacement(alg.basis, 2):
        if alg.weights[alg.index[a]] + alg.weights[alg.index[b]] <= alg.depth:
            total = sum(n * value[k] for k, n in alg.dual_product(a, b).items())
            close(total, value[a] * value[b])


@all_cases
@laws
@given(seed=seeds)
def test_logarithm_and_antipode(alg, mode, seed):
    """exp(log) = id in primitive coordinates, and the antipode is the inverse."""
    xs, supplied = draw(seed, alg.dim)
    g, c = (np.asarray(v) for v in both(xs, alg, supplied, mode))
    close(alg.exp(alg.from_primitive(c)), g)
    close(alg.to_primitive(alg.log(g)), c)
    close(alg.product(g, alg.antipode(g)), np.zeros(alg.size))


@canonical_lifts
@laws
@given(seed=seeds)
def test_time_reversal_is_the_inverse(alg, mode, seed):
    xs, supplied = draw(seed, alg.dim)
    g = signature(xs, alg, supplied, mode)
    back = signature(xs[::-1], alg, supplied, mode)
    close(jitted.combine(g, back, alg), np.zeros(alg.size))
    close(back, alg.antipode(np.asarray(g)))
    there_and_back = jnp.concatenate([xs, xs[-2::-1]])
    close(signature(there_and_back, alg, supplied, mode), np.zeros(alg.size))


def refine(xs, where):
    """A further point on each segment, at the given fractions."""
    between = xs[:-1] + where * (xs[1:] - xs[:-1])
    pairs = jnp.stack([xs[:-1], between], axis=1)
    return jnp.concatenate([pairs.reshape(-1, xs.shape[-1]), xs[-1:]])


@canonical_lifts
@laws
@given(seed=seeds)
def test_reparametrisation(alg, mode, seed):
    """Points added on the segments change nothing; nor does where the path starts."""
    xs, supplied = draw(seed, alg.dim)
    where = np.random.default_rng(seed).uniform(size=(STEPS, 1))
    refined = refine(xs, where)
    g = signature(xs, alg, supplied, mode)
    close(signature(refined, alg, supplied, mode), g)
    close(signature(xs + 3.0, alg, supplied, mode), g)


@pytest.mark.parametrize("alg", [a for a, m in CASES if m == "supplied"], ids=str)
@laws
@given(seed=seeds)
def test_reparametrisation_with_brackets(alg, seed):
    """A segment cut in two with its bracket divided in proportion is the same."""
    xs, supplied = draw(seed, alg.dim)
    where = np.random.default_rng(seed).uniform(size=(STEPS, 1))
    refined = refine(xs, where)
    part = where[:, :, None] * supplied
    divided = jnp.stack([part, supplied - part], 1).reshape(-1, alg.dim, alg.dim)
    g = signature(xs, alg, supplied, "supplied")
    close(signature(refined, alg, divided, "supplied"), g)


@all_cases
@laws
@given(seed=seeds)
def test_scaling(alg, mode, seed):
    """Scaling the path by r (and brackets by r^2) scales a key by r^weight."""
    xs, supplied = draw(seed, alg.dim)
    r = 0.7
    scaled = signature(r * xs, alg, r**2 * supplied, mode)
    close(scaled, r**alg.weights * signature(xs, alg, supplied, mode))


@pytest.mark.parametrize("mode", ["realised", "supplied"])
@pytest.mark.parametrize("cls", [abx.GrossmanLarson, abx.MuntheKaasWright])
@laws
@given(seed=seeds)
def test_ito_images_are_the_explicit_logarithms(cls, mode, seed):
    ito, trees = abx.Ito(2, 4), cls(2, 4)
    xs, supplied = draw(seed, 2)
    compressed = np.asarray(log_signature(xs, ito, supplied, mode))
    explicit = log_signature(xs, trees, supplied, mode)
    close(algebra.primitive_conversion(ito, trees)(compressed), explicit)


@pytest.mark.parametrize("mode", [None, "realised", "supplied", "left-point"])
@laws
@given(seed=seeds)
def test_forgetting_the_order_of_branches(mode, seed):
    planar, nonplanar = abx.MuntheKaasWright(2, 3), abx.GrossmanLarson(2, 3)
    xs, supplied = draw(seed, 2)
    image = algebra.forget_order(planar, nonplanar)(
        np.asarray(signature(xs, planar, supplied, mode))
    )
    close(image, signature(xs, nonplanar, supplied, mode))


@pytest.mark.parametrize("cls", [abx.GrossmanLarson, abx.MuntheKaasWright])
def test_zero_brackets_are_the_canonical_lift(cls):
    alg = cls(2, 3)
    xs, supplied = draw(0, 2)
    zeros = jnp.zeros_like(supplied)
    close(signature(xs, alg, zeros, "supplied"), signature(xs, alg, zeros, None))


@all_cases
def test_one_trace_for_one_shape(alg, mode):
    run = eqx.filter_jit(
        eqx.debug.assert_max_traces(
            lambda x, a: abx.log_signature(x, alg, a if mode == "supplied" else mode),
            max_traces=1,
        )
    )
    for seed in (0, 1):
        run(*draw(seed, alg.dim))

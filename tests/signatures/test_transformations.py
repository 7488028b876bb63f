"""jit, vmap, forward and reverse derivatives of first and second order."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arborax as abx


CASES = [
    (abx.Shuffle(2, 3), None),
    (abx.GrossmanLarson(2, 3), "realised"),
    (abx.GrossmanLarson(2, 3), "left-point"),
    (abx.MuntheKaasWright(2, 2), "supplied"),
    (abx.Ito(2, 3), "supplied"),
]
all_cases = pytest.mark.parametrize("alg, mode", CASES, ids=str)
FUNCTIONS = {"signature": "size", "log_signature": "primitive_size"}


def close(got, expected, tolerance):
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def draw(seed, shape=()):
    rng = np.random.default_rng(seed)
    xs = rng.normal(size=(*shape, 6, 2)) / 2
    square = rng.normal(size=(*shape, 5, 2, 2)) / 2
    return jnp.asarray(xs), jnp.asarray(square + square.swapaxes(-1, -2))


def run(name, alg, mode, xs, supplied):
    return getattr(abx, name)(xs, alg, supplied if mode == "supplied" else mode)


def objective(name, alg, mode):
    """A scalar that weighs every coordinate differently, and is not linear."""
    size = getattr(alg, FUNCTIONS[name])
    weights = jnp.asarray(np.random.default_rng(9).normal(size=size))
    return lambda xs, a: jnp.sum(jnp.sin(run(name, alg, mode, xs, a) * weights))


@pytest.mark.parametrize(
    "name, alg, mode",
    [("log_signature", *case) for case in CASES] + [("signature", *CASES[2])],
    ids=str,
)
def test_derivatives(name, alg, mode):
    """Reverse mode, forward mode and both composed, against central differences."""
    f = objective(name, alg, mode)
    point, direction = draw(0), draw(1)

    def along(s):
        return f(point[0] + s * direction[0], point[1] + s * direction[1])

    def derivative(s):
        x, a = point[0] + s * direction[0], point[1] + s * direction[1]
        return jax.jvp(f, (x, a), direction)[1]

    def slope_of_gradient(s):
        x, a = point[0] + s * direction[0], point[1] + s * direction[1]
        g = jax.grad(f, argnums=(0, 1))(x, a)
        return jnp.vdot(g[0], direction[0]) + jnp.vdot(g[1], direction[1])

    @jax.jit
    def everything(h):
        plus, minus = along(h), along(-h)
        second = (plus - 2 * along(0.0) + minus) / h**2
        first = (plus - minus) / (2 * h)
        zero = jnp.zeros_like(h)
        nested = jax.grad(slope_of_gradient)(zero), jax.grad(derivative)(zero)
        return first, derivative(zero), slope_of_gradient(zero), second, nested

    h = jnp.asarray(1e-4)
    first, forward, reverse, second, (nested_reverse, nested_mixed) = everything(h)
    close(forward, first, 1e-6)
    close(reverse, forward, 1e-11)
    close(nested_reverse, second, 1e-5)
    close(nested_mixed, nested_reverse, 1e-10)


@all_cases
def test_jit_and_vmap(alg, mode):
    name = "log_signature"
    xs, supplied = draw(2, (3,))
    plain = jax.jit(ft.partial(run, name, alg, mode))(xs, supplied)
    mapped = jax.jit(jax.vmap(ft.partial(run, name, alg, mode)))(xs, supplied)
    np.testing.assert_allclose(mapped, plain, 1e-11, 1e-11)


@pytest.mark.parametrize("alg", [a for a, m in CASES if m == "supplied"], ids=str)
def test_gradient_with_respect_to_brackets_is_not_zero(alg):
    """At weight two the derivative by dA^ii is -1/2, known in closed form."""
    xs, supplied = draw(3)
    tree = (0, ((0, ()),))
    key = ((0, 0),) if isinstance(alg, abx.Ito) else (tree,)
    place = alg.index[key]
    gradient = jax.jit(jax.grad(lambda a: abx.signature(xs, alg, a)[place]))(supplied)
    expected = np.zeros((5, 2, 2))
    expected[:, 0, 0] = -0.5
    np.testing.assert_allclose(gradient, expected, 1e-12, 1e-12)


@pytest.mark.parametrize(
    "alg", [abx.GrossmanLarson(2, 3), abx.MuntheKaasWright(2, 3)], ids=str
)
def test_derivatives_of_general_increments(alg):
    rng = np.random.default_rng(4)
    ell, direction = jnp.asarray(rng.normal(size=(2, 4, alg.primitive_size)) / 3)
    weights = jnp.asarray(rng.normal(size=alg.size))

    @jax.jit
    def f(x):
        return jnp.vdot(abx.signature_from_increments(x, alg), weights)

    h = 1e-5
    difference = (f(ell + h * direction) - f(ell - h * direction)) / (2 * h)
    gradient = jax.jit(jax.grad(f))(ell)
    close(jnp.vdot(gradient, direction), difference, 1e-7)
    tangent = jax.jit(lambda x, v: jax.jvp(f, (x,), (v,))[1])(ell, direction)
    close(tangent, difference, 1e-7)


def test_gradients_are_finite_on_padding():
    """A still path has gradients without NaN."""
    alg = abx.MuntheKaasWright(2, 2)
    for brackets in (None, "realised", "left-point"):
        log = ft.partial(abx.log_signature, alg=alg, brackets=brackets)
        f = jax.jit(jax.grad(lambda x: jnp.sum(log(x) ** 2)))
        assert np.all(np.isfinite(f(jnp.zeros((5, 2)))))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_gradients_keep_the_dtype(dtype):
    alg = abx.GrossmanLarson(2, 3)
    xs, supplied = (x.astype(dtype) for x in draw(5))
    f = jax.grad(lambda x, a: jnp.sum(abx.log_signature(x, alg, a)), argnums=(0, 1))
    gx, ga = jax.jit(f)(xs, supplied)
    assert gx.dtype == ga.dtype == dtype
    assert gx.shape == xs.shape
    assert ga.shape == supplied.shape

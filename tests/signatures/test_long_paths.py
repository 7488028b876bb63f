"""Paths long enough for blocks: values, all derivatives and accuracy against the plain
formula, which `long` paths no longer take."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arborax as abx
from arborax.signatures import _signature


CASES = [
    (abx.Shuffle(2, 3), None),
    (abx.Ito(2, 3), "supplied"),
    (abx.GrossmanLarson(2, 2), "left-point"),
]
FURTHER = [
    (abx.GrossmanLarson(2, 3), "realised"),
    (abx.MuntheKaasWright(2, 3), "supplied"),
    (abx.MuntheKaasWright(2, 3), "left-point"),
]
all_cases = pytest.mark.parametrize("alg, mode", CASES, ids=str)
STEPS = 300


@pytest.fixture
def in_one_piece(monkeypatch):
    """A function that runs another one without blocks."""

    def run(function, *args):
        with monkeypatch.context() as patch:
            patch.setattr(_signature, "is_long", lambda moves: False)
            return jax.jit(lambda *x: function(*x))(*args)

    return run


def draw(seed, shape=(), dtype=jnp.float64):
    rng = np.random.default_rng(seed)
    xs = rng.normal(size=(*shape, STEPS + 1, 2)).cumsum(-2) / STEPS**0.5
    square = rng.normal(size=(*shape, STEPS, 2, 2)) / STEPS
    square = square + square.swapaxes(-1, -2)
    return jnp.asarray(xs, dtype), jnp.asarray(square, dtype)


def objective(alg, mode, name="signature"):
    size = alg.size if name == "signature" else alg.primitive_size
    weights = jnp.asarray(np.random.default_rng(9).normal(size=size))

    def f(xs, supplied):
        brackets = supplied if mode == "supplied" else mode
        value = getattr(abx, name)(xs, alg, brackets)
        return jnp.sum(jnp.sin(value * jnp.broadcast_to(weights, value.shape)))

    return f


def close(got, expected, tolerance):
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        scale = float(jnp.max(jnp.abs(b))) + 1e-30
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * scale)


@all_cases
def test_all_derivatives_agree_with_one_piece(alg, mode, in_one_piece):
    """Value, gradient, forward mode, and second order composed in three ways, which
    all give the same derivative of the gradient."""
    f = objective(alg, mode)
    point, direction = draw(0), draw(1)
    gradient = jax.grad(f, argnums=(0, 1))

    def slope(*x):
        return jax.jvp(f, x, direction)[1]

    def along(*x):
        return sum(map(jnp.vdot, gradient(*x), direction))

    def everything(*x):
        return (
            (f(*x), gradient(*x)),
            (slope(*x), jax.jvp(gradient, x, direction)[1]),
            jax.grad(slope, argnums=(0, 1))(*x),
            jax.grad(along, argnums=(0, 1))(*x),
        )

    def forward_over_reverse(*x):
        return jax.jvp(jax.value_and_grad(f, argnums=(0, 1)), x, direction)

    first, second = in_one_piece(forward_over_reverse, *point)
    expected = first, second, second[1], second[1]
    close(jax.jit(everything)(*point), expected, 1e-9)


@pytest.mark.parametrize("alg, mode", FURTHER, ids=str)
def test_values_and_gradients_agree_with_one_piece(alg, mode, in_one_piece):
    f = jax.value_and_grad(objective(alg, mode, "log_signature"), argnums=(0, 1))
    point = draw(5)
    close(jax.jit(f)(*point), in_one_piece(f, *point), 1e-9)


@all_cases
def test_batches_and_vmap(alg, mode):
    xs, supplied = draw(2, (2, 3))
    gradient = jax.grad(objective(alg, mode, "log_signature"), argnums=(0, 1))
    whole = jax.jit(gradient)(xs, supplied)
    mapped = jax.jit(jax.vmap(jax.vmap(gradient)))(xs, supplied)
    close(mapped, whole, 1e-9)
    shared = jax.jit(jax.vmap(gradient, in_axes=(0, None)))(xs[0], supplied[0, 1])
    close([g[1] for g in shared], [g[0, 1] for g in whole], 1e-9)


@pytest.mark.parametrize("alg, mode", CASES + FURTHER[2:], ids=str)
def test_reversed_recursion_is_accurate_in_single_precision(alg, mode, in_one_piece):
    """Stepping back loses no more than a few units in the last place of the largest
    derivative, also where the signature has coordinates of very different size."""
    size = np.random.default_rng(3).normal(size=alg.size)
    xs, supplied = draw(4)

    def f(x, a, scale):
        value = abx.signature(scale * x, alg, a if mode == "supplied" else mode)
        return jnp.vdot(jnp.asarray(size, x.dtype), value)

    gradient = jax.grad(f, argnums=(0, 1))
    scales = jnp.array([1.0, 10.0])
    mapped = jax.vmap(gradient, in_axes=(None, None, 0))
    exact = in_one_piece(mapped, xs, supplied, scales)
    single = [x.astype(jnp.float32) for x in (xs, supplied)]
    compiled = jax.jit(gradient)
    for k, scale in enumerate(scales):
        got = compiled(*single, scale.astype(jnp.float32))
        close(got, [g[k] for g in exact], 2e-5)

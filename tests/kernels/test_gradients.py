"""Gradients against finite differences; jit, vmap, jvp; both float types."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arborax as abx


CASES = [
    ("geometric", None, "linear"),
    ("geometric", 3, "rbf"),
    ("ito", None, "rbf"),
    ("branched", None, "linear"),
    ("branched", 3, "rational-quadratic"),
    ("planar", None, "linear"),
]


def _paths(rng, n, times, size=0.3):
    return jnp.asarray(np.cumsum(size * rng.standard_normal((n, times, 2)), axis=1))


def _check(loss, argument, rng, rtol=1e-6):
    gradient = jax.jit(jax.grad(loss))(argument)
    value = jax.jit(loss)
    for _ in range(2):
        direction = jnp.asarray(rng.standard_normal(argument.shape))
        h = 1e-5
        slope = (value(argument + h * direction) - value(argument - h * direction)) / (
            2 * h
        )
        np.testing.assert_allclose(jnp.sum(gradient * direction), slope, rtol=rtol)
    return gradient


@pytest.mark.parametrize("kind, depth, static", CASES)
def test_gram_gradient(kind, depth, static, rng):
    x, y = _paths(rng, 3, 6), _paths(rng, 2, 8)
    weights = jnp.asarray(rng.standard_normal((3, 2)))

    def loss(z):
        options = dict(static_kernel=static, method="recursion")
        return jnp.sum(weights * abx.signature_gram(z, y, kind, depth, **options))

    _check(loss, x, rng)


def test_long_paths_cross_chunks(rng):
    """More diagonals than one stored chunk, unequal lengths, pairs."""
    x, y = _paths(rng, 2, 40, 0.1), _paths(rng, 2, 23, 0.1)

    def loss(z):
        return jnp.sum(abx.signature_kernel(z, y))

    _check(loss, x, rng)


@pytest.mark.parametrize("kind, depth", [("ito", None), ("branched", 3)])
def test_bracket_gradient(kind, depth, rng):
    x, y = _paths(rng, 2, 5), _paths(rng, 2, 4)
    root = 0.3 * rng.standard_normal((2, 4, 2, 2))
    a = jnp.asarray(root @ np.swapaxes(root, -1, -2))

    def loss(b):
        b = b + jnp.swapaxes(b, -1, -2)
        return jnp.sum(
            abx.signature_gram(x, y, kind, depth, brackets_x=b, method="recursion")
        )

    _check(loss, a, rng, rtol=1e-5)


def test_static_parameters_are_differentiable(rng):
    x, y = _paths(rng, 2, 6), _paths(rng, 2, 5)

    def loss(lengthscale):
        kernel = abx.RBFKernel(lengthscale)
        return jnp.sum(abx.signature_gram(x, y, static_kernel=kernel))

    at, h = jnp.asarray(0.8), 1e-5
    slope = (loss(at + h) - loss(at - h)) / (2 * h)
    np.testing.assert_allclose(jax.grad(loss)(at), slope, rtol=1e-7)


def test_forward_mode_and_vmap(rng):
    x, y = _paths(rng, 3, 5), _paths(rng, 3, 6)

    def one(a, b):
        return abx.signature_kernel(a, b, "ito")

    mapped = jax.vmap(one)(x, y)
    np.testing.assert_allclose(mapped, abx.signature_kernel(x, y, "ito"), rtol=1e-12)
    tangent = jnp.asarray(rng.standard_normal(x.shape))
    _, out = jax.jvp(lambda z: jax.vmap(one)(z, y), (x,), (tangent,))
    pulled = jax.grad(lambda z: jnp.sum(abx.signature_kernel(z, y, "ito")))(x)
    np.testing.assert_allclose(jnp.sum(out), jnp.sum(pulled * tangent), rtol=1e-9)
    gradient = jax.vmap(jax.grad(lambda a, b: abx.signature_kernel(a, b, "ito")))(x, y)
    np.testing.assert_allclose(gradient, pulled, rtol=1e-9)


@pytest.mark.parametrize("kind", ["geometric", "branched"])
def test_single_precision(kind, rng):
    x, y = _paths(rng, 2, 6), _paths(rng, 2, 7)
    small = abx.signature_gram(x.astype(jnp.float32), y.astype(jnp.float32), kind)
    assert small.dtype == jnp.float32
    np.testing.assert_allclose(small, abx.signature_gram(x, y, kind), rtol=2e-4)

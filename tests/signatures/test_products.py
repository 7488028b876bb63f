"""The primitives behind tensor signatures against plain NumPy-style code."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.test_util import check_grads

from arborax.signatures._nodes import mix_nodes
from arborax.signatures._outer import outer


def plain_outer(x, y):
    return jnp.einsum("bm...,bn...->bmn...", x, y).reshape(x.shape[0], -1, *x.shape[2:])


def as_arrays(function):
    """Finite differences come as NumPy arrays."""
    return lambda *args: function(*map(jnp.asarray, args))


@pytest.mark.parametrize("m, n", [(2, 3), (70, 2), (2, 70)])
def test_outer(m, n, getkey):
    """Beyond 64 terms sums are not written out."""
    x, y = jr.normal(getkey(), (2, m, 3)), jr.normal(getkey(), (2, n, 3))
    w = jr.normal(getkey(), (2, m * n, 3))
    np.testing.assert_allclose(outer(x, y), plain_outer(x, y), rtol=1e-14)

    def loss(function):
        return lambda x, y: jnp.sum(w * jnp.sin(function(x, y)))

    ours = jax.grad(loss(outer), argnums=(0, 1))(x, y)
    plain = jax.grad(loss(plain_outer), argnums=(0, 1))(x, y)
    for a, b in zip(ours, plain):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_outer_in_all_orders_and_batches(getkey):
    x, y = jr.normal(getkey(), (1, 2, 2)), jr.normal(getkey(), (1, 3, 2))
    check_grads(as_arrays(outer), (x, y), order=3, modes=("fwd", "rev"))
    xs = jr.normal(getkey(), (4, 1, 2, 2))
    np.testing.assert_allclose(
        jax.vmap(outer, in_axes=(0, None))(xs, y),
        jnp.stack([outer(x, y) for x in xs]),
        rtol=1e-14,
    )
    gradients = jax.vmap(
        jax.grad(lambda a, b: jnp.sum(outer(a, b) ** 3), argnums=1), in_axes=(0, None)
    )(xs, y)
    for x, gradient in zip(xs, gradients):
        expected = jax.grad(lambda b, x=x: jnp.sum(plain_outer(x, b) ** 3))(y)
        np.testing.assert_allclose(gradient, expected, rtol=1e-12)


def test_mix_nodes(getkey):
    matrix = np.array([[1.0, -2.0, 0.0], [0.0, 0.0, 0.0], [0.5, 3.0, 1.0]])
    x = jr.normal(getkey(), (2, 4, 3, 5))
    plain = lambda x: jnp.einsum("rk,bwks->bwrs", jnp.asarray(matrix), x)  # noqa: E731
    ours = lambda x: mix_nodes(matrix, x)  # noqa: E731
    np.testing.assert_allclose(ours(x), plain(x), rtol=1e-14)
    w = jr.normal(getkey(), (2, 4, 3, 5))
    both = [jax.grad(lambda x, f=f: jnp.vdot(w, f(x)))(x) for f in (ours, plain)]
    np.testing.assert_allclose(*both, rtol=1e-14)
    check_grads(as_arrays(lambda x: ours(x) ** 2), (x,), order=2, modes=("fwd", "rev"))
    xs = jr.normal(getkey(), (2, 4, 3, 5, 2))
    mapped = jax.vmap(ours, in_axes=-1, out_axes=-1)(xs)
    np.testing.assert_allclose(mapped[..., 1], ours(xs[..., 1]), rtol=1e-14)

"""The primitives behind tensor signatures against plain NumPy-style code."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.test_util import check_grads

from arborax._xla import apply_rows, outer, stored
from arborax.algebra import SparseMap


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


@pytest.mark.parametrize("width", [3, 40, 900])
def test_sparse_rows(width, getkey):
    """Rows of few and of very many entries, and the transpose of either."""
    rng = np.random.default_rng(width)
    count, columns = 30, 2000
    row = np.concatenate([np.zeros(width, int), rng.integers(0, count, 3 * count)])
    column = rng.integers(0, columns, row.size)
    sparse = SparseMap(row, column, rng.normal(size=row.size), (count, columns))
    x, y = jr.normal(getkey(), (columns, 2)), jr.normal(getkey(), (count, 2))
    dense = sparse.todense()
    value, pull = jax.vjp(lambda x: apply_rows(sparse, x), x)
    np.testing.assert_allclose(value, dense @ x, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(pull(y)[0], dense.T @ y, rtol=1e-11, atol=1e-11)


def test_stored_is_the_identity(getkey):
    x = jr.normal(getkey(), (3, 4)).at[0, 0].set(jnp.inf)
    np.testing.assert_array_equal(jax.jit(stored)(x), x)
    np.testing.assert_array_equal(jax.jit(stored)(-x), -x)
    np.testing.assert_array_equal(jax.vmap(stored)(x * jnp.nan), x * jnp.nan)
    x = x.at[0, 0].set(1.0)
    check_grads(as_arrays(lambda x: stored(x) ** 2), (x,), 2, modes=("fwd", "rev"))

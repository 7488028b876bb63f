"""Values that the compiler computes once."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from arborax._xla import barrier, barrier_back


def test_barrier_changes_no_bit():
    x = jnp.array([0.0, -0.0, 1.0, -3.7e5, 1e-300, jnp.inf, -jnp.inf, jnp.nan])
    for y in (x, x.at[4].set(1e-30).astype(jnp.float32)):
        np.testing.assert_array_equal(jax.jit(barrier)(y), y)
    assert bool(jnp.signbit(jax.jit(barrier)(x)[1]))


def test_barrier_keeps_the_compiler_from_repeating():
    """Without it the series below is inlined into the product, nine times a row."""

    def series(t, matrix, stop):
        c = t
        for k in range(10):
            c = c * t + 0.1 * k
        return stop(c)[:, None, None] * matrix

    args = jnp.ones(64), jnp.ones((64, 3, 3))

    def kernels(stop):
        compiled = jax.jit(lambda t, m: series(t, m, stop)).lower(*args).compile()
        return compiled.as_text().count(" fusion(")

    assert kernels(barrier) > kernels(lambda c: c)


@pytest.mark.parametrize("size", [3, 2**14])
def test_barriers_are_linear_and_batch(size):
    """Small and large arrays take different ways."""
    x = jr.normal(jr.PRNGKey(0), (4, size), jnp.float64)
    f = lambda z: jnp.sum(jax.vmap(barrier, in_axes=1, out_axes=1)(z) ** 3)  # noqa: E731
    np.testing.assert_allclose(jax.jit(jax.grad(f))(x), 3 * x**2, rtol=1e-14)
    second = jax.jit(lambda z: jax.jvp(jax.grad(f), (z,), (z,))[1])(x)
    np.testing.assert_allclose(second, 6 * x**2, rtol=1e-14)


def test_a_barrier_backward_costs_nothing_forward():
    """The value compiles to nothing, the gradient to one more kernel; and gradients of
    first and second order are those without it."""
    x = jr.normal(jr.PRNGKey(0), (4, 3), jnp.float64)
    f = lambda z: jnp.sum(jax.vmap(barrier_back, 1, 1)(z) ** 3)  # noqa: E731
    np.testing.assert_array_equal(barrier_back(x), x)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(x), 3 * x**2, rtol=1e-14)
    second = jax.jacrev(jax.grad(f))(x).reshape(12, 12)
    np.testing.assert_allclose(second, jnp.diag(6 * x.reshape(-1)), rtol=1e-14)

    def divisions(function):
        return jax.jit(function).lower(x).compile().as_text().count(" divide(")

    assert divisions(f) == 0 < divisions(jax.grad(f))


@pytest.mark.parametrize("size", [6, 2**14])
def test_paths_do_not_mix(size):
    """To the last bit: a path that is not finite leaves the others alone."""
    x = jr.normal(jr.PRNGKey(0), (4, size)).at[2].set(jnp.nan).at[3, 0].set(jnp.inf)
    np.testing.assert_array_equal(jax.jit(jax.vmap(barrier))(x), x)
    np.testing.assert_array_equal(jax.jit(jax.vmap(barrier, 1, 1))(x), x)
    np.testing.assert_array_equal(jax.jit(barrier)(-x.T), -x.T)

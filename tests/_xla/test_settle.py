"""Values computed once, and functions that reverse mode does not run through."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from arborax._xla import settle, settle_cotangent
from arborax.geometry._functions import forward_only
from arborax.geometry._matrix import expm


def test_settle_changes_no_bit():
    x = jnp.array([0.0, -0.0, 1.0, -3.7e5, 1e-300, jnp.inf, -jnp.inf, jnp.nan])
    for y in (x, x.at[4].set(1e-30).astype(jnp.float32)):
        np.testing.assert_array_equal(jax.jit(settle)(y), y)
    assert bool(jnp.signbit(jax.jit(settle)(x)[1]))


def test_settle_keeps_the_compiler_from_repeating():
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

    assert kernels(settle) > kernels(lambda c: c)


def test_settle_is_linear_and_batches():
    x = jr.normal(jr.PRNGKey(0), (4, 3), jnp.float64)
    f = lambda z: jnp.sum(jax.vmap(settle, in_axes=1, out_axes=1)(z) ** 3)  # noqa: E731
    np.testing.assert_allclose(jax.grad(f)(x), 3 * x**2, rtol=1e-14)
    second = jax.jacrev(jax.grad(f))(x).reshape(12, 12)
    np.testing.assert_allclose(second, jnp.diag(6 * x.reshape(-1)), rtol=1e-14)


@pytest.mark.parametrize("keep", [False, True])
def test_a_settled_cotangent_costs_nothing_forward(keep):
    """The value compiles to nothing, the gradient to one more kernel; and gradients of
    first and second order are those without it."""
    mark = lambda z: settle_cotangent(z, keep=keep)  # noqa: E731
    x = jr.normal(jr.PRNGKey(0), (4, 3), jnp.float64)
    f = lambda z: jnp.sum(jax.vmap(mark, in_axes=1, out_axes=1)(z) ** 3)  # noqa: E731
    np.testing.assert_array_equal(mark(x), x)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(x), 3 * x**2, rtol=1e-14)
    second = jax.jacrev(jax.grad(f))(x).reshape(12, 12)
    np.testing.assert_allclose(second, jnp.diag(6 * x.reshape(-1)), rtol=1e-14)

    def divisions(function):
        return jax.jit(function).lower(x).compile().as_text().count(" divide(")

    assert divisions(f) == 0 < divisions(jax.grad(f))


def test_derivatives_of_every_order_without_reversing_a_loop():
    """A loop of dynamic length has no reverse mode; its Jacobian is taken forward."""

    def plain(x):
        return jnp.stack([jnp.sin(x[0]) * x[1] ** 3, jnp.exp(x[0] * x[1])])

    def looped(x):
        body = lambda carry: (carry[0] - 1, carry[1] + plain(x) / 3)  # noqa: E731
        start = (3, jnp.zeros(2))
        return jax.lax.while_loop(lambda carry: carry[0] > 0, body, start)[1]

    x = jnp.array([0.4, -1.1])
    got, want = forward_only(looped), plain
    for _ in range(3):
        got, want = jax.jacrev(got), jax.jacrev(want)
        np.testing.assert_allclose(jax.jit(got)(x), want(x), rtol=1e-12)
    batch = jnp.stack([x, 2 * x])
    np.testing.assert_allclose(
        jax.vmap(jax.jacrev(forward_only(looped)))(batch),
        jax.vmap(jax.jacfwd(plain))(batch),
        rtol=1e-12,
    )


def test_second_derivatives_of_the_exponential_of_size_three():
    """Against the block triangular exponential, which holds them as entries."""
    a, b = jr.normal(jr.PRNGKey(1), (2, 3, 3), jnp.float64)

    def curve(t):
        return expm(a + t * b)

    zero = jnp.zeros((3, 3))
    block = jnp.block([[a, b, zero], [zero, a, b], [zero, zero, a]])
    whole = expm(block)
    first = jax.jit(jax.jacrev(curve))(0.0)
    second = jax.jit(jax.jacrev(jax.jacrev(curve)))(0.0)
    np.testing.assert_allclose(first, whole[:3, 3:6], rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(second, 2 * whole[:3, 6:], rtol=1e-11, atol=1e-11)

"""Derivatives of the functions that geometries are made of."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx
from arborax.geometry import expm
from arborax.geometry._rotation import feedback
from arborax.geometry._trigonometric import forward_only


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


@pytest.mark.parametrize(
    "geometry",
    [abx.SPD(2), abx.SPD(3), abx.SPD(4), abx.SPD(3, "root"), abx.SO(3), abx.Sphere(2)],
    ids=repr,
)
def test_derivatives_of_frame_fields_along_one_another(geometry):
    """`turning` against finite differences of the frame, pair by pair."""
    y = geometry.random_point(key=jr.PRNGKey(1), dtype=jnp.float64)
    m = jr.normal(jr.PRNGKey(2), (geometry.dim, geometry.dim))
    step, total = 1e-5, 0
    eye = jnp.eye(geometry.dim)
    for a in range(geometry.dim):
        for b in range(geometry.dim):
            along = step * geometry.frame(y, eye[a])
            difference = geometry.frame(y + along, eye[b]) - geometry.frame(
                y - along, eye[b]
            )
            total = total + m[a, b] * difference / (2 * step)
    np.testing.assert_allclose(geometry.turning(y, m), total, atol=1e-6)


def test_newton_factor_of_rotations_only_removes_rounding():
    """On the group the factor is the identity: what it changes is rounding."""
    y = abx.SO(3).random_point(key=jr.PRNGKey(0), dtype=jnp.float64)
    assert jnp.max(jnp.abs(feedback(y) - y)) <= 4 * jnp.finfo(jnp.float64).eps

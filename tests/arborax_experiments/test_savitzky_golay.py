"""Polynomial paths through rotations."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx
import arborax_experiments.rotations as M


def rotation_path(times=21, dtype=jnp.float64, speed=(1.0, 0.5, -0.3)):
    """Times, and a rotation of constant angular velocity."""
    ts = jnp.linspace(0, 1, times, dtype=dtype)
    start = abx.SO(3).random_point(key=jr.PRNGKey(7), dtype=dtype)
    axis = jnp.asarray(speed, dtype)
    return ts, jax.vmap(lambda t: abx.SO(3).exp(start, t * axis))(ts)


def _left_jacobian(phi):
    angle = np.linalg.norm(phi)
    hat = np.array([[0, -phi[2], phi[1]], [phi[2], 0, -phi[0]], [-phi[1], phi[0], 0]])
    half = np.sin(angle / 2) / (angle / 2)
    return (
        np.eye(3)
        + half**2 / 2 * hat
        + (1 - np.sin(angle) / angle) / angle**2 * hat @ hat
    )


@pytest.mark.parametrize("dtype, tol", [(jnp.float64, 1e-10), (jnp.float32, 2e-4)])
def test_constant_angular_velocity_is_continued_exactly(dtype, tol):
    ts, rotations = rotation_path(dtype=dtype)
    fit = M.SavitzkyGolayRotation(ts[:12], rotations[:12], order=3)
    out = jax.vmap(fit.evaluate)(ts)
    np.testing.assert_allclose(out, rotations, atol=tol)


def test_derivative_by_the_left_jacobian():
    ts, rotations = rotation_path(speed=(2.0, -1.0, 0.5))
    noise = 0.05 * jnp.sin(jnp.arange(36.0)).reshape(12, 3)
    noisy = jax.vmap(abx.SO(3).exp)(rotations[:12], noise)
    weights = jnp.linspace(0.5, 2.0, 12)
    fit = M.SavitzkyGolayRotation(ts[:12], noisy, order=2, weights=weights)
    for t in (0.1, 0.8):
        t = jnp.asarray(t)
        phi, rate = jax.jvp(fit.rotation_vector, (t,), (jnp.ones(()),))
        omega = _left_jacobian(np.asarray(phi)) @ np.asarray(rate)
        matrix = np.asarray(fit.derivative(t)) @ np.asarray(fit.evaluate(t)).T
        spin = np.array([matrix[2, 1], matrix[0, 2], matrix[1, 0]])
        np.testing.assert_allclose(spin, omega, rtol=1e-9)


def test_weighted_least_squares():
    """The fit minimises the weighted squares: the gradient there is zero."""
    ts, rotations = rotation_path()
    noise = 0.1 * jnp.cos(jnp.arange(36.0)).reshape(12, 3)
    noisy = jax.vmap(abx.SO(3).exp)(rotations[:12], noise)
    weights = jnp.linspace(0.5, 2.0, 12)
    fit = M.SavitzkyGolayRotation(ts[:12], noisy, order=2, weights=weights)
    phi = jax.vmap(lambda r: abx.SO(3).log(jnp.eye(3), r @ noisy[6].T))(noisy)
    residual = phi - jax.vmap(fit.rotation_vector)(ts[:12])
    place = ts[:12] - ts[6]
    for j in range(3):
        moment = (weights * place**j) @ residual
        np.testing.assert_allclose(moment, 0, atol=1e-10)


def test_refusals():
    ts, rotations = rotation_path()
    with pytest.raises(ValueError, match="order"):
        M.SavitzkyGolayRotation(ts[:3], rotations[:3], order=3)

"""Simulated rotations: physics, and quaternions."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from arborax.datasets import (
    _quaternions as quaternions,
    FreeRotation,
)


def _momentum(data):
    body = data.inertia[:, None] * data.velocities
    return np.einsum("ntij,ntj->nti", data.rotations, body)


def test_angular_momentum_and_energy_are_conserved():
    data = FreeRotation().sample(50, seed=1)
    momentum = _momentum(data)
    np.testing.assert_allclose(momentum, momentum[:, :1].repeat(101, 1), atol=1e-7)
    energy = np.sum(data.inertia[:, None] * data.velocities**2, axis=-1)
    np.testing.assert_allclose(energy, energy[:, :1].repeat(101, 1), atol=1e-8)


def test_published_kinematics_lose_angular_momentum():
    data = FreeRotation(kinematics="mixed").sample(50, seed=1)
    momentum = _momentum(data)
    change = np.linalg.norm(momentum - momentum[:, :1], axis=-1)
    assert (change.max(axis=1) > 0.01).mean() > 0.9
    energy = np.sum(data.inertia[:, None] * data.velocities**2, axis=-1)
    np.testing.assert_allclose(energy, energy[:, :1].repeat(101, 1), atol=1e-8)


def test_against_an_adaptive_solver():
    """One trajectory with rotation matrices, not quaternions, by SciPy."""
    data = FreeRotation(times=31).sample(1, seed=3)
    inertia = data.inertia[0]

    def rate(t, state):
        r, w = state[:9].reshape(3, 3), state[9:]
        hat = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        torque = np.cross(inertia * w, w) / inertia
        return np.concatenate([(r @ hat).ravel(), torque])

    start = np.concatenate([data.rotations[0, 0].ravel(), data.velocities[0, 0]])
    found = solve_ivp(rate, (0, 3), start, t_eval=data.ts, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        found.y[:9].T.reshape(-1, 3, 3), data.rotations[0], atol=1e-7
    )


def test_initial_law():
    data = FreeRotation(times=1).sample(4000)
    speed = np.linalg.norm(data.velocities[:, 0], axis=1)
    assert speed.min() >= 0.1
    assert abs(np.mean(speed) - 0.3 * np.sqrt(8 / np.pi)) < 0.02
    np.testing.assert_allclose(np.sort(data.inertia, axis=1)[0], (0.1, 0.2, 0.3))
    # Uniform rotations have mean zero.
    assert np.abs(data.rotations[:, 0].mean(axis=0)).max() < 0.04


def test_quaternions_against_scipy(rng):
    q = quaternions.normalise(rng.standard_normal((30, 4)))
    p = quaternions.normalise(rng.standard_normal((30, 4)))
    rotation = Rotation.from_quat(q)
    np.testing.assert_allclose(
        quaternions.to_matrix(q), rotation.as_matrix(), atol=1e-12
    )
    product = (Rotation.from_quat(p) * rotation).as_matrix()
    both = quaternions.to_matrix(quaternions.multiply(p, q))
    np.testing.assert_allclose(both, product, atol=1e-12)
    vectors = quaternions.to_vector(q)
    np.testing.assert_allclose(vectors, rotation.as_rotvec(), atol=1e-9)
    back = quaternions.to_matrix(quaternions.from_vector(vectors))
    np.testing.assert_allclose(back, rotation.as_matrix(), atol=1e-12)
    np.testing.assert_allclose(quaternions.to_vector(np.array([0.0, 0, 0, 1])), 0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: FreeRotation(kinematics="other"),  # pyright: ignore
        lambda: FreeRotation(step=0.0),
        lambda: FreeRotation(inertia=(0.1, 0.0, 0.3)),
    ],
)
def test_bad_input(call):
    with pytest.raises(Exception, match=r"."):
        call()

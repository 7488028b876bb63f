"""Simulated rotations: physics, windows, splits, observations."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from arborax.datasets import (
    _quaternions as quaternions,
    DrivenRotation,
    FreeRotation,
    observe,
    rotation_windows,
    split_rotations,
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


def test_driven_rotation_follows_its_velocity():
    """Increments of the rotations are the velocity at the middle of the step."""
    data = DrivenRotation(
        times=20, amplitude=(0.5, 1.0), correlation=(2.0, 3.0), carrier=(0.5, 1.0)
    ).sample(20)
    step = np.einsum("ntji,ntjk->ntik", data.rotations[:, :-1], data.rotations[:, 1:])
    turns = Rotation.from_matrix(step.reshape(-1, 3, 3)).as_rotvec()
    middle = (data.velocities[:, 1:] + data.velocities[:, :-1]) / 2
    np.testing.assert_allclose(turns.reshape(20, 19, 3), 0.1 * middle, atol=2e-3)


def test_windows_and_splits():
    rotations = FreeRotation(times=102).sample(20).rotations
    windows = rotation_windows(rotations, 21)
    assert windows.shape == (20 * 82, 21, 3, 3)
    np.testing.assert_array_equal(windows[82 + 3], rotations[1, 3:24])
    train, validation, test = split_rotations(rotations)
    assert [len(p) // 82 for p in (train, validation, test)] == [16, 2, 2]
    np.testing.assert_array_equal(test[0], rotations[18, :21])
    # As published: 61, 11 and 12 windows of each trajectory.
    parts = split_rotations(rotations, by="time")
    assert [len(p) // 20 for p in parts] == [61, 11 + 0, 12]
    np.testing.assert_array_equal(parts[2][11], rotations[0, 81:102])


def test_observations():
    windows = rotation_windows(FreeRotation().sample(10).rotations, 21, 8)
    clean = observe(windows)
    np.testing.assert_allclose(clean.rotations, windows[:, :12], atol=1e-12)
    assert clean.mask.all() and clean.truth is windows
    np.testing.assert_array_equal(clean.times[0], np.arange(21))
    steps = np.linspace(0.02, 0.1, len(windows))
    timed = observe(windows, step=steps)
    np.testing.assert_allclose(timed.times[:, 20], 20 * steps)
    np.testing.assert_array_equal(timed.ts, timed.times[:, :12])
    noisy = observe(windows, noise=0.03, drop=0.3, seed=1)
    assert (noisy.mask.sum(axis=1) == 8).all()
    relative = np.swapaxes(windows[:, :12], -1, -2) @ noisy.rotations
    vectors = Rotation.from_matrix(relative.reshape(-1, 3, 3)).as_rotvec()
    assert abs(vectors.std() - 0.03) < 0.002
    levels = np.linspace(0, 0.05, len(windows))
    mixed = observe(windows, noise=levels)
    np.testing.assert_allclose(mixed.rotations[0], windows[0, :12], atol=1e-12)
    assert np.abs(mixed.rotations[-1] - windows[-1, :12]).max() > 0.02


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
        lambda: DrivenRotation(amplitude=(0.0, 1.0)),
        lambda: rotation_windows(np.zeros((2, 5, 3, 3)), 6),
        lambda: split_rotations(np.zeros((10, 30, 3, 3)), by="x"),  # pyright: ignore
        lambda: observe(np.zeros((2, 21, 3, 3)), 1),
        lambda: observe(np.zeros((2, 21, 3, 3)), drop=1.0),
        lambda: observe(np.zeros((2, 21, 3, 3)), noise=-0.1),
        lambda: observe(np.zeros((2, 21, 3, 3)), step=0.0),
    ],
)
def test_bad_input(call):
    with pytest.raises(Exception, match=r"."):
        call()

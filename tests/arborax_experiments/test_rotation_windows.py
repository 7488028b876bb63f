"""Windows of rotations: splits and observations."""

import inspect

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from arborax.datasets import FreeRotation
from arborax_experiments.rotations import observe, rotation_windows, split_rotations
from arborax_experiments.rotations.windows import rotation_matrices


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


def test_rotation_matrices_against_scipy(rng):
    vectors = rng.standard_normal((30, 3))
    expected = Rotation.from_rotvec(vectors).as_matrix()
    np.testing.assert_allclose(rotation_matrices(vectors), expected, atol=1e-12)
    np.testing.assert_array_equal(rotation_matrices(np.zeros(3)), np.eye(3))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: rotation_windows(np.zeros((2, 5, 3, 3)), 6), "does not fit"),
        (lambda: rotation_windows(np.zeros((2, 5, 3, 3)), 3, 0), "then 0 on"),
        (lambda: inspect.unwrap(rotation_windows)(np.zeros((5, 3, 3)), 3), r"s.None"),
        (lambda: observe(np.zeros((2, 5, 3, 3)), 3, noise=np.nan), "noise"),
        (lambda: observe(np.zeros((2, 21, 3, 3)), 1), "observed"),
        (lambda: observe(np.zeros((2, 21, 3, 3)), drop=1.0), "drop"),
        (lambda: observe(np.zeros((2, 21, 3, 3)), noise=-0.1), "noise"),
        (lambda: observe(np.zeros((2, 21, 3, 3)), step=0.0), "step"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()

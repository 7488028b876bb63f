"""The experiment `poses`: windows, noise, the front, one run."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from arborax.datasets import make_recording
from arborax.geometry import SE
from arborax_experiments import find_task, run, table
from arborax_experiments.rotations import FilterBank
from arborax_experiments.rotations.poses import (
    EYE,
    METRES,
    observe,
    PoseBank,
    recorded,
    scored,
)


TASK = find_task("poses")


def screw(ts):
    """Poses of a motion with constant body velocity, in double precision."""
    u = jnp.array([0.3, -0.2, 0.5, 0.1, 0.4, -0.2])
    return jax.vmap(lambda t: SE(3).exp(jnp.eye(4), t * u))(ts)


def quaternion(rotations):
    w = np.sqrt(1 + np.trace(rotations, axis1=1, axis2=2)) / 2
    r = rotations
    odd = [r[:, 2, 1] - r[:, 1, 2], r[:, 0, 2] - r[:, 2, 0], r[:, 1, 0] - r[:, 0, 1]]
    return np.stack([*(x / (4 * w) for x in odd), w], axis=1)


def test_recorded_windows_do_not_bridge_gaps():
    ts = np.concatenate([np.arange(0, 2, 0.01), 5 + np.arange(0, 1, 0.01)])
    truth = np.asarray(screw(jnp.asarray(ts)))
    poses = make_recording("a", ts, quaternion(truth[:, :3, :3]), truth[:, :3, 3])
    windows = recorded(poses, 10.0, 5)
    # 20 and 10 samples at 10 Hz, windows of five.
    assert windows.shape == (16 + 6, 5, 4, 4)
    np.testing.assert_allclose(windows[0], screw(jnp.arange(5) / 10), atol=2e-4)
    np.testing.assert_array_equal(windows[:, 0, :3, 3], 0)
    steps = np.asarray(jax.vmap(SE(3).log)(windows[:, 0], windows[:, 1]))
    np.testing.assert_allclose(steps, np.tile(steps[:1], (22, 1)), atol=1e-3)


def test_noise_is_of_the_stated_size_and_targets_are_clean():
    windows = np.tile(EYE, (4000, 3, 1, 1))
    rng = np.random.default_rng(0)
    ts, seen, times, truth = observe(windows, 0.1, 0.02, 2, rng)
    np.testing.assert_allclose(times[0], [0, 0.1, 0.2], rtol=1e-6)
    assert ts.shape == (4000, 2) and truth is windows
    log = np.asarray(jax.vmap(lambda y: SE(3).log(jnp.asarray(EYE), y))(seen[:, 0]))
    spread = 0.02 * np.array([1, 1, 1, METRES, METRES, METRES])
    # Standard error of a deviation from 4,000 numbers: 1.1 per cent.
    np.testing.assert_allclose(log.std(axis=0), spread, rtol=0.05)


def test_the_front_continues_steady_motion():
    ts = jnp.arange(21) / 10
    turning = screw(ts).at[:, :3, 3].set(ts[:, None] * jnp.array([[0.3, -0.2, 0.1]]))
    front = PoseBank(FilterBank(), FilterBank())
    found = jax.jit(front)(ts[:12], turning[:12], ts)
    np.testing.assert_allclose(found, turning, atol=2e-2)
    far = turning.at[:, :3, 3].add(7)
    moved = jax.jit(front)(ts[:12], far[:12], ts)
    np.testing.assert_allclose(moved[:, :3, 3] - 7, found[:, :3, 3], atol=1e-6)


def test_scores_are_degrees_and_millimetres():
    batch = observe(np.tile(EYE, (2, 4, 1, 1)), 1.0, 0.0, 2, np.random.default_rng(0))

    def off(ts, poses, times):
        there = SE(3).exp(
            jnp.asarray(EYE), jnp.array([0.1, 0, 0, 0, 0.002, 0], EYE.dtype)
        )
        return jnp.broadcast_to(there, (4, 4, 4))

    np.testing.assert_allclose(scored(off, batch), [np.degrees(0.1), 2], rtol=1e-3)


def test_one_run(tmp_path):
    changes = {"rates": (10.0,), "motions": 16, "windows": 8}
    result = run(TASK, preset="smoke", folder=tmp_path, changes=changes, progress=False)
    assert {*result["scores"]} == {f"simulated, 10 Hz, noise {n}" for n in (0, 0.02)}
    text = table(TASK, [result])
    assert "reference: filter bank" in text and "B-NRDE on SE(3), 1 seed" in text
    config = TASK.configure("arborax", "smoke", **changes)
    data = TASK.data(dataclasses.replace(config, model="gru"), None)
    windows, steps = data[0]
    assert len(windows) == len(steps) == 16

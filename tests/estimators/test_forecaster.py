"""Forecasts: of known dynamics, on manifolds, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


pytest.importorskip("sklearn")

import arborax as abx  # noqa: E402
from arborax.estimators import Forecaster  # noqa: E402


# Two steps teach nothing, and the estimators say so.
pytestmark = pytest.mark.filterwarnings("ignore:nothing was learned")
SMALL = dict(hidden=4, width=4)
QUICK = dict(steps=2, batch_size=8, options=SMALL, random_state=0, average=None)


class Whole(abx.models.AbstractModel):
    """Reads the whole path at once."""

    def __call__(self, path):
        return jnp.mean(path.xs, axis=0, keepdims=True)


@pytest.fixture
def waves(rng):
    """Sine waves of one frequency and any phase: the past says the future."""
    phase, size = rng.uniform(0, 2 * np.pi, (40, 1)), rng.uniform(1, 2, (40, 1))
    return (size * np.sin(0.7 * np.arange(24) + phase))[..., None]


def test_learns_waves(waves):
    fitted = Forecaster(
        3, "gru", steps=250, learning_rate=1e-2, random_state=0, options=dict(hidden=16)
    ).fit(waves[:32])
    assert fitted.score(waves[32:]) > 0.9
    assert fitted.predict(waves).shape == (40, 3, 1)


@pytest.mark.parametrize("model", ["bnrde", "gru"])
def test_forecasts_are_those_of_the_model(waves, model):
    """Series of unequal length, one at a time and without padding."""
    X = [w[: 12 + k % 5] for k, w in enumerate(waves)]
    fitted = Forecaster(2, model, **QUICK).fit(X)
    found = fitted.predict(X)
    for k in (0, 3):
        xs = (X[k] - fitted.scaling_.mean) / fitted.scaling_.deviation
        ts = np.arange(len(xs)) / fitted.scaling_.span
        out = fitted.model_(abx.add_time(abx.SampledPath(ts, xs)))[-1]
        moves = np.asarray(out).reshape(2, 1) * fitted.move_scale_
        np.testing.assert_allclose(found[k], X[k][-1] + moves, atol=1e-10)


@pytest.mark.parametrize("geometry", [abx.SO(3), abx.SE(3), abx.SPD(2)], ids=str)
def test_states_on_manifolds(geometry, rng):
    """The forecast "no change" has score zero, and forecasts stay on the manifold."""
    moves = jnp.asarray(0.1 * rng.normal(size=(10, 7, geometry.dim)))
    start = geometry.base_point(jnp.float64)

    def walk(moves):
        def step(y, u):
            y = geometry.exp(y, u)
            return y, y

        return jax.lax.scan(step, start, moves)[1]

    X = np.asarray(jax.jit(jax.vmap(walk))(moves))
    fitted = Forecaster(2, "gru", geometry=geometry, **QUICK).fit(X)
    found = fitted.predict(X)
    assert found.shape == (10, 2, *geometry.point_shape)
    assert bool(jnp.all(jax.vmap(jax.vmap(geometry.belongs))(jnp.asarray(found))))
    assert np.isfinite(fitted.score(X))


@pytest.mark.slow
def test_poses_of_a_recording(tmp_path):
    """From a file of the TUM format to poses ahead: a screw of varying speed, in
    windows seen from their first pose."""
    ts = 0.1 * np.arange(320)
    angle = ts + 0.2 * np.sin(2 * ts)
    place = [np.sin(angle), 1 - np.cos(angle), 0.2 * ts + 0.2 * np.sin(ts)]
    axis = np.array([[1 / 3], [2 / 3], [2 / 3]]) * np.sin(angle / 2)
    rows = np.column_stack([1.3e9 + ts, *place, *axis, np.cos(angle / 2)])
    np.savetxt(tmp_path / "screw.txt", rows, fmt="%.7f")
    poses = abx.datasets.read_tum(tmp_path / "screw.txt").poses
    X = poses.reshape(40, 8, 4, 4)
    X = np.linalg.inv(X[:, :1]) @ X
    options = QUICK | dict(steps=80, learning_rate=2e-2, options=dict(hidden=8))
    fitted = Forecaster(2, "gru", geometry=abx.SE(3), **options).fit(X[::2])
    assert fitted.score(X[1::2]) > 0.5
    assert fitted.predict(X[1::2, :6]).shape == (20, 2, 4, 4)


def test_refusals(waves):
    with pytest.raises(ValueError, match="too few to learn forecasts 30"):
        Forecaster(30, "gru", **QUICK).fit(waves)
    with pytest.raises(TypeError, match="causal model"):
        Forecaster(1, Whole(), **QUICK).fit(waves)
    with pytest.raises(ValueError, match="points of SO"):
        Forecaster(1, "gru", geometry=abx.SO(3), **QUICK).fit(waves)
    fitted = Forecaster(2, "gru", **QUICK).fit(waves)
    with pytest.raises(ValueError, match="needs more than 2"):
        fitted.score(waves[:, :2])
    with pytest.raises(ValueError, match="fitted with 1"):
        fitted.predict(np.concatenate([waves, waves], axis=2))

"""Forecasts: of known dynamics, on manifolds, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


pytest.importorskip("sklearn")

pd = pytest.importorskip("pandas")

import arborax as abx  # noqa: E402
from arborax.estimators import as_paths, Forecaster  # noqa: E402


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


@pytest.fixture
def gappy(rng):
    """Random walks of two channels, of which half the values are missing."""
    xs = np.cumsum(rng.normal(size=(60, 32, 2)), axis=1)
    return np.where(rng.random(xs.shape) < 0.5, np.nan, xs)


@pytest.mark.parametrize("model", ["bnrde", "gru"])
def test_gaps_do_not_look_ahead(gappy, model):
    """What comes later changes nothing, bit by bit: not what the model reads, not the
    moves that it learns and not what it says."""
    fitted = Forecaster(1, model, **QUICK).fit(gappy)
    now = 13
    other = gappy.copy()
    other[:, now + 1 :] = np.where(np.isnan(gappy[:, now + 1 :]), 7.0, np.nan)

    def outputs(X):
        path = as_paths(X)
        items, _ = fitted._items(fitted.model_, path)
        moves, known = fitted._moves(path)
        made = np.asarray(jax.vmap(fitted.model_)(items))
        # A move reads one sample ahead, the one that is forecast.
        return made[:, : now + 1], moves[:, :now], known[:, :now]

    begun = (~np.isnan(gappy[:, : now + 1])).any(axis=1).all(axis=1)
    assert begun.sum() > 50
    for found, expected in zip(outputs(other), outputs(gappy)):
        np.testing.assert_array_equal(found[begun], expected[begun])


def test_moves_between_what_was_observed():
    """From the last value known, to observed values only, and not before each channel
    has been observed."""
    no = np.nan
    x = np.array([[no, 1.0, no, 4.0, no, no, 9.0], [0.0, no, 2.0, 3.0, no, 5.0, no]])
    fitted = Forecaster(2, "gru", **QUICK).fit(np.stack([x.T, x.T]))
    moves, known = fitted._moves(as_paths(x.T[None]))
    expected = np.full((7, 2, 2), no)
    expected[1] = [[no, 2.0], [3.0, 3.0]]
    expected[2] = [[3.0, 1.0], [no, no]]
    expected[3] = [[no, no], [no, 2.0]]
    expected[4] = [[no, 2.0], [5.0, no]]
    expected[5] = [[5.0, no], [no, no]]
    np.testing.assert_array_equal(np.where(known[0], moves[0], no), expected)
    assert (moves[~known] == 0).all()
    sizes = [(3**2 + 5**2) / 2, (2**2 + 1**2 + 2**2) / 3]
    np.testing.assert_allclose(fitted.move_scale_**2, sizes)


def test_a_random_walk_cannot_be_forecast(gappy):
    """Neither with gaps nor without is any move of it seen coming: linear filling let
    a model remove a fifth of the error in training, and doubled it in forecasts."""
    fitted = Forecaster(1, "gru", steps=150, random_state=0, options=dict(hidden=8))
    fitted.fit(gappy[:45])
    assert fitted.result_.best_metric > 0.95
    assert abs(fitted.score(gappy[45:])) < 0.1


def test_scores_of_what_was_observed(gappy):
    """By hand: squared errors of the observed values among the last two."""
    fitted = Forecaster(2, "gru", **QUICK).fit(gappy)
    past, future = gappy[:, :-2], gappy[:, -2:]
    last = np.stack([pd.DataFrame(x).ffill().to_numpy()[-1] for x in past])[:, None]
    found = fitted.predict(past)
    error, still = np.nansum((future - found) ** 2), np.nansum((future - last) ** 2)
    assert fitted.score(gappy) == pytest.approx(1 - error / still, rel=1e-10)


def test_points_off_the_manifold(rng):
    turns = np.tile(np.eye(3), (4, 6, 1, 1))
    fitted = Forecaster(1, "gru", geometry=abx.SO(3), **QUICK).fit(turns)
    turns[2, 3] *= 1.01
    for call in (fitted.fit, fitted.predict, fitted.score):
        with pytest.raises(
            ValueError, match="series 2 at sample 3 is not a point of S"
        ):
            call(turns)
    sizes = np.tile(np.eye(2), (4, 6, 1, 1))
    sizes[1, 0] = -np.eye(2)
    with pytest.raises(ValueError, match="series 1 at sample 0 is not a point of SPD"):
        Forecaster(1, "gru", geometry=abx.SPD(2), **QUICK).fit(sizes)


def test_values_far_from_zero(waves):
    """Forecasts are as good as those near zero, and in the units of the data."""
    with jax.enable_x64(False):
        near = Forecaster(2, "gru", **QUICK).fit(waves)
        far = Forecaster(2, "gru", **QUICK).fit(waves + 1e9)
        np.testing.assert_allclose(
            far.predict(waves + 1e9) - 1e9, near.predict(waves), atol=1e-4
        )
        assert far.score(waves + 1e9) == pytest.approx(near.score(waves), abs=1e-4)


def test_missing_points(rng):
    """A point of which one number is missing is held from the last whole one."""
    angle = np.cumsum(0.1 * rng.normal(size=(6, 9)), axis=1)
    axis = jnp.asarray(angle[..., None] * np.array([0.0, 0.0, 1.0]))
    turn = jax.vmap(jax.vmap(lambda u: abx.SO(3).exp(jnp.eye(3), u)))
    turns = np.array(turn(axis))
    turns[:, 4, 0, 1] = np.nan
    fitted = Forecaster(1, "gru", geometry=abx.SO(3), **QUICK).fit(turns)
    moves, known = fitted._moves(as_paths(turns.reshape(6, 9, 9)))
    assert not known[:, 3].any() and known[:, [2, 4]].all()
    size = np.linalg.norm(moves[:, 4, 0], axis=-1)
    np.testing.assert_allclose(size, np.abs(angle[:, 5] - angle[:, 3]), atol=1e-12)
    assert np.isfinite(fitted.score(turns))


def test_refusals(waves):
    with pytest.raises(ValueError, match="too few to learn forecasts 30"):
        Forecaster(30, "gru", **QUICK).fit(waves)
    with pytest.raises(TypeError, match="causal model"):
        Forecaster(1, Whole(), **QUICK).fit(waves)
    with pytest.raises(ValueError, match="points of SO"):
        Forecaster(1, "gru", geometry=abx.SO(3), **QUICK).fit(waves)
    empty = np.array(waves)
    empty[3] = np.nan
    with pytest.raises(ValueError, match="series 3 has no values"):
        Forecaster(1, "gru", **QUICK).fit(empty)
    rare = np.full((4, 8, 1), np.nan)
    rare[:, 0] = 1.0 + np.arange(4)[:, None]
    with pytest.raises(ValueError, match="no value of `X` follows another"):
        Forecaster(2, "gru", standardise=False, **QUICK).fit(rare)
    rare[:, 1] = 2.0
    filled = as_paths(rare).filled()
    with pytest.raises(ValueError, match="looks ahead"):
        Forecaster(1, "gru", **QUICK).fit(filled)
    fitted = Forecaster(2, "gru", **QUICK).fit(waves)
    with pytest.raises(ValueError, match="none of the last 2 samples"):
        fitted.score(np.where(np.arange(24)[:, None] < 22, waves, np.nan))
    with pytest.raises(ValueError, match="needs more than 2"):
        fitted.score(waves[:, :2])
    with pytest.raises(ValueError, match="fitted with 1"):
        fitted.predict(np.concatenate([waves, waves], axis=2))

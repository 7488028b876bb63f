"""Extrapolators of rotations: exact cases, references, missing samples, symmetry."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx
from arborax.datasets import FreeRotation, observe, rotation_windows
from arborax.training.metrics import rotation_error


M = abx.models
KEY = jr.PRNGKey(0)
TIMES = jnp.arange(21.0)


def _extrapolators():
    return {
        "hold": M.Hold(),
        "velocity": M.ConstantVelocity(),
        "linear": M.Linear(),
        "hermite": M.Hermite(),
        "sg": M.SavitzkyGolay(2),
        "sg weights": M.SavitzkyGolay(2, knots=5, memory=0.5, key=KEY),
        "mlp": M.MLPExtrapolator(key=KEY),
        "bnrde": M.RotationBNRDE([M.SavitzkyGolay(1)], width=6, depth=1, key=KEY),
        "mixture": M.RotationMixture(width=6, depth=1, key=KEY),
        "forecaster": M.RotationForecaster(
            M.Linear(), M.GRU(4, abx.SO(3), hidden=4, width=4, key=KEY)
        ),
        "sg-ncde": M.SavitzkyGolayNCDE(hidden=4, width=4, depth=1, key=KEY),
    }


@eqx.filter_jit
def _call(model, ts, rotations, times, mask=None):
    return model(ts, rotations, times, mask)


@eqx.filter_jit
def _batch(model, seen):
    ts, rotations, mask = seen
    return jax.vmap(lambda a, b, c: model(a, b, TIMES, c))(ts, rotations, mask)


def _windows(count=300, **options):
    data = FreeRotation(times=101, **options).sample(50, seed=2)
    windows = rotation_windows(data.rotations, 21, 10)
    return windows[np.random.default_rng(0).permutation(len(windows))[:count]]


def _seen(windows, **options):
    seen = observe(windows, 12, **options)
    return seen.ts, seen.rotations, seen.mask


def _steady(ts, speed=(0.1, -0.05, 0.08)):
    start = abx.SO(3).random_point(KEY)
    return jax.vmap(lambda t: abx.SO(3).exp(start, t * jnp.asarray(speed)))(ts)


@pytest.mark.parametrize("name", ["hermite", "sg weights"])
def test_a_steady_turn_is_continued_at_irregular_times(name):
    ts = jnp.asarray([0.0, 0.7, 1.0, 2.5, 4.0, 4.2, 6.0, 7.7, 9.0, 10.0, 10.5, 11.0])
    times = jnp.asarray([0.3, 4.1, 11.0, 14.5, 20.0])
    mask = jnp.ones(12, bool).at[jnp.asarray([0, 4, 11])].set(False)
    model = _extrapolators()[name]
    spoilt = _steady(ts).at[4].set(jnp.eye(3))
    out = _call(model, ts, spoilt, times, mask)
    np.testing.assert_allclose(out, _steady(times), atol=1e-8)


def test_hold_and_interpolation():
    ts = jnp.arange(4.0)
    rotations = _steady(ts)
    out = _call(M.Hold(), ts, rotations, jnp.asarray([1.5, 3.0, 9.0]))
    middle = _steady(jnp.asarray([1.5]))[0]
    np.testing.assert_allclose(out[0], middle, atol=1e-12)
    np.testing.assert_allclose(out[1], rotations[3], atol=1e-12)
    np.testing.assert_allclose(out[2], rotations[3], atol=1e-12)


def test_hermite_by_hand():
    """Backward differences as slopes, the last cubic continued."""
    angle = np.array([0.0, 0.1, 0.3])
    rotations = jax.vmap(
        lambda a: abx.SO(3).exp(jnp.eye(3), a * jnp.asarray([0.0, 0.0, 1.0]))
    )(jnp.asarray(angle))
    out = _call(M.Hermite(), jnp.arange(3.0), rotations, jnp.asarray([1.5, 2.5]))
    # On [1, 2]: value .1, slopes .1 at the start and .2 at the end.
    expected = [0.1 + 0.1 * s + (2 * s**2 - s**3) * 0.1 for s in (0.5, 1.5)]
    found = np.arctan2(np.asarray(out)[:, 1, 0], np.asarray(out)[:, 0, 0])
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_turns_beyond_pi_are_followed():
    ts = jnp.arange(12.0)
    speed = (0.9, 0.0, 0.3)  # nearly 6 rad from the middle to the start
    out = _call(M.SavitzkyGolay(2), ts, _steady(ts, speed), TIMES)
    np.testing.assert_allclose(out, _steady(TIMES, speed), atol=1e-8)


@pytest.mark.parametrize(
    "model, whole, ahead",
    [
        (M.ConstantVelocity(), 0.45, 1.05),
        (M.SavitzkyGolay(2), 0.20, 0.44),
    ],
)
def test_references_on_the_published_simulation(model, whole, ahead):
    """Errors measured independently, on other trajectories: within 25 %."""
    windows = _windows(400, kinematics="mixed")
    errors = rotation_error(np.asarray(_batch(model, _seen(windows))), windows)
    assert abs(errors.mean() / whole - 1) < 0.25
    assert abs(errors[:, 12:].mean() / ahead - 1) < 0.25


@pytest.mark.parametrize("name", ["sg weights", "mlp", "bnrde", "forecaster"])
def test_missing_samples_and_rotations_of_space(name):
    """What is missing is not looked at; turning space turns the output."""
    model = _extrapolators()[name]
    ts, rotations, mask = _seen(_windows(3), noise=0.03, drop=0.3, seed=4)
    out = _batch(model, (ts, rotations, mask))
    eye = np.eye(3)
    defect = np.swapaxes(np.asarray(out), -1, -2) @ np.asarray(out) - eye
    assert np.abs(defect).max() < 1e-9
    turn = np.asarray(abx.SO(3).random_point(jr.PRNGKey(5)))
    other = np.where(mask[..., None, None], turn @ rotations, eye)
    again = _batch(model, (ts, other, mask))
    np.testing.assert_allclose(again, turn @ np.asarray(out), atol=1e-7)


def test_two_solver_steps_give_back_a_driver():
    """With a gain of one on one driver the equation reproduces its path."""
    model = M.RotationBNRDE(width=6, depth=1, key=KEY)
    model = jax.tree.map(lambda x: 0 * x if eqx.is_inexact_array(x) else x, model)
    seen = _seen(_windows(3), noise=0.01, drop=0.3)
    paths = np.asarray(_batch(model.drivers, seen))
    for k in range(6):
        alone = eqx.tree_at(lambda m: m.prior, model, 60 * jnp.eye(6)[k])
        out = np.asarray(_batch(alone, seen))
        assert rotation_error(out, paths[:, k]).mean() < 0.05
        start = np.broadcast_to(out[:, :1], out.shape)
        assert rotation_error(out, start).mean() > 5


def test_the_bank_is_the_extrapolators_one_by_one():
    seen = _seen(_windows(3), noise=0.02, drop=0.3)
    bank = M.DriverBank()
    found = _batch(bank, seen)
    for k, (order, memory) in enumerate(zip(bank.orders, bank.memories)):
        if k in (1, 2):
            single = M.SavitzkyGolay(order, memory=memory)
            np.testing.assert_allclose(found[:, k + 1], _batch(single, seen), atol=1e-9)


def test_statistics_do_not_see_the_frames():
    """Neither a rotation of space nor one of the body changes them."""
    ts, rotations, mask = _seen(_windows(2), noise=0.02, drop=0.3)
    a, b = (np.asarray(abx.SO(3).random_point(jr.PRNGKey(k))) for k in (1, 2))
    call = jax.jit(jax.vmap(M.rotation_statistics))
    found = call(ts, rotations, mask)
    np.testing.assert_allclose(call(ts, a @ rotations @ b, mask), found, atol=1e-6)
    assert found.shape == (2, 16)
    # Noise shows in the size of the residual.
    loud = call(*_seen(_windows(2), noise=0.05))
    quiet = call(*_seen(_windows(2), noise=0.001))
    assert (np.asarray(loud)[:, 3] > np.asarray(quiet)[:, 3] + 1).all()


def test_gradients_are_finite():
    model = M.RotationMixture(width=6, depth=1, key=KEY)
    windows = _windows(2)
    seen = _seen(windows, drop=0.3)  # clean: residuals are almost zero

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(model):
        return jnp.mean((_batch(model, seen) - windows) ** 2)

    leaves = jax.tree.leaves(eqx.filter(gradient(model), eqx.is_inexact_array))
    assert leaves and all(bool(jnp.isfinite(leaf).all()) for leaf in leaves)
    assert any(bool(jnp.abs(leaf).max() > 0) for leaf in leaves)


def test_bad_input():
    with pytest.raises(ValueError, match="two observations"):
        M.Hold()(jnp.zeros(1), jnp.eye(3)[None], TIMES)
    with pytest.raises(ValueError, match="order"):
        M.SavitzkyGolay(-1)
    with pytest.raises(ValueError, match="memory"):
        M.SavitzkyGolay(1, memory=0.0)
    with pytest.raises(ValueError, match="drivers"):
        M.RotationBNRDE([], key=KEY)
    with pytest.raises(ValueError, match="channels"):
        M.RotationForecaster(M.Hold(), M.GRU(4, abx.SO(3), key=KEY), driver="matrix")

"""Extrapolators of rotations: exact cases, references, missing samples, symmetry."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx
import arborax_experiments.rotations as M
from arborax.datasets import FreeRotation
from arborax.models import GRU
from arborax.training.metrics import rotation_error
from arborax_experiments.rotations import observe, rotation_windows
from arborax_experiments.rotations.filter_bank import Developed
from arborax_experiments.rotations.forecaster import corrected


KEY = jr.PRNGKey(0)
TIMES = jnp.arange(21.0)


def _extrapolators():
    return {
        "hold": M.Hold(),
        "velocity": M.ConstantVelocity(),
        "linear": M.Linear(),
        "hermite": M.Hermite(),
        "sg": M.SavitzkyGolay(2),
        "sg weights": M.SavitzkyGolay(2, knots=5, key=KEY),
        "mlp": M.MLPExtrapolator(key=KEY),
        "bank": M.FilterBank(),
        "forecaster": M.RotationForecaster(
            M.Linear(), GRU(7, 3, hidden=4, width=4, key=KEY)
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
    start = abx.SO(3).random_point(key=KEY)
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


@pytest.mark.parametrize("name", ["sg weights", "mlp", "bank", "forecaster"])
def test_missing_samples_and_rotations_of_space(name):
    """What is missing is not looked at; turning space turns the output."""
    model = _extrapolators()[name]
    ts, rotations, mask = _seen(_windows(3), noise=0.03, drop=0.3, seed=4)
    out = _batch(model, (ts, rotations, mask))
    eye = np.eye(3)
    defect = np.swapaxes(np.asarray(out), -1, -2) @ np.asarray(out) - eye
    assert np.abs(defect).max() < 1e-9
    turn = np.asarray(abx.SO(3).random_point(key=jr.PRNGKey(5)))
    other = np.where(mask[..., None, None], turn @ rotations, eye)
    again = _batch(model, (ts, other, mask))
    np.testing.assert_allclose(again, turn @ np.asarray(out), atol=1e-7)


@pytest.mark.parametrize("name", ["mlp", "forecaster", "sg-ncde"])
def test_the_unit_of_time_matters_with_seconds_only(name):
    """The same samples at 10 and at 40 a second."""
    make = {
        "mlp": lambda **o: M.MLPExtrapolator(key=KEY, **o),
        "forecaster": lambda **o: M.RotationForecaster(
            M.Linear(), GRU(7, 3, hidden=4, width=4, key=KEY), **o
        ),
        "sg-ncde": lambda **o: M.SavitzkyGolayNCDE(
            hidden=4, width=4, depth=1, key=KEY, **o
        ),
    }[name]
    ts, rotations, mask = (a[0] for a in _seen(_windows(1), noise=0.02, drop=0.3))
    for seconds in (False, True):
        model = make(seconds=seconds)
        slow, fast = (
            _call(model, step * ts, rotations, step * TIMES, mask)
            for step in (0.1, 0.025)
        )
        change = rotation_error(np.asarray(slow), np.asarray(fast)).max()
        assert change > 1e-4 if seconds else change < 1e-5


def test_corrections_of_the_front():
    """States in SO(3) and exponentials of vectors are applied in the body frame."""
    turn, front = (abx.SO(3).random_point(key=jr.PRNGKey(k)) for k in (1, 2))
    vector = abx.SO(3).log(jnp.eye(3), turn)
    by_state = corrected(front[None], turn[None])[0]
    by_vector = corrected(front[None], 10 * vector[None])[0]
    np.testing.assert_allclose(by_state, front @ turn, atol=1e-12)
    np.testing.assert_allclose(by_vector, front @ turn, atol=1e-9)


def test_the_equation_begins_near_its_front():
    """The B-NRDE on SO(3), with and without a memory, moves the front a little."""
    seen = _seen(_windows(3).astype(np.float32), noise=0.02, drop=0.3)
    times = jnp.arange(21, dtype=jnp.float32)
    call = eqx.filter_jit(lambda m: jax.vmap(lambda a, b, c: m(a, b, times, c))(*seen))
    front = np.asarray(call(M.FilterBank(seconds=True)))
    for hidden in (0, 3):
        config = M.Config(hidden=hidden, width=6, depth=1)
        model = M.make_model(config, key=KEY)
        assert isinstance(model, M.RotationForecaster)
        found = rotation_error(np.asarray(call(model)), front)
        assert 0.01 < found.max() < 30


def test_the_bank_is_gaussian_regression():
    """Path and evidence of one law from a dense covariance, by quadrature in time."""
    bank = M.FilterBank(shapes=((0.3, 6.0),), ratios=(2.5,), nodes=400)
    ts, rotations, mask = (a[0] for a in _seen(_windows(1), noise=0.02, drop=0.3))
    developed = Developed(ts, rotations, mask)
    paths, _ = jax.jit(bank.candidates)(developed, ts, TIMES)
    grid = np.linspace(-7, 15, 2201)
    lag = np.abs(grid[:, None] - grid)
    root = np.sqrt(3) * lag / 6
    velocity = (1 + root) * np.exp(-root) * np.cos(0.3 * lag)
    total = np.cumsum(np.cumsum(velocity, 0), 1) * (grid[1] - grid[0]) ** 2
    origin = float(developed.origin)
    zero = np.searchsorted(grid, -1e-9)
    total = total - total[zero] - total[:, zero, None] + total[zero, zero]
    seen = np.searchsorted(grid, ts[mask] - origin - 1e-9)
    ahead = np.searchsorted(grid, np.asarray(TIMES) - origin - 1e-9)
    cov = 2.5**2 * total[np.ix_(seen, seen)] + 10 + np.eye(len(seen))
    cross = 2.5**2 * total[np.ix_(ahead, seen)] + 10
    kept = jnp.asarray(rotations[mask])
    steps = np.asarray(jax.vmap(abx.SO(3).log)(kept[:-1], kept[1:]))
    x = np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])
    x = x - x[np.flatnonzero(ts[mask] == origin)]
    np.testing.assert_allclose(paths[0], cross @ np.linalg.solve(cov, x), atol=2e-3)
    np.testing.assert_allclose(paths[1], x[-1] + np.zeros((21, 3)), atol=1e-9)


def test_the_bank_knows_rigid_bodies():
    """Clean free rotation is forecast by the law of its own moments of inertia."""
    data = FreeRotation(times=21).sample(30, seed=3)
    bank = M.FilterBank(bodies=M.BODIES)
    assert len(bank.laws) == 84

    def best(ts, rotations, mask):
        return bank.candidates(Developed(ts, rotations, mask), ts, TIMES)[1][
            :-1
        ].argmax()

    seen = _seen(data.rotations)
    body = bank.laws[np.asarray(jax.jit(jax.vmap(best))(*seen))][:, 2]
    assert (body > 0).mean() > 0.8
    found = np.asarray(bank.bodies)[body - 1]
    right = np.abs(found / 10 - np.asarray(data.inertia)).max(axis=1) < 1e-9
    assert right[body > 0].mean() > 0.7
    errors = rotation_error(np.asarray(_batch(bank, seen)), data.rotations)[:, 12:]
    assert np.median(errors) < 0.5


def test_a_learned_bank_begins_as_the_untrained_one():
    seen = _seen(_windows(2), noise=0.02, drop=0.3)
    bank = M.FilterBank(learned=True)
    plain = _batch(M.FilterBank(), seen)
    np.testing.assert_allclose(_batch(bank, seen), plain, atol=1e-12)
    # No reach at all is holding, from the first point ahead on.
    still = eqx.tree_at(lambda m: m.reach, bank, jnp.zeros((1, 4)))
    held = _batch(M.Hold(), _seen(_windows(2), noise=0.02))
    whole = _seen(_windows(2), noise=0.02)
    np.testing.assert_allclose(_batch(still, whole)[:, 12:], held[:, 12:], atol=5e-3)


def test_gradients_are_finite():
    model = M.FilterBank(learned=True)
    windows = _windows(2)
    seen = _seen(windows, drop=0.3)  # clean: residuals are almost zero

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(model):
        return jnp.mean((_batch(model, seen) - windows) ** 2)

    leaves = jax.tree.leaves(eqx.filter(gradient(model), eqx.is_inexact_array))
    assert len(leaves) == 3
    for leaf in leaves:
        assert bool(jnp.isfinite(leaf).all()) and bool(jnp.abs(leaf).max() > 0)


def test_bad_input():
    with pytest.raises(ValueError, match="two observations"):
        M.Hold()(jnp.zeros(1), jnp.eye(3)[None], TIMES)
    with pytest.raises(ValueError, match="order"):
        M.SavitzkyGolay(-1)
    with pytest.raises(ValueError, match="two observations"):
        M.FilterBank()(jnp.zeros(1), jnp.eye(3)[None], TIMES)
    with pytest.raises(ValueError, match="channels"):
        M.RotationForecaster(M.Hold(), GRU(7, 3, key=KEY), driver="matrix")

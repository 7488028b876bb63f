"""Models with realised brackets follow the observations, and time has no bracket."""

import functools as ft

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx
from arborax.models import BNRDE, brownian_driver


close = ft.partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10)


@pytest.fixture(scope="module")
def model():
    return BNRDE(
        abx.Ito(3, 2),
        2,
        hidden=3,
        width=4,
        window=4,
        brackets="realised",
        key=jr.key(0),
    )


@pytest.fixture
def path(rng):
    mask = rng.random((3, 11, 2)) < 0.6
    mask[:, 0] = True
    xs = np.cumsum(rng.normal(size=(3, 11, 2)), axis=1)
    return abx.add_time(abx.SampledPath(np.linspace(0.0, 1.0, 11), xs, mask))


def member(paths, k):
    return jax.tree.map(lambda leaf: leaf[k], paths.broadcast())


def test_windows_hold_the_observed_brackets(model, path):
    one = member(path, 1)
    windows = model.prepare(one)
    close(windows.brackets.sum((0, 1)), one.realised_brackets().sum(axis=0))
    assert not np.any(windows.brackets[..., 0, :])
    assert np.all(np.linalg.eigvalsh(windows.brackets.sum((0, 1))[1:, 1:]) > 0)


def test_a_batch_is_as_its_members(model, path):
    out = model.predict(path)
    for k in range(3):
        close(out[k], model(member(path, k)))


def test_realised_and_supplied_brackets_agree(model, path):
    one = member(path, 0)
    supplied = abx.SampledPath(one.ts, one.xs, brackets=one.realised_brackets())
    close(model(one), model(supplied))


def test_a_stream_knows_that_time_has_no_bracket(model, path):
    one = member(path, 2)
    held = abx.SampledPath(one.ts, one.xs, finite_variation=(0,))
    expected = model(held)
    state, y = model.start(held.ts[0], held.xs[0], finite_variation=(0,))
    out, update = [y], eqx.filter_jit(model.update)
    for t, x in zip(held.ts[1:], held.xs[1:]):
        state, y = update(state, t, x)
        out.append(y)
    close(jnp.stack(out), expected)


def test_a_forecast_keeps_observations_and_marks(model):
    """Cut where all is observed, the two parts make up the whole."""
    xs, mask = np.ones((11, 2)).cumsum(axis=0), np.ones((11, 2), bool)
    mask[3, 0] = mask[8, 1] = mask[9, 0] = False
    whole = abx.add_time(abx.SampledPath(np.linspace(0.0, 1.0, 11), xs, mask))
    parts = whole.slice(0, 6), whole.slice(6, 11)
    close(model.forecast(*parts), model(whole)[6:])


def test_the_driver_of_generative_models_marks_time():
    driver = brownian_driver(jnp.linspace(0.0, 1.0, 5), 2, (3,), key=jr.key(0))
    assert driver.finite_variation == (0,)
    assert not np.any(driver.realised_brackets()[..., 0, :])
    alone = brownian_driver(jnp.linspace(0.0, 1.0, 5), 0, brackets=True, key=jr.key(0))
    assert alone.dim == 1
    assert alone.finite_variation == (0,)
    assert not np.any(alone.brackets)

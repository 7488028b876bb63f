"""Scores: a perfect model is at the floor, a Gaussian is not."""

import jax.random as jr
import numpy as np
import pytest

from arborax.datasets import RoughBergomi
from arborax_experiments.rough_bergomi import RoughBergomiTask
from arborax_experiments.rough_bergomi.scores import (
    columns,
    gaussian_reference,
    known_summaries,
    score,
    summaries,
)
from arborax_experiments.rough_bergomi.smiles import (
    black_scholes,
    implied_volatility,
    smile,
    smile_errors,
    STRIKES,
)


CONFIG = RoughBergomiTask().configure("arborax", "quick")


@pytest.fixture(scope="module")
def rough():
    return RoughBergomi().sample(4096, key=jr.PRNGKey(0))


@pytest.fixture(scope="module")
def fresh():
    return RoughBergomi().sample(2048, key=jr.PRNGKey(7))


def test_true_law_scores_its_floor(rough, fresh):
    data = rough.values[:1024], rough[1024:2048], rough[2048:]
    found = score(*data, CONFIG, fresh=fresh)
    assert found["columns"][:4] == ["t=128", "t=256", "t=384", "t=512"]
    names = ("ks", "floor", "gaussian", "floor_here")
    ks, floor, gaussian, here = (np.array(found[name]) for name in names)
    # KS of 1,024 against 1,024 paths: mean 3.85e-2, 99.9 % below 8.7e-2.
    assert (ks < 0.087).all()
    np.testing.assert_allclose(floor, 0.0385, atol=0.012)
    # Two samples of 1,024 against the same 1,024.
    assert (here > 0.012).all() and (here < 0.087).all()
    assert found["fresh_sets"] == 2 and (np.array(found["fresh_ks"]) < 0.087).all()
    assert (gaussian[:6] > 1.8 * floor[:6]).all()
    assert found["p_value"] > 0.01
    assert found["batch_size"] == 512 and len(found["batch_ks"]) == 4


def test_another_law_is_found_out(rough, fresh):
    other = RoughBergomi(steps=512, eta=0.0).sample(1024, key=jr.PRNGKey(1)).values
    found = score(other, rough[:1024], rough[1024:], CONFIG, fresh=fresh)
    for name in ("ks", "fresh_ks"):
        assert (np.array(found[name])[:6] > 2 * np.array(found["floor"])[:6]).all()
    assert found["p_value"] < 0.01
    assert found["smile"]["horizons"][1]["error"] > 2


def test_gaussian_reference_matches_moments(rough):
    reference = gaussian_reference(rough.values, 2048)
    want, found = rough.values[..., 0], reference[..., 0]
    np.testing.assert_allclose(found.std(0)[1:], want.std(0)[1:], rtol=1e-5)
    np.testing.assert_allclose(found.mean(0), want.mean(0), atol=0.02)


def test_implied_volatility_inverts_black_scholes():
    for time, volatility in [(0.25, 0.15), (1.0, 0.4)]:
        prices = black_scholes(STRIKES, time, volatility)
        np.testing.assert_allclose(
            implied_volatility(prices, STRIKES, time), volatility, rtol=1e-6
        )
    assert np.isnan(implied_volatility(np.array([0.1]), np.array([0.8]), 1.0)).all()


def test_bracket_column(rough):
    """Given brackets are summed; without, squared steps are, which is nearly that. A
    path that is linear within windows has a sixteenth."""
    column = columns(CONFIG).index("bracket")
    given = known_summaries(rough, CONFIG)[:, column]
    np.testing.assert_allclose(given, rough.brackets.sum(axis=(1, 2, 3)), rtol=1e-5)
    realised = summaries(rough.values, CONFIG)[:, column]
    # Relative error of a sum of 512 squares about sqrt(2 / 512), more where v varies.
    assert np.median(np.abs(realised / given - 1)) < 0.08
    coarse = rough.values[:, ::16]
    fine = np.linspace(0, 32, 513)
    straight = np.stack([np.interp(fine, np.arange(33), x[:, 0]) for x in coarse])
    found = summaries(straight[..., None], CONFIG)
    want = found[:, columns(CONFIG).index("realised variance")] / 16
    np.testing.assert_allclose(found[:, column], want, rtol=1e-5)


def test_smile_of_black_scholes_is_flat():
    data = RoughBergomi(steps=4, eta=0.0).sample(100_000, key=jr.PRNGKey(0))
    found, error = smile(data.values[:, -1, 0], 1.0)
    assert (error > 1e-4).all() and (error < 0.003).all()
    assert (np.abs(found - 0.2) < 4 * error).all()


def test_smile_counts_strikes_that_nobody_reaches():
    flat = np.zeros((64, 513, 1)) + 0.05 * np.linspace(-1, 1, 64)[:, None, None]
    rough = RoughBergomi().sample(64, key=jr.PRNGKey(1)).values
    first = smile_errors(flat, rough, rough, CONFIG)["horizons"][0]
    # Prices between exp(-0.05) > 0.95 and exp(0.05) > 1.05: two strikes are priced.
    assert first["missing"] == 7 and first["strike"] in (1.0, 1.05)
    assert first["monte_carlo"] > 0

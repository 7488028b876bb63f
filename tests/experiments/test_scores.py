"""Scores: a perfect model is at the floor, a Gaussian is not."""

import jax.random as jr
import numpy as np
import pytest

from arborax.datasets import BlackScholes, RoughBergomi
from arborax.experiments.rough_bergomi import load_config, score
from arborax.experiments.rough_bergomi._scores import gaussian_reference
from arborax.experiments.rough_bergomi._smiles import (
    black_scholes,
    implied_volatility,
    smile,
    STRIKES,
)


@pytest.fixture(scope="module")
def rough():
    return RoughBergomi().sample(jr.PRNGKey(0), 4096)


def test_true_law_scores_its_floor(rough):
    config = load_config(preset="quick")
    values = rough.values
    found = score(values[:1024], values[1024:2048], values[2048:], config)
    assert found["columns"][:4] == ["t=128", "t=256", "t=384", "t=512"]
    ks, floor, gaussian = (
        np.array(found[name]) for name in ("ks", "floor", "gaussian")
    )
    # KS of 1,024 against 1,024 paths: mean 3.85e-2, 99.9 % below 8.7e-2.
    assert (ks < 0.087).all()
    np.testing.assert_allclose(floor, 0.0385, atol=0.012)
    assert (gaussian[[0, 1, 2, 3, 4]] > 1.8 * floor[:5]).all()
    assert found["p_value"] > 0.01
    assert found["batch_size"] == 512 and len(found["batch_ks"]) == 4


def test_another_law_is_found_out(rough):
    config = load_config(preset="quick")
    values = rough.values
    other = BlackScholes(steps=512).sample(jr.PRNGKey(1), 1024).values
    found = score(other, values[:1024], values[1024:], config)
    assert (np.array(found["ks"])[:5] > 2 * np.array(found["floor"])[:5]).all()
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


def test_smile_of_black_scholes_is_flat():
    data = BlackScholes(steps=4, volatility=0.2).sample(jr.PRNGKey(0), 100_000)
    np.testing.assert_allclose(smile(data.values[:, -1, 0], 1.0), 0.2, atol=0.004)

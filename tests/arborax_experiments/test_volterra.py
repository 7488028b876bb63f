"""Rough drivers, local features and scores at full size of `rough-bergomi`."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx
from arborax.datasets import RoughBergomi
from arborax.models import brownian_driver
from arborax_experiments import find_task, run, table
from arborax_experiments.rough_bergomi import make_generator
from arborax_experiments.rough_bergomi.features import LocalFeatures
from arborax_experiments.rough_bergomi.generator import with_bank
from arborax_experiments.rough_bergomi.scores import (
    large_p_value,
    local_logs,
    structure,
)


TASK = find_task("rough-bergomi")
CONFIG = TASK.configure("volterra", "smoke")


@pytest.fixture(scope="module")
def rough():
    return RoughBergomi(steps=64).sample(3072, key=jr.PRNGKey(0)).values


@pytest.fixture(scope="module")
def smooth():
    return RoughBergomi(steps=64, hurst=0.45).sample(1024, key=jr.PRNGKey(1)).values


def test_bank_follows_its_equation():
    ts, rates = jnp.linspace(0, 1, 257, dtype=jnp.float32), (1.0, 16.0, 4096.0)
    driver = brownian_driver(ts, 2, (4096,), key=jr.PRNGKey(0))
    bank = with_bank(driver, rates, key=jr.PRNGKey(1))
    assert bank.xs.shape == (4096, 257, 6)
    np.testing.assert_array_equal(bank.xs[..., :3], driver.xs)
    xs = np.asarray(bank.xs, np.float64)
    assert not xs[:, :2, 3:].any()  # one sample late
    # Covariance of the steps of $W$ and the channels, and variance 1 - exp(-2 r t).
    dt, r = 1 / 256, np.array(rates)
    moves = xs[:, 2:, 3:] - np.exp(-r * dt) * xs[:, 1:-1, 3:]
    moves = np.concatenate([np.diff(xs[:, :-1, 1:2], axis=1), moves], axis=-1)
    found = np.einsum("bsi,bsj->ij", moves, moves) / moves[..., 0].size
    both = np.add.outer(r, r)
    expected = 2 * np.sqrt(np.outer(r, r)) * -np.expm1(-both * dt) / both
    cross = np.sqrt(2 / r) * -np.expm1(-r * dt)
    expected = np.block([[np.array([[dt]]), cross[None]], [cross[:, None], expected]])
    np.testing.assert_allclose(found, expected, rtol=0.02)
    for k, rate in enumerate(rates):
        found = xs[:, -1, 3 + k].var()
        np.testing.assert_allclose(found, 1 - np.exp(-2 * rate), rtol=0.1)


def test_generator_with_bank_has_gradients_and_a_file(rough, tmp_path):
    model = make_generator(CONFIG, rough, key=jr.PRNGKey(0))
    features = LocalFeatures(rough, block=16, count=48, features=8, cylinders=48)
    ts = jnp.linspace(0, 1, 65, dtype=jnp.float32)

    @eqx.filter_jit
    @eqx.filter_grad
    def slope(model):
        return features.distance(model.sample(ts, 8, key=jr.PRNGKey(1)))

    leaves = jax.tree.leaves(slope(model))
    assert all(np.isfinite(leaf).all() for leaf in leaves)
    assert any(np.any(leaf != 0) for leaf in leaves)
    abx.save(tmp_path / "m.abx", model)
    again = abx.load(tmp_path / "m.abx")
    one, two = (m.sample(ts, 2, key=jr.PRNGKey(2)) for m in (model, again))
    np.testing.assert_array_equal(one, two)


def test_local_features_tell_roughness(rough, smooth):
    features = LocalFeatures(rough[:2048], block=4, count=192, features=8, cylinders=48)
    same, other = (
        float(features.distance(jnp.asarray(x))) for x in (rough[2048:], smooth)
    )
    assert abs(same) < 0.01 and other > 3 * abs(same) and other > 0.01


def test_structure_of_white_noise():
    # Independent normal steps: twice the variance of log chi-squared, at every lag.
    steps = np.random.default_rng(0).standard_normal((400, 64 * 16)) / 32
    paths = np.pad(np.cumsum(steps, axis=1), [(0, 0), (1, 0)])[..., None]
    config = dataclasses.replace(CONFIG, block=16)
    found = structure(local_logs(paths, config))
    np.testing.assert_allclose(found, 2 * 0.1332, rtol=0.05)  # trigamma(8)


def test_permutation_test_of_all_paths(rough, smooth):
    config = dataclasses.replace(CONFIG, block=4)
    same = large_p_value(rough[:1024], rough[1024:2048], config, 0, 200)
    other = large_p_value(smooth, rough[:1024], config, 0, 200)
    assert same > 0.01 and other < 0.01


def test_sp500(tmp_path):
    pytest.importorskip("arch")
    options = dict(preset="smoke", setting="volterra", folder=tmp_path, progress=False)
    changes = {"data": "sp500", "price_paths": 512}
    results = [
        run(TASK, model=name, **options, changes=changes)
        for name in ("garch", "bootstrap")
    ]
    # What the bootstrap holds are data.
    assert [result["parameters"] for result in results] == [0, 0]
    # Both are made from the past, so they are about as far from the held-out years.
    for result in results:
        large = result["scores"]["large"]
        gaps = np.array(large["ks"]) - np.array(large["past"])
        assert (np.abs(gaps) < 0.25).all()
    text = table(TASK, results)
    assert "GARCH(1,1)" in text and "reference: training windows" in text
    with pytest.raises(ValueError, match="reference for"):
        TASK.configure("volterra", "smoke", model="garch")

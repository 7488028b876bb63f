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
    ts, rates = jnp.linspace(0, 1, 257, dtype=jnp.float32), (1.0, 16.0)
    driver = brownian_driver(ts, 2, (4096,), key=jr.PRNGKey(0), brackets=True)
    bank = with_bank(driver, rates)
    assert bank.xs.shape == (4096, 257, 5)
    np.testing.assert_array_equal(bank.xs[..., :3], driver.xs)
    # Variance 1 - exp(-2 r t), up to the step and four standard errors.
    for k, rate in enumerate(rates):
        expected = 1 - np.exp(-2 * rate)
        found = float(jnp.var(bank.xs[:, -1, 3 + k]))
        np.testing.assert_allclose(found, expected, rtol=0.09 + 2 * rate / 256)
    # Brackets: the mean of products of steps.
    steps = jnp.diff(bank.xs, axis=1)
    realised = jnp.mean(steps[..., :, None] * steps[..., None, :], axis=0)
    total = np.asarray(jnp.sum(bank.brackets, axis=-3))
    np.testing.assert_allclose(
        np.asarray(realised.sum(axis=0)), total, rtol=0.1, atol=0.05
    )
    assert (np.linalg.eigvalsh(total) > -1e-4).all()


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
    # Both are made from the past, so they are about as far from the held-out years.
    for result in results:
        large = result["scores"]["large"]
        gaps = np.array(large["ks"]) - np.array(large["past"])
        assert (np.abs(gaps) < 0.25).all()
    text = table(TASK, results)
    assert "GARCH(1,1)" in text and "reference: training windows" in text
    with pytest.raises(ValueError, match="reference for"):
        TASK.configure("volterra", "smoke", model="garch")

"""The experiment `brackets`: its law, the bracket of its model, one run."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from arborax.models import brownian_driver
from arborax_experiments import find_task, run, table
from arborax_experiments.brackets import difference, errors, OBJECTIVES
from arborax_experiments.brackets.model import Generator, NOISE, simulate


TASK = find_task("brackets")


def test_the_law_is_stationary_and_knows_its_bracket():
    kappa, fine = 8.0, 64
    paths = simulate(20000, fine + 1, kappa, 0.7, 3).astype(np.float64)
    x, bracket = paths[..., 0], paths[..., 1]
    # Variance one at all times, correlation exp(-kappa t); four standard errors.
    for k in (0, fine // 2, fine):
        assert abs(x[:, k].var() - 1) < 4 * np.sqrt(2 * np.exp(0.7**2) * 3 / 20000)
    lag = fine // 8
    product = np.mean(x[:, 0] * x[:, lag])
    np.testing.assert_allclose(product, np.exp(-kappa * lag / fine), atol=0.03)
    # Log-normal variance of mean one, so that brackets have mean 2 kappa.
    np.testing.assert_allclose(bracket[:, -1].mean(), 2 * kappa, rtol=0.03)
    spread = np.log(bracket[:, -1]).std()
    np.testing.assert_allclose(spread, 0.7, rtol=0.03)


def test_the_closed_form_is_the_limit_of_squared_steps():
    config = TASK.configure("arborax", "smoke")
    model = Generator(config, 2.0, key=jr.PRNGKey(0))
    ts = jnp.linspace(0, 1, 2049, dtype=jnp.float32)
    both = np.asarray(model.sample(ts, 8, key=jr.PRNGKey(1)), np.float64)
    realised = np.sum(np.diff(both[..., 0], axis=1) ** 2, axis=1)
    # A sum of 2,048 squares: relative standard error 3 per cent.
    np.testing.assert_allclose(realised, both[:, -1, 1], rtol=0.15)


def test_the_model_is_stable_at_every_rate_it_may_begin_with():
    config = TASK.configure("arborax", "quick", kappa_delta=10.0)
    slower = TASK.configure("arborax", "quick", kappa_delta=3.0)
    assert (slower.substeps, config.substeps) == (1, 2)
    ts = jnp.linspace(0, 1, config.times, dtype=jnp.float32)
    sample = eqx.filter_jit(lambda m: m.sample(ts, 256, key=jr.PRNGKey(1))[..., 0])
    spread = [
        sample(Generator(config, rate, key=jr.PRNGKey(0)))[:, -1].std()
        for rate in (config.kappa, config.start * config.kappa)
    ]
    assert 0.7 < spread[1] / spread[0] < 1.1


def test_the_bracket_has_a_gradient():
    config = TASK.configure("arborax", "smoke")
    ts = jnp.linspace(0, 1, 9, dtype=jnp.float32)

    def total(log_rate):
        model = Generator(config, 2.0, key=jr.PRNGKey(0))
        field = model.model.vector_field
        field = type(field)(field.mlp, log_rate)
        states = jr.normal(jr.PRNGKey(2), (5, config.hidden), jnp.float32)
        values = jax.vmap(field)(states)
        return jnp.sum(jnp.square(values[:, 1:, :-1] @ model.readout))

    # Noise fields grow as the root of the rate.
    start = jnp.asarray(0.3, jnp.float32)
    np.testing.assert_allclose(jax.grad(total)(start), total(start), rtol=1e-5)
    assert brownian_driver(ts, NOISE, (2,), key=jr.PRNGKey(0)).dim == 1 + NOISE


def test_objectives_are_matched():
    """Equal depth, stride and number of features; nothing hidden is seen."""
    assert set(OBJECTIVES) == set(TASK.models)
    config = TASK.configure("arborax", "smoke")
    seen = TASK.data(config, None)[0]
    hidden = seen.copy()
    hidden[:, np.arange(config.times) % config.fine > 0] = 7.0
    for name in OBJECTIVES:
        row = TASK.configure("arborax", "smoke", model=name)
        (stage,) = TASK.stages(row, (seen,))
        features, target = stage.data(jr.PRNGKey(0), 0)
        assert features.levels == 3
        assert target.mean.shape == (config.features,)
        (other,) = TASK.stages(row, (hidden,))
        again = other.data(jr.PRNGKey(0), 0)[1]
        np.testing.assert_array_equal(again.mean, target.mean)


def test_differences_are_paired():
    def result(model, seed, error):
        return {"model": model, "seed": seed, "scores": {"volatility": error}}

    results = [result("geometric", s, 0.1 + 0.1 * s) for s in range(3)]
    results += [result("branched", s, 0.1 * s) for s in range(3)]
    mean, half = difference([results], "geometric", "branched")
    np.testing.assert_allclose([mean, half], [10, 0], atol=1e-9)
    assert difference([results[:4]], "geometric", "branched") is None
    # Over two rates, of which the other has no difference: half of it.
    same = [
        result(model, s, 0.3) for model in ("geometric", "branched") for s in (1, 2)
    ]
    mean, _ = difference([results, same], "geometric", "branched")
    np.testing.assert_allclose(mean, 5)


@pytest.mark.parametrize("model", ["branched-supplied", "geometric-bracket"])
def test_run(model, tmp_path):
    result = run(TASK, model=model, preset="smoke", folder=tmp_path, progress=False)
    assert np.isfinite(list(result["scores"].values())).all()
    assert result["commit"] is None or len(result["commit"]) >= 10
    text = table(TASK, [result])
    assert "KS of the bracket, by kappa Delta" in text and TASK.models[model] in text
    assert errors([result], model) == {1: 100 * result["scores"]["volatility"]}

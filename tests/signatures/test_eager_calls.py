"""Calls outside `jit`: compiled once, and derivatives at times on samples."""

import logging

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx


CASES = [
    (abx.signature, abx.Shuffle(2, 3), None),
    (abx.log_signature, abx.Ito(2, 3), "realised"),
    (abx.log_signature, abx.GrossmanLarson(2, 3), "left-point"),
]


@pytest.mark.parametrize("function, alg, brackets", CASES)
def test_a_second_eager_call_compiles_nothing(function, alg, brackets, caplog):
    paths = jr.normal(jr.PRNGKey(0), (2, 3, 7, 2))
    first = function(paths[0], alg, brackets)
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        second = function(paths[1], alg, brackets)
        compiled = [r.message for r in caplog.records if "ompil" in r.message]
    assert not compiled
    one = jax.jit(lambda x: function(x, alg, brackets))
    np.testing.assert_allclose(one(paths[0]), first, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(one(paths[1]), second, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "alg, brackets", [(abx.Shuffle(2, 2), None), (abx.Ito(2, 2), "realised")]
)
def test_derivatives_at_times_on_samples(alg, brackets):
    """One-sided, from within the interval: equal to the limit from there."""
    ts = jnp.array([0.0, 0.4, 1.0, 1.5, 2.0])
    xs = jr.normal(jr.PRNGKey(1), (5, 2))
    control = abx.rough_path(ts, xs, alg, jnp.array([0.0, 2.0]), brackets)
    value = lambda s, t: control.log_signature(s, t, 0)  # noqa: E731
    near = 1e-9
    for s, t in [(0.0, 2.0), (0.4, 1.5), (0.4, 1.0), (0.0, 0.7)]:
        s, t = jnp.asarray(s), jnp.asarray(t)
        got = jax.jacobian(value, (0, 1))(s, t)
        inside = jax.jacobian(value, (0, 1))(s + near, t - near)
        np.testing.assert_allclose(got[0], inside[0], atol=1e-7)
        np.testing.assert_allclose(got[1], inside[1], atol=1e-7)
    start = jnp.asarray(0.4)
    velocity = jax.jacobian(value, 1)(start, start)[:2]
    np.testing.assert_allclose(velocity, (xs[2] - xs[1]) / 0.6, rtol=1e-9)

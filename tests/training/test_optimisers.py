"""Muon reads Equinox's weights as (out, in); clipping comes first."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from arborax.training import fit, muon
from arborax.training._optimisers import make_optimiser

from .helpers import mlp, objective, regression


def updates_of(rule, params, grads):
    with jax.numpy_dtype_promotion("standard"):
        return jax.jit(
            lambda p, g: rule.update(g, rule.init(p), p)[0],
        )(params, grads)


@pytest.mark.parametrize("shape", [(8, 2), (2, 8)])
def test_scale_by_fans_of_an_equinox_matrix(shape):
    out, inn = shape
    params = {"w": jnp.zeros(shape), "b": jnp.zeros(out), "c": jnp.zeros((2, *shape))}
    grads = jax.tree.map(lambda p: jr.normal(jr.PRNGKey(0), p.shape), params)
    right = updates_of(muon(1.0, 0.0), params, grads)
    published = updates_of(muon(1.0, 0.0, layout="optax"), params, grads)
    plain = updates_of(optax.contrib.muon(1.0), params, grads)
    # The published call is Optax's default, bit for bit in meaning.
    for name in params:
        np.testing.assert_allclose(published[name], plain[name], rtol=1e-9)
    # Same orthogonal factor, another scale.
    factor = max(1, out / inn) ** 0.5 / max(1, inn / out) ** 0.5
    np.testing.assert_allclose(right["w"], factor * published["w"], rtol=1e-6)
    # Newton-Schulz leaves singular values near one, times the scale.
    values = jnp.linalg.svd(right["w"], compute_uv=False)
    values = values / max(1, out / inn) ** 0.5
    assert (values > 0.5).all() and (values < 1.3).all()
    # Vectors and stacks go to Adam with Nesterov momentum: a first step of this size.
    first = 1 + 0.9 * 0.1 / (1 - 0.9**2)
    np.testing.assert_allclose(jnp.abs(right["b"]), first, rtol=1e-5)
    np.testing.assert_allclose(jnp.abs(right["c"]), first, rtol=1e-5)


def test_decay_only_on_matrices():
    params = {"w": jnp.ones((3, 3)), "b": jnp.ones(3)}
    grads = jax.tree.map(jnp.ones_like, params)
    without = updates_of(muon(0.1, 0.0), params, grads)
    decayed = updates_of(muon(0.1, 0.5), params, grads)
    np.testing.assert_allclose(decayed["w"] - without["w"], -0.05, rtol=1e-9)
    np.testing.assert_allclose(decayed["b"], without["b"])


def test_global_clip_comes_before_the_rule():
    rule = make_optimiser(optax.sgd(1.0), None, None, 1.0)
    params = {"a": jnp.zeros(1), "b": jnp.zeros(1)}
    got = updates_of(rule, params, {"a": jnp.full(1, 30.0), "b": jnp.full(1, 40.0)})
    np.testing.assert_allclose(got["a"], -0.6, rtol=1e-9)
    np.testing.assert_allclose(got["b"], -0.8, rtol=1e-9)
    with pytest.raises(TypeError, match="got a int"):
        make_optimiser(3, None, None, None)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_muon_trains(dtype):
    x, y = regression(64, dtype=dtype)
    result = fit(
        mlp(dtype=dtype),
        (x, y),
        objective,
        steps=60,
        optimiser="muon",
        learning_rate=2e-2,
        key=jr.PRNGKey(0),
        progress=False,
    )
    assert result.history.loss[-1] < 0.5 * result.history.loss[0]
    kept = jax.tree.leaves(eqx.filter(result.model, eqx.is_array))
    assert all(leaf.dtype == dtype for leaf in kept)

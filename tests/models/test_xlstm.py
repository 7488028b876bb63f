"""The matrix memory does not depend on the length of its chunks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx
from arborax.models._mlstm import chunkwise

from .cases import driver, KEY


M = abx.models


def _inputs(times, size, spread):
    keys = jr.split(jr.PRNGKey(0), 5)
    q, k, v = (jr.normal(key, (times, size)) for key in keys[:3])
    i, f = (spread * jr.normal(key, (times,)) for key in keys[3:])
    return q, k, v, i, f


@pytest.mark.parametrize("spread", [1.0, 30.0])
def test_chunks_agree_with_gradients(spread):
    """All samples at once, one by one, and in chunks of which the last is short."""
    inputs = _inputs(11, 3, spread)

    def both(chunk):
        def loss(inputs):
            out = chunkwise(*inputs, chunk)
            return jnp.sum(jnp.sin(out)), out

        return jax.jit(jax.value_and_grad(loss, has_aux=True))(inputs)

    (_, out), grads = both(11)
    assert jnp.all(jnp.isfinite(out))
    for chunk in (1, 4):
        (_, other), other_grads = both(chunk)
        np.testing.assert_allclose(other, out, rtol=1e-9, atol=1e-11)
        for a, b in zip(other_grads, grads):
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


def test_memory_by_hand():
    inputs = _inputs(6, 3, 1.0)
    out = jax.jit(chunkwise, static_argnums=5)(*inputs, 6)
    q, k, v, i, f = (np.asarray(x) for x in inputs)
    decay = np.cumsum(-np.log1p(np.exp(-f)))
    for t in range(6):
        log_weights = decay[t] - decay[: t + 1] + i[: t + 1]
        top = log_weights.max()
        weights = np.exp(log_weights - top) * (k[: t + 1] @ q[t]) / np.sqrt(3)
        expected = weights @ v[: t + 1] / (max(abs(weights.sum()), np.exp(-top)) + 1e-6)
        np.testing.assert_allclose(out[t], expected, rtol=1e-9)


def test_models_in_chunks():
    options = dict(size=4, heads=2, layers=2, key=KEY)
    outs = []
    for chunk in (64, 4, 1):
        model = M.XLSTM(2, 1, chunk=chunk, **options)
        outs.append(eqx.filter_jit(model)(driver(model)))
    np.testing.assert_allclose(outs[1], outs[0], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(outs[2], outs[0], rtol=1e-9, atol=1e-11)


def test_gates_start_as_published():
    block = M.XLSTM(2, 1, key=KEY).blocks[0]
    np.testing.assert_allclose(block.forget_bias, np.linspace(3, 6, 4))
    np.testing.assert_allclose(block.input_bias, np.linspace(0, 0.1, 4))
    assert not jnp.any(block.forget_gate)
    with pytest.raises(ValueError, match="multiple"):
        M.XLSTM(2, 1, heads=5, key=KEY)

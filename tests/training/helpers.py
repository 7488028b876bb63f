"""Small problems shared by the training tests."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np


def regression(samples=64, dim=3, dtype=np.float32, seed=0):
    """Noisy linear data `(x, y)` as NumPy arrays."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((samples, dim)).astype(dtype)
    weights = np.arange(1, dim + 1).astype(dtype)
    y = x @ weights + 0.1 * rng.standard_normal(samples).astype(dtype)
    return x, y.astype(dtype)


def mlp(key=0, dtype=jnp.float32, dim=3):
    return eqx.nn.MLP(dim, "scalar", 8, 1, dtype=dtype, key=jr.PRNGKey(key))


def objective(model, batch, key):
    x, y = batch
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


def noisy_objective(model, batch, key):
    x, y = batch
    x = x + 0.1 * jr.normal(key, x.shape, x.dtype)
    return jnp.mean((jax.vmap(model)(x) - y) ** 2), {"mean": jnp.mean(y)}


def curve(result):
    """Steps and values of the validations of a run."""
    records = result.history.validation
    return tuple(np.array([r[name] for r in records]) for name in ("step", "metric"))


def leaves_equal(a, b):
    a = jax.tree.leaves(eqx.filter(a, eqx.is_array))
    b = jax.tree.leaves(eqx.filter(b, eqx.is_array))
    return len(a) == len(b) and all(
        x.dtype == y.dtype and np.array_equal(x, y) for x, y in zip(a, b, strict=True)
    )


def leaves_close(a, b, rtol):
    a = jax.tree.leaves(eqx.filter(a, eqx.is_array))
    b = jax.tree.leaves(eqx.filter(b, eqx.is_array))
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol)

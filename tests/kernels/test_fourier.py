"""Random Fourier signature features."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx
from arborax.kernels import cosine


def _paths(rng, n, times, d=2, size=0.3):
    return jnp.asarray(np.cumsum(size * rng.standard_normal((n, times, d)), axis=1))


@pytest.mark.parametrize("kind", ["geometric", "ito", "branched"])
def test_estimates_the_rbf_kernel(kind, rng):
    """Mean over many frequencies = truncated kernel with the RBF static kernel."""
    x, y = _paths(rng, 3, 7), _paths(rng, 2, 6)
    maps = abx.RandomFourierSignature(
        2,
        key=jr.key(0),
        kind=kind,
        levels=3,
        features=40000,
        scales=(1.0,),
        add_time=False,
    )
    got = 1 + maps.features(x) @ maps.features(y).T
    expected = abx.signature_gram(x, y, kind, 3, static_kernel="rbf")
    np.testing.assert_allclose(got, expected, atol=0.05)


def test_fourth_level_and_time(rng):
    """Cumulative sums appear at weight four; time enters as a channel."""
    x, y = _paths(rng, 2, 40, 1, 0.1), _paths(rng, 2, 40, 1, 0.1)
    maps = abx.RandomFourierSignature(
        1, key=jr.key(1), levels=4, features=20000, scales=(1.0,), time_scale=1.0
    )
    got = 1 + maps.features(x) @ maps.features(y).T
    expected = abx.signature_gram(x, y, "ito", 4, static_kernel="rbf", add_time=True)
    np.testing.assert_allclose(got, expected, atol=0.06)


def test_fit_standardises(rng):
    data = 5 + 3 * _paths(rng, 200, 9)
    maps = abx.RandomFourierSignature(2, key=jr.key(0), features=32)
    fitted = maps.fit(data)
    values = fitted.features(data)
    spread = np.std(values, axis=0) * np.sqrt(values.shape[1])
    np.testing.assert_allclose(spread, 1, rtol=1e-6)
    # Invariant under affine changes of the channels, once fitted.
    moved = maps.fit(2 * data - 1)
    np.testing.assert_allclose(
        moved.features(2 * data - 1), values, rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("kind", ["ito", "branched"])
def test_brackets(kind, rng):
    """Realised brackets in feature space are left-point sums; others are seen."""
    fine = _paths(rng, 4, 801, 1, 0.3 / np.sqrt(800))
    maps = abx.RandomFourierSignature(
        1, key=jr.key(2), kind=kind, levels=2, features=16, scales=(1.0,)
    )
    plain = maps.features(fine)
    realised = maps.features(fine, brackets="realised")
    doubled = maps.features(fine, brackets=2 * jnp.diff(fine, axis=1)[..., None] ** 2)
    near, far = jnp.abs(realised - plain), jnp.abs(doubled - plain)
    assert float(jnp.mean(near)) < 0.05 * float(jnp.mean(far))


def test_gradient_blocks_and_dtype(rng, monkeypatch):
    x = _paths(rng, 5, 6)
    root = 0.2 * rng.standard_normal((5, 5, 2, 2))
    a = jnp.asarray(root @ np.swapaxes(root, -1, -2))
    maps = abx.RandomFourierSignature(2, key=jr.key(0), kind="branched", features=8)

    def loss(z):
        return jnp.sum(jnp.sin(maps.features(z, brackets=a)))

    direction = jnp.asarray(rng.standard_normal(x.shape))
    h = 1e-6
    slope = (loss(x + h * direction) - loss(x - h * direction)) / (2 * h)
    gradient = jax.jit(jax.grad(loss))(x)
    np.testing.assert_allclose(jnp.sum(gradient * direction), slope, rtol=1e-5)
    monkeypatch.setattr("arborax.kernels._fourier._BLOCK", 2 * 5 * 8)
    short, inside = x[:, :5], a[:, :4]
    rows = [maps.features(short[i], brackets=inside[i]) for i in range(5)]
    blocked = maps.features(short, brackets=inside)
    np.testing.assert_allclose(blocked, jnp.stack(rows), rtol=1e-9, atol=1e-12)
    single = maps.features(x.astype(jnp.float32))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, maps.features(x), atol=1e-4)


def test_cosines_of_turns(rng):
    turns = jnp.asarray(rng.uniform(-5, 5, 1000))
    np.testing.assert_allclose(cosine(turns), np.cos(2 * np.pi * turns), atol=1e-13)

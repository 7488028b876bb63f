"""Metrics against SciPy and closed forms, in NumPy and JAX."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.spatial.transform import Rotation

from arborax.training import metrics


KINDS = [np.asarray, jnp.asarray]


def same_kind(kind, *results):
    wanted = jax.Array if kind is jnp.asarray else (np.ndarray, np.generic)
    return all(isinstance(r, wanted) for r in results)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [(40, 77), (1, 3)])
@pytest.mark.parametrize("ties", [False, True])
def test_ks_and_w1_against_scipy(rng, kind, sizes, ties):
    x = rng.standard_normal((sizes[0], 2, 3))
    y = 0.3 + 1.2 * rng.standard_normal((sizes[1], 2, 3))
    if ties:
        x, y = np.round(x), np.round(y)
    ks, w1 = metrics.ks(kind(x), kind(y)), metrics.wasserstein1(kind(x), kind(y))
    assert same_kind(kind, ks, w1) and ks.shape == w1.shape == (2, 3)
    for i in np.ndindex(2, 3):
        a, b = x[:, *i], y[:, *i]
        np.testing.assert_allclose(ks[i], stats.ks_2samp(a, b).statistic, atol=1e-12)
        expected = stats.wasserstein_distance(a, b)
        np.testing.assert_allclose(w1[i], expected, atol=1e-12)


def test_transformations_and_float32(rng):
    x = jnp.asarray(rng.standard_normal((30, 4)), jnp.float32)
    y = jnp.asarray(rng.standard_normal((20, 4)), jnp.float32)
    for statistic in (metrics.ks, metrics.wasserstein1):
        expected = statistic(np.asarray(x), np.asarray(y))
        assert expected.dtype == np.float32
        mapped = jax.jit(jax.vmap(statistic, in_axes=1, out_axes=-1))(x, y)
        assert mapped.dtype == jnp.float32
        np.testing.assert_allclose(mapped, expected, rtol=1e-4, atol=1e-6)
    gradient = jax.grad(lambda x: jnp.sum(metrics.wasserstein1(x, y)))(x)
    assert np.isfinite(gradient).all() and np.abs(gradient).max() > 0
    assert metrics.ks(x[:, 0], x[:, 0]) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_path_functionals(rng, kind):
    paths = np.cumsum(rng.standard_normal((5, 13)), axis=-1)
    rv = metrics.realised_variance(kind(paths), 4)
    coarse = paths[:, [0, 4, 8, 12]]
    np.testing.assert_allclose(rv, (np.diff(coarse) ** 2).sum(-1))
    top = metrics.running_maximum(kind(paths))
    np.testing.assert_allclose(top, paths.max(-1) - paths[:, 0])
    rho = metrics.squared_return_autocorrelation(kind(paths), 2)
    squares = np.diff(paths[:, ::2]) ** 2
    c = squares - squares.mean(-1, keepdims=True)
    np.testing.assert_allclose(rho, (c[:, 1:] * c[:, :-1]).sum(-1) / (c**2).sum(-1))
    assert same_kind(kind, rv, top, rho)
    straight = kind(np.arange(9.0)[None])
    assert metrics.squared_return_autocorrelation(straight) == 0
    with pytest.raises(ValueError, match="window must be between"):
        metrics.realised_variance(paths, 13)
    with pytest.raises(ValueError, match="lag must be between"):
        metrics.squared_return_autocorrelation(paths, 4, lag=3)


def test_self_floor_is_that_of_the_sample_size():
    # Two samples of one law, 1,024 each: 3.85e-2 +- 1.1e-2 is the known mean.
    samples = np.random.default_rng(0).standard_normal((4096, 2))
    floor = metrics.self_floor(metrics.ks, samples, size=1024, repeats=60)
    assert floor.values.shape == (60, 2) and floor.mean.shape == (2,)
    np.testing.assert_allclose(floor.mean, 3.85e-2, atol=0.5e-2)
    assert (floor.upper > floor.mean).all() and (floor.std > 0).all()
    small = metrics.self_floor(metrics.ks, samples, size=128, repeats=30)
    np.testing.assert_allclose(small.mean, 10.5e-2, atol=1.5e-2)
    on_device = metrics.self_floor(metrics.ks, jnp.asarray(samples), size=128)
    np.testing.assert_allclose(on_device.values, small.values[:20], atol=1e-6)
    with pytest.raises(ValueError, match="half of the 4096"):
        metrics.self_floor(metrics.ks, samples, size=2049)


@pytest.mark.parametrize("kind", KINDS)
def test_rotation_errors(rng, kind):
    a = Rotation.random(20, rng=rng)
    b = Rotation.random(20, rng=rng)
    x, y = kind(a.as_matrix()), kind(b.as_matrix())
    degrees = np.rad2deg((a.inv() * b).magnitude())
    assert degrees.max() < 179
    error = metrics.rotation_error(x, y)
    np.testing.assert_allclose(error, degrees, rtol=1e-6)
    norms = np.linalg.norm(a.as_matrix() - b.as_matrix(), axis=(-2, -1))
    np.testing.assert_allclose(metrics.frobenius(x, y), norms)
    assert same_kind(kind, error) and (metrics.rotation_error(x, x) == 0).all()
    half_turn = kind(np.diag([1.0, -1.0, -1.0]))
    eye = kind(np.eye(3))
    np.testing.assert_allclose(
        metrics.rotation_error(eye, half_turn), 179.49, atol=0.01
    )


def test_rotation_error_has_finite_gradients():
    eye = jnp.eye(3, dtype=jnp.float32)
    for other in (eye, jnp.diag(jnp.asarray([1.0, -1.0, -1.0], jnp.float32))):
        gradient = jax.grad(lambda r, o=other: metrics.rotation_error(r, o))(eye)
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("statistic", [metrics.ks, metrics.wasserstein1])
def test_nan_is_not_a_large_number(kind, statistic, rng):
    x, y = rng.standard_normal((2, 20, 3))
    clean = statistic(kind(x), kind(y))
    x[4, 1] = np.nan
    found = statistic(kind(x), kind(y))
    assert np.isnan(found[1])
    np.testing.assert_array_equal(found[::2], clean[::2])
    for other in (kind(y[:, :2]), kind(y[:0])):
        with pytest.raises(ValueError, match="two samples need equal shapes"):
            inspect.unwrap(statistic)(kind(x), other)

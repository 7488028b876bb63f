"""Laws of the drivers: exact where linear algebra can say, else at level 1e-3."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

import arborax as abx
from arborax.paths._fractional import fractional_noise_spectrum


ALPHA = 1e-3
brownian = eqx.filter_jit(abx.brownian)
fractional = eqx.filter_jit(abx.fractional_brownian)
volterra = eqx.filter_jit(abx.riemann_liouville)


def assert_gaussian(samples, covariance):
    """Whitened samples `(n, k)` are standard normal (Kolmogorov-Smirnov on the pool and
    on each coordinate) and uncorrelated (chi-squared on the squared radius)."""
    white = np.linalg.solve(np.linalg.cholesky(covariance), np.asarray(samples).T)
    k = white.shape[0]
    tests = [white.ravel(), *white]
    for test in tests:
        p = scipy.stats.kstest(test, "norm").pvalue
        assert p > ALPHA / (len(tests) + 1)
    radius = np.sum(white**2, axis=0)
    p = scipy.stats.kstest(radius, scipy.stats.chi2(k).cdf).pvalue
    assert p > ALPHA / (len(tests) + 1)


def fbm_covariance(ts, hurst):
    s, t = np.meshgrid(ts, ts)
    return (s ** (2 * hurst) + t ** (2 * hurst) - abs(t - s) ** (2 * hurst)) / 2


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_brownian_on_an_irregular_grid(rng, dtype):
    ts = np.array([-1.0, -0.9, 0.3, 2.0, 2.01], dtype)
    xs = brownian(ts, 2, shape=(3000,), key=jr.key(1))
    assert xs.shape == (3000, 5, 2) and xs.dtype == dtype
    assert not np.any(xs[:, 0])
    covariance = np.minimum.outer(ts + 1, ts + 1)[1:, 1:].astype(float)
    joint = np.concatenate([xs[:, 1:, 0], xs[:, 1:, 1]], axis=-1)
    assert_gaussian(joint, np.kron(np.eye(2), covariance))


def test_brownian_brackets():
    ts = np.array([0.0, 0.5, 2.0])
    brackets = abx.brownian_brackets(ts, 2, dtype=np.float32)
    assert brackets.dtype == np.float32
    np.testing.assert_allclose(brackets, np.diff(ts)[:, None, None] * np.eye(2)[None])
    xs = abx.brownian(ts, 2, (4,), dtype=np.float32, key=jr.key(0))
    assert abx.SampledPath(ts, xs, brackets=brackets).batch_shape == (4,)


@pytest.mark.parametrize("hurst", (0.05, 0.3, 0.5, 0.75, 0.95))
@pytest.mark.parametrize("n", (1, 2, 37, 4096))
def test_circulant_embedding_is_exact(hurst, n):
    """The corner of the circulant with this spectrum is the noise's covariance."""
    spectrum = fractional_noise_spectrum(n, hurst)
    k = np.arange(n, dtype=float)
    gamma = (
        (k + 1) ** (2 * hurst) - 2 * k ** (2 * hurst) + abs(k - 1) ** (2 * hurst)
    ) / 2
    assert np.all(spectrum >= 0)
    np.testing.assert_allclose(np.fft.irfft(spectrum, 2 * n)[:n], gamma, atol=1e-12)


@pytest.mark.parametrize("hurst", (0.1, 0.7))
def test_fractional_brownian(hurst):
    dtype = np.float32 if hurst < 0.5 else np.float64
    xs = fractional(
        6, hurst, dim=2, horizon=3.0, shape=(2000,), dtype=dtype, key=jr.key(2)
    )
    assert xs.shape == (2000, 7, 2) and xs.dtype == dtype
    assert not np.any(xs[:, 0])
    covariance = fbm_covariance(np.linspace(0, 3, 7)[1:], hurst)
    joint = np.concatenate([xs[:, 1:, 0], xs[:, 1:, 1]], axis=-1)
    assert_gaussian(joint, np.kron(np.eye(2), covariance))


def test_fractional_brownian_long_range():
    """Terminal values and a middle increment of a fine path."""
    xs = fractional(512, 0.25, shape=(4000,), key=jr.key(3))[..., 0]
    covariance = fbm_covariance(np.array([0.25, 0.5, 1.0]), 0.25)
    assert_gaussian(xs[:, [128, 256, 512]], covariance)


@pytest.mark.parametrize("hurst", (0.1, 0.4, 0.8))
def test_volterra_is_exactly_joint_with_its_driver(hurst):
    r"""`E[Y_t | W]` on the grid is the linear map with
    $E[Y_t W_s] = \sqrt{2H}/(H+1/2) (t^{H+1/2} - (t-s)^{H+1/2})$, `s <= t`."""
    n, horizon = 16, 2.0
    step = horizon / n
    zero = jnp.zeros((n, n, 1))
    unit = jnp.eye(n)[..., None]
    run = lambda dw: volterra(  # noqa: E731
        n, hurst, horizon=horizon, shape=(n,), increments=dw, key=jr.key(0)
    )[0][..., 0]
    # Same key: the exact cell's own noise cancels.
    response = np.asarray(run(unit) - run(zero))
    covariance = step * np.cumsum(response, axis=0)
    ts = np.linspace(0, horizon, n + 1)
    s, t = np.meshgrid(ts[1:], ts, indexing="ij")
    power = hurst + 0.5
    exact = t**power - np.maximum(t - s, 0) ** power
    exact = np.sqrt(2 * hurst) / power * exact
    np.testing.assert_allclose(covariance, exact, atol=1e-13)


def hybrid_covariance(n, hurst):
    """Exact joint covariance of `(Y_1..Y_n, W_1..W_n)` in the scheme, unit horizon."""
    a, step = hurst - 0.5, 1 / n
    k = np.arange(n + 1.0)
    kernel = np.sqrt(2 * hurst) * step**a * np.diff(k ** (a + 1)) / (a + 1)
    lower = np.zeros((n, n))
    for i in range(n):
        lower[i, : i + 1] = kernel[: i + 1][::-1]
    own = step ** (2 * hurst) - step * kernel[0] ** 2
    top = np.concatenate([np.sqrt(step) * lower, np.sqrt(own) * np.eye(n)], 1)
    bottom = np.sqrt(step) * np.tril(np.ones((n, n)))
    factor = np.concatenate([top, np.pad(bottom, ((0, 0), (0, n)))])
    return factor @ factor.T


@pytest.mark.parametrize("hurst", (0.1, 0.3))
def test_volterra_law(hurst):
    dtype = np.float32 if hurst == 0.1 else np.float64
    n = 8
    ys, dw = volterra(n, hurst, dim=2, shape=(2000,), dtype=dtype, key=jr.key(4))
    assert ys.shape == (2000, 9, 2) and dw.shape == (2000, 8, 2)
    assert ys.dtype == dw.dtype == dtype
    assert not np.any(ys[:, 0])
    ws = np.cumsum(dw, axis=1)
    joint = np.concatenate([ys[:, 1:, 0], ws[..., 0]], axis=-1)
    assert_gaussian(joint, hybrid_covariance(n, hurst))
    both = np.stack([ys[:, -1, 0], ys[:, -1, 1]], axis=-1)
    assert_gaussian(both, hybrid_covariance(n, hurst)[n - 1, n - 1] * np.eye(2))


@pytest.mark.parametrize("hurst", (0.05, 0.1, 0.25, 0.45, 0.7))
def test_volterra_variance_is_a_power_of_time(hurst):
    """The scheme's own variance is `t^{2H}` within 0.1 % at every time."""
    n = 256
    variance = np.diag(hybrid_covariance(n, hurst))[:n]
    ts = np.arange(1, n + 1) / n
    np.testing.assert_allclose(variance, ts ** (2 * hurst), rtol=1e-3)


def test_volterra_marginal_on_a_fine_grid():
    ys, dw = volterra(512, 0.1, shape=(4000,), key=jr.key(6))
    for i in (1, 128, 512):
        scaled = np.asarray(ys[:, i, 0]) / (i / 512) ** 0.1
        assert scipy.stats.kstest(scaled, "norm").pvalue > ALPHA / 4
    total = np.asarray(jnp.sum(dw, axis=(-1, -2)))
    assert scipy.stats.kstest(total, "norm").pvalue > ALPHA / 4


def test_volterra_at_one_half_is_brownian():
    ys, dw = volterra(50, 0.5, dim=3, shape=(2,), dtype=np.float64, key=jr.key(7))
    np.testing.assert_allclose(ys[:, 1:], np.cumsum(dw, axis=1), atol=1e-13)


def test_keys_jit_vmap_grad():
    ts = np.linspace(0.0, 1.0, 9)
    key = jr.key(8)
    np.testing.assert_array_equal(brownian(ts, 1, key=key), brownian(ts, 1, key=key))
    assert np.any(brownian(ts, 1, key=jr.key(9)) != brownian(ts, 1, key=key))
    keys = jr.split(key, 3)
    run = jax.jit(jax.vmap(lambda k: abx.riemann_liouville(8, 0.3, key=k)[0]))
    assert run(keys).shape == (3, 9, 1)
    old = abx.fractional_brownian(4, 0.3, key=jr.PRNGKey(0))
    assert old.shape == (5, 1)
    grad = jax.jit(jax.grad(lambda t: jnp.sum(abx.brownian(t, 1, key=key) ** 2)))(ts)
    assert np.all(np.isfinite(grad))
    dw = jnp.ones((8, 1))
    grad = jax.jit(
        jax.grad(
            lambda w: jnp.sum(abx.riemann_liouville(8, 0.3, increments=w, key=key)[0])
        )
    )(dw)
    # Sum over times of the kernel: later increments act on fewer values.
    assert np.all(np.diff(grad[:, 0]) < 0) and np.all(grad > 0)


def test_errors():
    key, ts = jr.key(0), np.linspace(0.0, 1.0, 4)
    with pytest.raises(ValueError, match="strictly between"):
        abx.fractional_brownian(4, 1.0, key=key)
    with pytest.raises(ValueError, match="strictly between"):
        abx.riemann_liouville(4, 0.0, key=key)
    with pytest.raises(ValueError, match="at least 1"):
        abx.fractional_brownian(0, 0.3, key=key)
    with pytest.raises(ValueError, match="strictly between"):
        abx.riemann_liouville(4, 0.3, horizon=-1.0, key=key)
    with pytest.raises(ValueError, match="`increments` must be finite"):
        abx.riemann_liouville(2, 0.3, increments=np.array([[1.0], [np.inf]]), key=key)
    with pytest.raises(ValueError, match="`increments` must have shape"):
        abx.riemann_liouville(4, 0.3, increments=np.zeros((5, 1)), key=key)
    with pytest.raises(TypeError):
        jax.jit(lambda h: abx.fractional_brownian(4, h, key=key))(0.3)
    with pytest.raises(ValueError, match="at least 1"):
        abx.brownian(ts, 0, key=key)
    with pytest.raises(ValueError, match="not empty"):
        abx.brownian(ts[:0], 1, key=key)
    with pytest.raises(TypeError, match="floating"):
        abx.brownian(np.arange(4), 1, key=key)
    with pytest.raises(TypeError, match="floating"):
        abx.brownian(ts, 1, dtype=np.int32, key=key)
    with pytest.raises(TypeError, match="float32 or float64"):
        abx.fractional_brownian(4, 0.3, dtype=np.float16, key=key)
    with pytest.raises(ValueError, match="strictly increasing"):
        abx.brownian(ts[::-1], 1, key=key)

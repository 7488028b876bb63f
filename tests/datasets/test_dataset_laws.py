"""Laws of the data sets. Keys are fixed; tests of law use alpha = 0.001 each."""

import dataclasses

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

import arborax as abx
from arborax.datasets import (
    OrnsteinUhlenbeck,
    RoughBergomi,
)


ALPHA = 0.001
HORIZONS = [128, 256, 384, 512]
LAWS = [
    RoughBergomi(),
    RoughBergomi(hurst=0.1),
    RoughBergomi(eta=0.0),
    OrnsteinUhlenbeck(start=1.0),
]


def _near(samples, expected):
    """Means over the first axis lie within 4 standard errors."""
    samples = np.asarray(samples, np.float64)
    error = samples.std(0) / np.sqrt(len(samples))
    np.testing.assert_array_less(np.abs(samples.mean(0) - expected), 4 * error + 1e-9)


@pytest.fixture(scope="module")
def rough():
    """The same parameters and sizes as the regression values (20,000 paths)."""
    return {
        h: RoughBergomi(hurst=h).sample(20_000, key=jr.PRNGKey(7)) for h in (0.25, 0.1)
    }


@pytest.mark.parametrize(
    "hurst, expected",
    [(0.25, [0.102, 0.151, 0.200, 0.238]), (0.1, [0.109, 0.154, 0.191, 0.221])],
)
def test_standard_deviations(rough, hurst, expected):
    # The kurtosis at H = 0.25 is above 100: one standard error is 2 to 4 %.
    found = rough[hurst].values[:, HORIZONS, 0].std(axis=0)
    np.testing.assert_allclose(found, expected, rtol=0.05 if hurst == 0.1 else 0.08)


@pytest.mark.parametrize("hurst", [0.25, 0.1])
def test_price_is_a_martingale(rough, hurst):
    _near(np.exp(rough[hurst].values[:, HORIZONS, 0]), 1.0)


@pytest.mark.parametrize("hurst", [0.25, 0.1])
def test_variance_is_lognormal_with_the_right_roughness(rough, hurst):
    """`log v` is Gaussian: its mean and variance give E v = xi and Var Y = t^2H."""
    data = rough[hurst]
    index = np.array([1, 16, 128, 511])
    log_v = np.log(data.brackets[:, index, 0, 0] * 512)
    spread = 1.991**2 * (index / 512) ** (2 * hurst)
    _near(log_v, np.log(0.04) - spread / 2)
    _near((log_v - log_v.mean(0)) ** 2, spread * (1 - 1e-3))
    for k in (0, 3):
        z = (log_v[:, k] - np.log(0.04) + spread[k] / 2) / np.sqrt(spread[k])
        assert scipy.stats.kstest(z, "norm").pvalue > ALPHA


def test_forward_variance_is_flat():
    """With a small vol-of-vol the mean of `v` itself can be measured."""
    data = RoughBergomi(hurst=0.1, eta=0.5, steps=128).sample(8192, key=jr.PRNGKey(1))
    _near(data.brackets[:, :, 0, 0] * 128, 0.04)
    _near(np.exp(data.values[:, [64, 128], 0]), 1.0)


def test_bracket_is_the_limit_of_squared_steps(rough):
    data = rough[0.25]
    steps = np.diff(data.values[:, :, 0], axis=1)
    brackets = data.brackets[:, :, 0, 0]
    _near((steps**2 - brackets).sum(1), 0.0)
    _near(brackets.sum(1), 0.04)


def test_leverage_effect():
    """The correlation of returns and changes of log-variance has the sign of rho."""
    for rho in (-0.8, 0.8):
        data = RoughBergomi(hurst=0.5, eta=0.5, rho=rho, steps=64).sample(
            1024, key=jr.PRNGKey(2)
        )
        returns = np.diff(data.values[:, :-1, 0], axis=1).ravel()
        moves = np.diff(np.log(data.brackets[:, :, 0, 0]), axis=1).ravel()
        assert abs(np.corrcoef(returns, moves)[0, 1] - rho) < 0.15


def test_black_scholes_is_exact():
    data = RoughBergomi(steps=32, eta=0.0, xi=0.09).sample(4096, key=jr.PRNGKey(3))
    z = (data.values[:, -1, 0] + 0.045) / 0.3
    assert scipy.stats.kstest(z, "norm").pvalue > ALPHA


def test_ornstein_uhlenbeck_is_exact():
    law = OrnsteinUhlenbeck(kappa=2.0, mean=0.5, sigma=0.7, start=-1.0, steps=16)
    x = law.sample(4096, dtype=np.float64, key=jr.PRNGKey(4)).values[:, :, 0]
    mean = 0.5 - 1.5 * np.exp(-2.0)
    spread = 0.7**2 * (1 - np.exp(-4.0)) / 4
    z = (x[:, -1] - mean) / np.sqrt(spread)
    assert scipy.stats.kstest(z, "norm").pvalue > ALPHA
    half = 0.7**2 * (1 - np.exp(-2.0)) / 4
    centred = x[:, [8, 16]] - x[:, [8, 16]].mean(0)
    _near(centred.prod(axis=1), half * np.exp(-1.0))


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shapes_types_and_prefixes(law, dtype):
    law = dataclasses.replace(law, steps=8)
    data = law.sample(1030, dtype=dtype, key=jr.PRNGKey(0))
    assert data.values.shape == (1030, 9, 1) and data.values.dtype == dtype
    assert data.ts.shape == (9,) and data.ts[-1] == 1
    assert (data.brackets is None) == (not law.has_brackets)
    if data.brackets is not None:
        assert data.brackets.shape == (1030, 8, 1, 1) and data.brackets.min() > 0
    shorter = law.sample(5, dtype=dtype, key=jr.PRNGKey(0))
    np.testing.assert_array_equal(shorter.values, data.values[:5])


@pytest.mark.parametrize(
    "law",
    [
        RoughBergomi(rho=-1.5),
        RoughBergomi(hurst=1.0),
        RoughBergomi(steps=0),
        OrnsteinUhlenbeck(kappa=0.0),
        OrnsteinUhlenbeck(sigma=-1.0),
    ],
    ids=repr,
)
def test_senseless_parameters_are_refused(law):
    with pytest.raises(ValueError):
        law.sample(4, key=jr.PRNGKey(0))


@jax.jit
def _price_by_ode(ts, compensator, w, v):
    """`dS = S sqrt(x) o dW - S x/2 dt`, `x = xi exp(v - compensator)`, as an ordinary
    equation along the lead-lag path of `(t, compensator, w, v)`: prices see the leading
    `t` and `w`, volatility the lagging `compensator` and `v`."""
    flat = jnp.stack([ts, compensator, w, v], axis=-1)
    path = abx.lead_lag(abx.SampledPath(ts, flat, check=False))

    def fields(y):
        variance = 0.04 * jnp.exp(y[1] - y[2])
        out = jnp.zeros((8, 3), y.dtype)
        out = out.at[0, 0].set(-y[0] * variance / 2)
        out = out.at[2, 0].set(y[0] * jnp.sqrt(variance))
        return out.at[7, 1].set(1.0).at[5, 2].set(1.0)

    alg = abx.Shuffle(8, 1)
    control = abx.rough_path(path.ts, path.xs, alg, knots=path.ts, max_points=2)
    y0 = jnp.array([1.0, 0.0, 0.0], w.dtype)
    solution = abx.solve(
        fields, y0, control, geometry=abx.Euclidean(3), solver=abx.Heun()
    )
    return solution.ys[-1, 0]


def test_wong_zakai_route_converges_to_the_same_law():
    """Ordinary equations along the lead-lag path: the same noise gives the same price,
    ever closer on finer grids, and other noise the same law."""
    prices = jax.vmap(_price_by_ode, (None, None, 0, 0))
    errors, eta, hurst, paths = [], 1.0, 0.25, 1024
    for n in (16, 64):
        key = jr.PRNGKey(n)
        y, dw = abx.riemann_liouville(
            n, hurst, key=key, shape=(paths,), dtype=jnp.float64
        )
        t = jnp.linspace(0, 1, n + 1)
        w = jnp.pad(jnp.cumsum(dw[..., 0], axis=1), [(0, 0), (1, 0)])
        clock = t ** (2 * hurst) * eta**2 / 2
        price = prices(t, clock, w, eta * y[..., 0])
        variance = 0.04 * jnp.exp(eta * y[:, :-1, 0] - clock[None, :-1])
        exact = jnp.sum(jnp.sqrt(variance) * dw[..., 0] - variance / (2 * n), axis=1)
        errors.append(float(jnp.mean(jnp.abs(jnp.log(price) - exact))))
        _near(price, 1.0)
    assert errors[1] < errors[0] / 2.5
    law = RoughBergomi(hurst=hurst, eta=eta, rho=1.0, steps=64)
    other = law.sample(paths, dtype=np.float64, key=jr.PRNGKey(99)).values[:, -1, 0]
    assert scipy.stats.ks_2samp(np.log(price), other).pvalue > ALPHA

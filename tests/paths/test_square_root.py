"""The square-root driver: moments of the variance, and Heston prices."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.integrate

import arborax as abx


# The Feller condition 2 kappa theta > sigma^2 is violated: 0.12 < 0.81, 0.16 < 0.25.
HESTON = dict(kappa=1.5, theta=0.04, sigma=0.9, rho=-0.7)
MILDER = dict(kappa=2.0, theta=0.04, sigma=0.5, rho=-0.7)
V0 = 0.04
draw = eqx.filter_jit(abx.square_root_driver)


def heston_call(spot, strike, horizon, v0, kappa, theta, sigma, rho):
    """Without interest, by the Fourier integral of Lewis along the line -i/2."""

    def transform(u):
        b = kappa - rho * sigma * 1j * u
        d = np.sqrt(b**2 + sigma**2 * (1j * u + u**2))
        g = (b - d) / (b + d)
        e = np.exp(-d * horizon)
        c = (b - d) * horizon - 2 * np.log((1 - g * e) / (1 - g))
        return np.exp(
            kappa * theta / sigma**2 * c
            + (b - d) / sigma**2 * (1 - e) / (1 - g * e) * v0
        )

    x = np.log(spot / strike)
    density = lambda u: (  # noqa: E731
        (np.exp(1j * u * x) * transform(u - 0.5j)).real / (u**2 + 0.25)
    )
    integral = scipy.integrate.quad(density, 0, np.inf, limit=500)[0]
    return spot - np.sqrt(spot * strike) / np.pi * integral


def by_probabilities(spot, strike, horizon, v0, kappa, theta, sigma, rho):
    """The same call from two probabilities, each by the inversion of Gil-Pelaez. The
    transform comes from its Riccati equation, solved numerically."""

    def transform(u):
        def slopes(t, y):
            d = y[u.size :]
            square = sigma**2 * d**2 / 2 + (rho * sigma * 1j * u - kappa) * d
            return np.concatenate([kappa * theta * d, square - (1j * u + u**2) / 2])

        start = np.zeros(2 * u.size, complex)
        options = dict(method="DOP853", rtol=1e-8, atol=1e-10)
        found = scipy.integrate.solve_ivp(slopes, (0, horizon), start, **options)
        c, d = found.y[:, -1].reshape(2, -1)
        return np.exp(c + d * v0)

    nodes, weights = np.polynomial.legendre.leggauss(200)
    u, x = 100 * (nodes + 1), np.log(spot / strike)

    def probability(shift):
        values = np.exp(1j * u * x) * transform(u + shift) / (1j * u)
        return 0.5 + 100 * np.dot(weights, values.real) / np.pi

    return spot * probability(-1j) - strike * probability(0j)


def prices(given, paths, windows, seed=0, chunk=10_000):
    """Prices at the end, by the log-ODE of `dS = S dZ`."""
    ts = jnp.linspace(0.0, 1.0, windows + 1)

    def one(values, brackets):
        control = abx.rough_path(ts, values, abx.Ito(1, 2), brackets=brackets)
        fields = lambda y: y[None]  # noqa: E731
        solved = abx.solve(
            fields, jnp.array([100.0]), control, solver=abx.Heun(), throw=False
        )
        return solved.ys[-1, 0]

    @jax.jit
    def some(key):
        x = abx.square_root_driver(ts, V0, **given, shape=chunk, key=key)
        return jax.vmap(one)(x.values, x.brackets)

    keys = jr.split(jr.key(seed), paths // chunk)
    return np.concatenate([some(key) for key in keys])


@pytest.mark.parametrize("given, exact", [(HESTON, 5.98671), (MILDER, 7.19255)])
@pytest.mark.parametrize(
    "paths,windows",
    [(40_000, 16), pytest.param(1_000_000, 64, marks=pytest.mark.slow)],
)
def test_heston_call(paths, windows, given, exact):
    """Within two standard errors of the closed form, with the key fixed beforehand."""
    payoff = np.maximum(prices(given, paths, windows) - 100, 0)
    error = payoff.std() / np.sqrt(paths)
    print(f"{payoff.mean():.4f} +- {error:.4f}, closed form {exact}")
    assert abs(payoff.mean() - exact) < 2 * error


@pytest.mark.slow
@pytest.mark.parametrize("windows, bias", [(16, 1.27), (64, 0.89)])
def test_bias_of_a_root_in_the_coefficients(windows, bias):
    """The figures in docs/guides/monte-carlo.md, within four standard errors."""
    kappa, theta, sigma, rho = HESTON.values()

    def drift(y):
        return jnp.stack([jnp.zeros_like(y[0]), kappa * (theta - y[1])])

    def diffusion(y):
        root = jnp.sqrt(jnp.maximum(y[1], 1e-8))
        price = jnp.stack([root * y[0], jnp.zeros_like(root)])
        return jnp.stack([price, sigma * root * jnp.array([rho, (1 - rho**2) ** 0.5])])

    sol = abx.solve_sde(
        drift,
        diffusion,
        jnp.array([100.0, V0]),
        jnp.array([0.0, 1.0]),
        key=jr.key(0),
        paths=200_000,
        windows=windows,
    )
    payoff = np.maximum(sol.ys[:, -1, 0] - 100, 0)
    print(f"bias {payoff.mean() - 5.98671:.3f}")
    assert abs(payoff.mean() - 5.98671 - bias) < 4 * payoff.std() / len(payoff) ** 0.5


@pytest.mark.parametrize("given, exact", [(HESTON, 5.98671), (MILDER, 7.19255)])
def test_two_closed_forms(given, exact):
    for form in (heston_call, by_probabilities):
        assert abs(form(100, 100, 1.0, V0, **given) - exact) < 1e-4


def test_moments_of_one_step():
    """Conditional mean and variance are exact in both laws of the scheme."""
    h = 0.25
    kappa, theta, sigma = (HESTON[name] for name in ("kappa", "theta", "sigma"))
    decay = np.exp(-kappa * h)
    for v0 in (0.0, 0.01, 0.3):
        x = draw(np.array([0.0, h]), v0, **HESTON, shape=200_000, key=jr.key(1))
        v = np.asarray(x.variance[:, 1])
        mean = theta + (v0 - theta) * decay
        spread = sigma**2 / kappa * (1 - decay)
        variance = spread * (v0 * decay + theta / 2 * (1 - decay))
        assert np.all(v >= 0)
        assert abs(v.mean() - mean) < 4 * v.std() / len(v) ** 0.5
        squares = (v - mean) ** 2
        assert abs(squares.mean() - variance) < 4 * squares.std() / len(v) ** 0.5


def test_martingale_and_brackets():
    """`Z` has mean zero, `E Z^2` is the mean bracket, and both laws meet at the end."""
    ts = np.linspace(0.0, 1.0, 17)
    x = draw(ts, V0, **HESTON, shape=50_000, key=jr.key(2))
    assert x.variance.shape == (50_000, 17) and x.values.shape == (50_000, 17, 1)
    assert x.brackets.shape == (50_000, 16, 1, 1)
    z = np.asarray(x.values[:, -1, 0])
    assert abs(z.mean()) < 4 * z.std() / len(z) ** 0.5
    gap = z**2 - np.asarray(x.brackets.sum(axis=(1, 2, 3)))
    assert abs(gap.mean()) < 4 * gap.std() / len(z) ** 0.5
    # At v0 = theta the expected variance is constant.
    total = np.asarray(x.brackets.sum(axis=(1, 2, 3)))
    assert abs(total.mean() - V0) < 4 * total.std() / len(z) ** 0.5


def test_derivatives_and_dtypes():
    ts = jnp.linspace(0.0, 1.0, 9)

    def mean(sigma, v0):
        given = HESTON | {"sigma": sigma}
        x = abx.square_root_driver(ts, v0, **given, shape=64, key=jr.key(3))
        return jnp.mean(jnp.exp(x.values[:, -1, 0]))

    at = (jnp.array(0.9), jnp.array(0.04))
    grads = jax.jit(jax.grad(mean, (0, 1)))(*at)
    assert np.all(np.isfinite(grads))
    assert np.isfinite(jax.jit(jax.hessian(mean))(*at))
    assert np.isfinite(jax.grad(mean, 1)(jnp.array(0.9), jnp.array(0.0)))
    small = draw(ts.astype(np.float32), 0.04, **HESTON, key=jr.key(0))
    assert small.values.dtype == np.float32 and small.values.shape == (9, 1)


def test_errors():
    ts, good = np.linspace(0.0, 1.0, 3), HESTON | dict(key=jr.key(0))
    with pytest.raises(ValueError, match="`v0` must be one finite number of at least"):
        abx.square_root_driver(ts, -0.1, **good)
    with pytest.raises(ValueError, match="`sigma` must be one finite positive"):
        abx.square_root_driver(ts, 0.1, **good | dict(sigma=0.0))
    with pytest.raises(ValueError, match="`rho` must lie between -1 and 1"):
        abx.square_root_driver(ts, 0.1, **good | dict(rho=1.5))
    with pytest.raises(ValueError, match="strictly increasing"):
        abx.square_root_driver(ts[::-1], 0.1, **good)

"""Laws of Lévy areas that are drawn without a fine grid."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

import arborax as abx


ALPHA = 1e-3
COUNT = 200_000
TS = np.array([0.0, 0.5])
draw = eqx.filter_jit(abx.brownian_areas)


def sample(method, dim=3, count=COUNT, seed=0):
    """Increments, space-time areas and areas of many steps, over unit time."""
    steps = draw(TS, dim, count, key=jr.key(seed), method=method)
    w, h, a = (np.asarray(x)[:, 0] for x in steps)
    return w * 2**0.5, h * 2**0.5, a * 2.0


def assert_mean(values, expected):
    """The mean of independent values, by a normal test of level 1e-3 / 20."""
    error = np.std(values) / np.sqrt(values.size)
    level = scipy.stats.norm.isf(ALPHA / 40)
    assert abs(np.mean(values) - expected) < level * error, (np.mean(values), expected)


@pytest.mark.parametrize("method", ("foster", "davie"))
def test_moments(method):
    """Moments to order four, from the law of Brownian motion.

    Given channel `i`, areas with two others are independent Gaussians with the same
    random variance, so `E A_ij^2 A_ik^2 = E A_ij^4 / 3`; the fourth moment 5/16 is that
    of the hyperbolic secant law. Davie's areas have the fourth moment 13/48.
    """
    w, h, a = sample(method)
    fourth = 5 / 16 if method == "foster" else 13 / 48
    for k in range(3):
        assert_mean(a[:, k], 0)
        assert_mean(a[:, k] ** 2, 1 / 4)
        assert_mean(a[:, k] ** 3, 0)
        assert_mean(a[:, k] ** 4, fourth)
        assert_mean(h[:, k] ** 2, 1 / 12)
    assert_mean(a[:, 0] ** 2 * a[:, 1] ** 2, fourth / 3)
    assert_mean(a[:, 0] * a[:, 1], 0)
    # Given the increment: 1/12 + (w_i^2 + w_j^2)/12, and covariances w_j w_k / 12.
    assert_mean(a[:, 0] ** 2 * w[:, 0] ** 2, 5 / 12)
    assert_mean(a[:, 0] ** 2 * w[:, 2] ** 2, 1 / 4)
    assert_mean(a[:, 0] * a[:, 1] * w[:, 1] * w[:, 2], 1 / 12)
    assert_mean(a[:, 0] * w[:, 0] * w[:, 1], 0)
    # The law given the increments, for small and for all: E exp(iuA) is
    # x / sinh(x) exp(-r (x coth(x) - 1) / 2), x = u/2. Davie's is Gaussian.
    r = w[:, 0] ** 2 + w[:, 1] ** 2
    given = (1 + r) ** 2 / 48
    if method == "foster":
        given = 7 / 240 + 7 * r / 120 + r**2 / 48
    for weight in (1 / (1 + r) ** 2, r < 0.5):
        assert_mean(weight * (a[:, 0] ** 2 - (1 + r) / 12), 0)
        assert_mean(weight * (a[:, 0] ** 4 - given), 0)
    # With the space-time area: E A_01 H_0 W_1 = E H_0^2 W_1^2.
    assert_mean(a[:, 0] * h[:, 0] * w[:, 1], 1 / 12)


def secant_cdf(x):
    """The law of the area of two Brownian motions over unit time."""
    return 2 / np.pi * np.arctan(np.exp(np.pi * x))


def test_law_of_one_area():
    """Kolmogorov-Smirnov at level 1e-3 with 50,000 samples.

    Both methods are approximations: their distribution functions are off by 0.002 and
    0.015. So this number of samples accepts the first and rejects the second.
    """
    p_values = {}
    for method in ("foster", "davie"):
        a = sample(method, dim=2, count=50_000)[2][:, 0]
        p_values[method] = scipy.stats.kstest(a, secant_cdf).pvalue
    assert p_values["foster"] > ALPHA and p_values["davie"] < ALPHA


@pytest.mark.parametrize("method", ("foster", "davie"))
def test_law_against_a_fine_grid(method):
    """A combination of increments and areas of three channels, against areas of paths
    of 256 steps: two samples of 5,000 at level 1e-3, which the law of neither method
    exceeds."""
    count, steps = 5000, 256
    dw = jr.normal(jr.key(1), (count, steps, 3)) / steps**0.5
    before = jnp.cumsum(dw, axis=1) - dw
    double = jnp.einsum("nti,ntj->nij", before, dw)
    i, j = np.triu_indices(3, 1)
    fine = np.asarray((double - jnp.swapaxes(double, 1, 2))[:, i, j]) / 2
    w, _, a = sample(method, count=count, seed=2)
    mixed = lambda x, y: y @ np.array([1.0, -0.5, 0.8]) + 0.3 * x[:, 0] * x[:, 1]  # noqa: E731
    total = np.asarray(jnp.sum(dw, axis=1))
    assert scipy.stats.ks_2samp(mixed(w, a), mixed(total, fine)).pvalue > ALPHA


def test_no_areas_and_one_channel():
    steps = draw(np.linspace(0.0, 1.0, 4), 3, (2,), key=jr.key(0), method=None)
    assert steps.areas.shape == (2, 3, 3) and not np.any(steps.areas)
    assert np.all(steps.increments != 0) and not np.any(steps.space_time)
    one = draw(np.linspace(0.0, 1.0, 4, dtype=np.float32), 1, key=jr.key(0))
    assert one.areas.shape == (3, 0) and one.increments.dtype == np.float32


def test_scaling_and_derivatives():
    """An area over a step of length `h` is `h` times that over unit time."""
    one, four = (draw(np.array([0.0, h]), 2, key=jr.key(3)) for h in (1.0, 4.0))
    np.testing.assert_allclose(four.increments, 2 * one.increments)
    np.testing.assert_allclose(four.space_time, 2 * one.space_time)
    np.testing.assert_allclose(four.areas, 4 * one.areas)
    area = lambda t: abx.brownian_areas(  # noqa: E731
        jnp.stack([jnp.zeros_like(t), t]), 2, key=jr.key(3)
    ).areas[0, 0]
    np.testing.assert_allclose(jax.jit(jax.grad(area))(4.0), one.areas[0, 0])


def test_errors():
    with pytest.raises(ValueError, match="`method` must be one of"):
        abx.brownian_areas(TS, 2, key=jr.key(0), method="milstein")
    with pytest.raises(ValueError, match="strictly increasing"):
        abx.brownian_areas(TS[::-1], 2, key=jr.key(0))

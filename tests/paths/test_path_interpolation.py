"""Interpolation against diffrax, with missing values; causality and smoothness."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import arborax as abx


KINDS = ("linear", "rectilinear", "hermite")
evaluate = eqx.filter_jit(lambda f, t: f.evaluate(t))
derivative = eqx.filter_jit(lambda f, t: f.derivative(t))


def make(rng, batch=(), times=9, dim=2, dtype=np.float64, missing=True):
    ts = np.cumsum(rng.uniform(0.1, 1.0, times)).astype(dtype)
    xs = rng.normal(size=(*batch, times, dim)).astype(dtype)
    if missing:
        # First and last observed, so that diffrax needs no filling at the ends.
        xs[..., [2, 3, 6], 0] = np.nan
        xs[..., [1, 6], 1] = np.nan
    return ts, xs


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize("missing", (False, True))
@pytest.mark.parametrize("kind", ("linear", "hermite"))
def test_against_diffrax(rng, kind, missing, dtype):
    ts, xs = make(rng, missing=missing, dtype=dtype)
    ts_, xs_ = jnp.asarray(ts), jnp.asarray(xs)
    if kind == "linear":
        ours = abx.LinearInterpolation(ts, xs)
        filled = diffrax.linear_interpolation(ts_, xs_)
        theirs = [diffrax.LinearInterpolation(ts_, filled[:, c]) for c in range(2)]
    else:
        # Each channel on its observations alone: a time at which nothing was seen must
        # not bend the curve. (diffrax itself fits anew at such times.)
        ours = abx.HermiteInterpolation(ts, xs)
        theirs = []
        for c in range(2):
            seen = ~np.isnan(xs[:, c])
            fit = diffrax.backward_hermite_coefficients(ts_[seen], xs_[seen, c])
            theirs.append(diffrax.CubicInterpolation(ts_[seen], fit))
    middle = rng.uniform(ts[0], ts[-1], (5, 4)).astype(dtype)
    tolerance = 1e-10 if dtype is np.float64 else 2e-4
    values, slopes = evaluate(ours, middle), derivative(ours, middle)
    assert values.shape == (5, 4, 2) and values.dtype == slopes.dtype == dtype
    flat = jnp.asarray(middle.ravel())
    for c, one in enumerate(theirs):
        expected = jax.jit(jax.vmap(one.evaluate))(flat)
        np.testing.assert_allclose(values[..., c].ravel(), expected, atol=tolerance)
        expected = jax.jit(jax.vmap(one.derivative))(flat)
        np.testing.assert_allclose(
            slopes[..., c].ravel(), expected, atol=20 * tolerance
        )
    at_samples = np.asarray(evaluate(ours, ts))
    seen = ~np.isnan(xs)
    np.testing.assert_allclose(at_samples[seen], xs[seen], atol=tolerance)


def test_rectilinear(rng):
    ts, xs = make(rng)
    path = abx.RectilinearInterpolation(ts, xs)
    values = diffrax.rectilinear_interpolation(jnp.asarray(ts), jnp.asarray(xs))[1]
    np.testing.assert_allclose(evaluate(path, ts)[:, 1:], values[::2], rtol=1e-13)
    np.testing.assert_allclose(evaluate(path, ts)[:, 0], ts, rtol=1e-13)
    mid = (ts[1:] + ts[:-1]) / 2
    np.testing.assert_allclose(evaluate(path, mid)[:, 0], ts[1:], rtol=1e-12)
    np.testing.assert_allclose(evaluate(path, mid)[:, 1:], values[:-1:2], rtol=1e-12)
    quarter = 0.75 * ts[:-1] + 0.25 * ts[1:]
    slope = derivative(path, quarter)
    np.testing.assert_allclose(slope[:, 0], 2 * np.ones(8), rtol=1e-12)
    assert not np.any(slope[:, 1:])


def test_ends_and_empty_channels():
    nan = np.nan
    ts = np.arange(6.0)
    xs = np.array([nan, 1.0, 3.0, 4.0, nan, nan])
    xs = np.stack([xs, np.full(6, nan)], -1)
    for kind in (abx.LinearInterpolation, abx.HermiteInterpolation):
        path = kind(ts, xs)
        t = np.array([-1.0, 0.0, 0.5, 3.5, 5.0, 9.0])
        np.testing.assert_allclose(evaluate(path, t)[:, 0], [1, 1, 1, 4, 4, 4])
        np.testing.assert_array_equal(derivative(path, t), np.zeros((6, 2)))
        assert not np.any(evaluate(path, t)[:, 1])


def test_extrapolation_continues_the_end_segments(rng):
    ts, xs = make(rng, missing=False)
    for kind in (abx.LinearInterpolation, abx.HermiteInterpolation):
        path = kind(ts, xs)
        out = np.array([ts[0] - 1, ts[-1] + 1])
        # The cubic of the last segment, from four points inside it.
        for at, (a, b) in zip(out, ((ts[0], ts[1]), (ts[-2], ts[-1]))):
            inside = np.linspace(a, b, 4)
            table = np.asarray(evaluate(path, inside))
            for c in range(2):
                cubic = np.polynomial.Polynomial.fit(inside, table[:, c], 3)
                got = evaluate(path, np.array([at]))[0, c]
                np.testing.assert_allclose(got, cubic(at), rtol=1e-6, atol=1e-8)


def test_hermite_is_smooth_and_causal(rng):
    ts, xs = make(rng)
    path = abx.HermiteInterpolation(ts, xs)
    left = derivative(path, ts[1:-1] - 1e-9)
    right = derivative(path, ts[1:-1])
    np.testing.assert_allclose(left, right, atol=1e-6)
    changed = np.array(xs)
    changed[8] += 10.0
    t = np.linspace(ts[0], ts[7], 50)
    other = abx.HermiteInterpolation(ts, changed)
    np.testing.assert_array_equal(evaluate(path, t), evaluate(other, t))


@pytest.mark.parametrize("kind", KINDS)
def test_batches_lengths_and_vmap(rng, kind):
    ts, xs = make(rng, (2, 3), missing=False)
    mask = rng.uniform(size=xs.shape) < 0.7
    mask[..., 0, :] = True
    lengths = np.array([[9, 5, 3], [7, 9, 1]])
    t = np.linspace(ts[0], ts[-1], 7)
    path = abx.SampledPath(ts, xs, mask, lengths)
    build = eqx.filter_jit(lambda p, t: abx.interpolate(p, kind).evaluate(t))
    values = build(path, t)
    mapped = jax.vmap(jax.vmap(lambda p: build(p, t)))(path.broadcast())
    np.testing.assert_allclose(values, mapped, rtol=1e-12)
    for at in ((0, 0), (0, 1), (1, 2)):
        n = lengths[at]
        short = abx.SampledPath(ts[:n], xs[at][:n], mask[at][:n])
        before = t[t <= ts[n - 1]]
        np.testing.assert_allclose(
            values[at][: len(before)], build(short, before), rtol=1e-11
        )
        after = values[at][len(before) :]
        last = build(short, ts[n - 1 : n])
        np.testing.assert_allclose(after, np.broadcast_to(last, after.shape))


@pytest.mark.parametrize("kind", KINDS)
def test_gradients(rng, kind):
    ts, xs = make(rng, times=5, missing=False)
    mask = np.array([[1, 1], [0, 1], [1, 0], [1, 1], [1, 1]], bool)
    t = np.linspace(ts[0], ts[-1], 6)[1:-1] + 1e-3

    def loss(ts, xs):
        path = abx.interpolate(abx.SampledPath(ts, xs, mask, check=False), kind)
        return jnp.sum(path.evaluate(t) ** 2) + jnp.sum(path.derivative(t) ** 2)

    check_grads(jax.jit(loss), (ts, xs), order=1, atol=1e-3, rtol=1e-3)
    dirty = jnp.where(mask, xs, jnp.nan)
    grad = np.asarray(jax.jit(jax.grad(loss, argnums=1))(jnp.asarray(ts), dirty))
    assert np.all(np.isfinite(grad)) and not np.any(grad[~mask])


@pytest.mark.parametrize("kind", ("linear", "hermite"))
def test_derivative_is_the_derivative(rng, kind):
    ts, xs = make(rng)
    path = abx.interpolate(abx.SampledPath(ts, xs, ~np.isnan(xs)), kind)
    t = rng.uniform(ts[0], ts[-1], 5)
    _, tangent = jax.jit(lambda t, dt: jax.jvp(path.evaluate, (t,), (dt,)))(
        t, np.ones(5)
    )
    np.testing.assert_allclose(derivative(path, t), tangent, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_one_point(kind):
    path = abx.interpolate(abx.SampledPath(np.zeros(1), np.ones((1, 2))), kind)
    value = path.evaluate(np.array(3.0))
    np.testing.assert_array_equal(value[..., -2:], [1, 1])


def test_errors(rng):
    ts, xs = make(rng, missing=False)
    path = abx.SampledPath(ts, xs)
    with pytest.raises((ValueError, TypeError)):
        abx.interpolate(path, "quintic")
    with pytest.raises(TypeError, match="floating"):
        abx.interpolate(path).evaluate(np.array(1))
    with pytest.raises(ValueError, match="`ts` must have shape"):
        abx.LinearInterpolation(ts[1:], xs)
    with pytest.raises(ValueError, match="strictly increasing"):
        abx.HermiteInterpolation(ts[::-1], xs)
    xs[3, 1] = np.inf
    with pytest.raises(ValueError, match="NaN or infinity"):
        abx.LinearInterpolation(ts, xs)

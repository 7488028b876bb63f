"""Time, basepoint, lead-lag and rectilinear paths, with their brackets."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import arborax as abx


def make(rng, batch=(), times=6, dim=2, dtype=np.float64, realised=False):
    ts = np.cumsum(rng.uniform(0.1, 1.0, times)).astype(dtype)
    xs = rng.normal(size=(*batch, times, dim)).astype(dtype)
    dx = np.diff(xs, axis=-2)
    brackets = dx[..., :, None] * dx[..., None, :]
    return ts, xs, brackets if realised else brackets + np.eye(dim, dtype=dtype)


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize("batch", ((), (3,)))
def test_time(rng, batch, dtype):
    ts, xs, brackets = make(rng, batch, dtype=dtype)
    path = abx.add_time(abx.SampledPath(ts, xs, brackets=brackets))
    assert path.xs.dtype == dtype
    np.testing.assert_array_equal(path.xs[..., 0], np.broadcast_to(ts, xs.shape[:-1]))
    np.testing.assert_array_equal(path.xs[..., 1:], xs)
    np.testing.assert_array_equal(path.brackets[..., 1:, 1:], brackets)
    assert not np.any(path.brackets[..., 0, :]) and not np.any(path.brackets[..., 0])


def test_time_stands_still_on_padding(rng):
    ts, xs, _ = make(rng, (2,))
    path = abx.add_time(abx.SampledPath(ts, xs, lengths=np.array([3, 6])))
    assert not np.any(path.increments()[0, 2:])
    np.testing.assert_array_equal(path.xs[0, 2:, 0], np.full(4, ts[2]))


@pytest.mark.parametrize("batch", ((), (3,)))
def test_basepoint(rng, batch):
    ts, xs, brackets = make(rng, batch)
    path = abx.SampledPath(ts, xs, brackets=brackets)
    based = abx.add_basepoint(path)
    np.testing.assert_array_equal(based.xs[..., 1:, :], xs)
    np.testing.assert_array_equal(based.increments()[..., 0, :], xs[..., 0, :])
    np.testing.assert_allclose(based.dt[:2], (ts[1] - ts[0]) * np.ones(2))
    np.testing.assert_array_equal(based.brackets[..., 1:, :, :], brackets)
    assert not np.any(based.brackets[..., 0, :, :])
    valued = abx.add_basepoint(path, np.array([1.0, 2.0]))
    np.testing.assert_array_equal(
        valued.xs[..., 0, :], np.broadcast_to([1.0, 2.0], (*batch, 2))
    )
    assert not np.any(abx.add_basepoint(abx.add_time(path)).xs[..., 0, :])
    with pytest.raises(ValueError, match="basepoint"):
        abx.add_basepoint(path, np.ones(3))


def test_basepoint_of_one_point():
    path = abx.add_basepoint(abx.SampledPath(np.zeros(1), np.ones((1, 2))))
    np.testing.assert_array_equal(path.ts, [-1, 0])


@pytest.mark.parametrize("batch", ((), (3,)))
def test_lead_lag(rng, batch):
    ts, xs, brackets = make(rng, batch, realised=True)
    path = abx.lead_lag(abx.SampledPath(ts, xs, brackets=brackets))
    lead, lag = path.xs[..., :2], path.xs[..., 2:]
    np.testing.assert_array_equal(lead, np.repeat(xs, 2, axis=-2)[..., 1:, :])
    np.testing.assert_array_equal(lag, np.repeat(xs, 2, axis=-2)[..., :-1, :])
    assert np.all(np.diff(path.ts) > 0)
    # Realised brackets commute with the augmentation.
    dz = np.asarray(path.increments())
    np.testing.assert_array_equal(path.brackets, dz[..., :, None] * dz[..., None, :])


def test_lead_lag_area_is_half_the_quadratic_variation(rng):
    ts, xs, _ = make(rng, times=20)
    path = abx.lead_lag(abx.SampledPath(ts, xs))
    lead, lag = np.asarray(path.xs[:, :2]), np.asarray(path.xs[:, 2:])
    mid = lambda z: (z[1:] + z[:-1]) / 2 - z[0]  # noqa: E731
    area = mid(lag).T @ np.diff(lead, axis=0) - (mid(lead).T @ np.diff(lag, axis=0))
    dx = np.diff(xs, axis=0)
    symmetric = (area + area.T) / 2
    np.testing.assert_allclose(-symmetric, dx.T @ dx, atol=1e-12)


def test_rectilinear_against_diffrax(rng):
    ts, xs, brackets = make(rng)
    dirty = np.array(xs)
    dirty[[1, 3], 0] = np.nan
    dirty[2, 1] = np.nan
    path = abx.rectilinear(
        abx.SampledPath(ts, dirty, ~np.isnan(dirty), brackets=brackets)
    )
    times, values = diffrax.rectilinear_interpolation(
        jnp.asarray(ts), jnp.asarray(dirty)
    )
    np.testing.assert_array_equal(path.xs[:, 0], times)
    np.testing.assert_array_equal(path.xs[:, 1:], values)
    np.testing.assert_array_equal(path.ts[::2], ts)
    assert not np.any(path.brackets[::2])
    np.testing.assert_array_equal(path.brackets[1::2, 1:, 1:], brackets)


def test_one_point(rng):
    path = abx.SampledPath(np.zeros(1), np.ones((1, 2)), brackets=np.zeros((0, 2, 2)))
    assert abx.lead_lag(path).xs.shape == (1, 4)
    assert abx.rectilinear(path).xs.shape == (1, 3)
    assert abx.add_time(path).brackets.shape == (0, 3, 3)


@pytest.mark.parametrize(
    "augment", (abx.add_time, abx.add_basepoint, abx.lead_lag, abx.rectilinear)
)
def test_transformations(rng, augment):
    ts, xs, brackets = make(rng, (3,))

    def run(ts, xs, brackets):
        path = augment(abx.SampledPath(ts, xs, brackets=brackets, check=False))
        return path.xs, path.brackets

    batched = run(ts, xs, brackets)
    mapped = jax.jit(jax.vmap(run, in_axes=(None, 0, 0)))(ts, xs, brackets)
    for a, b in zip(batched, mapped):
        np.testing.assert_allclose(a, b, rtol=1e-13)

    def loss(*args):
        return sum(jnp.sum(a**3) for a in run(*args))

    check_grads(jax.jit(loss), (ts, xs, brackets), order=1, atol=1e-3, rtol=1e-3)

"""Windows by points and by time against brute force; exact padding and brackets."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import arborax as abx


def make(rng, batch=(), times=14, dim=2, dtype=np.float64):
    ts = np.cumsum(rng.uniform(0.1, 1.0, times)).astype(dtype)
    xs = rng.normal(size=(*batch, times, dim)).astype(dtype)
    half = rng.normal(size=(*batch, times - 1, dim, dim)).astype(dtype)
    return ts, xs, half @ np.swapaxes(half, -1, -2)


def irregular_knots(ts):
    """On samples, off samples, two in one segment, one long window."""
    return np.array(
        [
            0.7 * ts[0] + 0.3 * ts[1],
            0.4 * ts[0] + 0.6 * ts[1],
            ts[2],
            0.5 * (ts[3] + ts[4]),
            ts[9],
            ts[10],
            0.9 * ts[-1] + 0.1 * ts[-2],
        ],
        ts.dtype,
    )


def brute_force(ts, xs, brackets, low, high):
    """Points and brackets of one window of an unbatched path, without padding."""
    points = [low, *(t for t in ts if low < t < high), high]
    values = np.stack([np.interp(points, ts, x) for x in xs.T], -1)
    pieces = []
    for a, b in zip(points[:-1], points[1:]):
        share = np.maximum(np.minimum(ts[1:], b) - np.maximum(ts[:-1], a), 0)
        pieces.append(np.tensordot(share / np.diff(ts), brackets, 1))
    return np.array(points), values, np.array(pieces)


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize("batch", ((), (2, 3)))
def test_by_time_against_brute_force(rng, batch, dtype):
    ts, xs, brackets = make(rng, batch, dtype=dtype)
    knots = irregular_knots(ts)
    path = abx.SampledPath(ts, xs, brackets=brackets)
    windows = abx.windows_by_time(path, knots)
    most = max(np.sum((ts > a) & (ts < b)) + 2 for a, b in zip(knots, knots[1:]))
    tolerance = 1e-13 if dtype is np.float64 else 1e-5
    assert windows.xs.dtype == windows.ts.dtype == windows.brackets.dtype == dtype
    assert windows.xs.shape == (*batch, 6, most, 2)
    for at in np.ndindex(*batch):
        for k in range(6):
            times, values, pieces = brute_force(
                ts, xs[at], brackets[at], knots[k], knots[k + 1]
            )
            n = len(times)
            np.testing.assert_allclose(windows.ts[k, :n], times, rtol=tolerance)
            got = windows.xs[at][k]
            np.testing.assert_allclose(got[:n], values, atol=tolerance)
            np.testing.assert_array_equal(
                got[n:], np.broadcast_to(got[n - 1], got[n:].shape)
            )
            got = windows.brackets[at][k]
            np.testing.assert_allclose(got[: n - 1], pieces, atol=20 * tolerance)
            assert not np.any(got[n - 1 :])
    assert not np.any(np.diff(windows.xs, axis=-2)[..., 0, 1:, :])


def test_increments_and_brackets_are_conserved(rng):
    ts, xs, brackets = make(rng, (3,))
    knots = irregular_knots(ts)
    knots[0], knots[-1] = ts[0], ts[-1]
    windows = abx.windows_by_time(abx.SampledPath(ts, xs, brackets=brackets), knots)
    total = jnp.sum(windows.increments(), axis=(-2, -3))
    np.testing.assert_allclose(total, xs[:, -1] - xs[:, 0], atol=1e-13)
    total = jnp.sum(windows.brackets, axis=(-3, -4))
    np.testing.assert_allclose(total, brackets.sum(1), rtol=1e-13)
    # Closing point of a window is the opening point of the next, to the last bit.
    np.testing.assert_array_equal(windows.xs[:, :-1, -1], windows.xs[:, 1:, 0])


@pytest.mark.parametrize("first, stride", ((0, 13), (0, 1), (1, 4), (1, 3), (2, 5)))
def test_regular_knots_are_windows_by_points(rng, first, stride):
    ts, xs, brackets = make(rng, (3,))
    path = abx.SampledPath(ts, xs, brackets=brackets)
    knots = ts[first::stride]
    windows = abx.windows_by_time(path, knots)
    assert windows.num_times == stride + 1
    last = first + (len(knots) - 1) * stride
    same = abx.windows_by_points(path.slice(first, last + 1), stride)
    # Knots that are traced are not known to be regular: these are gathered.
    cut = eqx.filter_jit(lambda p, k: abx.windows_by_time(p, k, max_points=stride + 1))
    for other in (same, cut(path, knots)):
        for name in ("ts", "xs", "brackets"):
            np.testing.assert_array_equal(getattr(windows, name), getattr(other, name))


def test_knots_within_rounding_are_snapped():
    ts, xs = np.linspace(0, 1, 11).astype(np.float32), np.zeros((11, 1), np.float32)
    path = abx.SampledPath(ts, xs)
    knots = np.arange(0, 1.1, 0.5)
    knots[-1] = np.nextafter(1.0, 2.0)
    assert abx.windows_by_time(path, knots).num_times == 6
    knots = np.array([0.0, 0.5, 1.0 + 1e-7])
    assert abx.windows_by_time(path, knots).num_times == 6
    with pytest.raises(ValueError, match="outside"):
        abx.windows_by_time(abx.SampledPath(ts.astype(float), xs), knots)


@pytest.mark.parametrize("irregular", (True, False))
def test_transformations(rng, irregular):
    ts, xs, brackets = make(rng, (2,), times=9)
    knots = np.array([ts[0], 0.5 * (ts[1] + ts[2]), ts[7]]) if irregular else ts[::4]

    def cut(xs, brackets=None):
        # Unchecked: a finite difference of brackets is not symmetric.
        path = abx.SampledPath(ts, xs, brackets=brackets, check=False)
        return abx.windows_by_time(path, knots, max_points=8 if irregular else 5)

    def loss(xs, brackets):
        windows = cut(xs, brackets)
        return jnp.sum(windows.xs**3) + jnp.sum(windows.brackets**2)

    check_grads(jax.jit(loss), (xs, brackets), order=2, atol=1e-4, rtol=1e-4)
    mapped = jax.jit(jax.vmap(lambda x: cut(x).xs))(xs)
    np.testing.assert_allclose(mapped, cut(xs).xs, rtol=1e-13)


@pytest.mark.parametrize("irregular", (True, False))
def test_known_times_of_a_control_inside_jit(rng, irregular):
    """`max_points` is not needed where the times are constants of the program."""
    ts, xs, brackets = make(rng)
    knots = irregular_knots(ts) if irregular else ts[1::4]
    alg = abx.Ito(2, 2)
    build = lambda x, b: abx.rough_path(ts, x, alg, knots, b)  # noqa: E731
    eager, compiled = build(xs, brackets), eqx.filter_jit(build)(xs, brackets)
    for name in ("knots", "log_signatures", "values", "brackets"):
        got, want = getattr(compiled, name), getattr(eager, name)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
    loss = lambda x: jnp.sum(build(x, brackets).log_signatures ** 2)  # noqa: E731
    check_grads(jax.jit(loss), (xs,), order=1, atol=1e-4, rtol=1e-4)


def test_traced_times_agree_with_the_plan(rng):
    ts, xs, brackets = make(rng, (3,))
    knots = irregular_knots(ts)
    path = abx.SampledPath(ts, xs, brackets=brackets)
    static = abx.windows_by_time(path, knots)
    size = static.num_times + 2
    cut = eqx.filter_jit(lambda p, k: abx.windows_by_time(p, k, max_points=size))
    traced = cut(path, knots)
    for name in ("xs", "brackets", "ts"):
        got, want = getattr(traced, name), getattr(static, name)
        axis = {"xs": -2, "brackets": -3, "ts": -1}[name]
        keep = range(want.shape[axis])
        np.testing.assert_allclose(np.take(got, keep, axis), want, rtol=1e-12)
        extra = np.diff(np.take(got, range(want.shape[axis] - 1, size - 1), axis))
        assert name == "brackets" or not np.any(extra[..., 1:])
    assert not np.any(np.asarray(traced.increments())[..., static.num_times - 1 :, :])
    # Times of their own, with a batch axis in front that the times lack.
    own = np.stack([ts, ts[0] + (ts - ts[0]) * 1.01, ts[0] + (ts - ts[0]) * 1.3])
    double = np.stack([xs, 2 * xs])
    batched = abx.windows_by_time(
        abx.SampledPath(own, double, brackets=brackets), knots
    )
    for b in range(3):
        one = abx.SampledPath(own[b], double[1, b], brackets=brackets[b])
        one = abx.windows_by_time(one, knots)
        n = one.num_times
        np.testing.assert_allclose(batched.xs[1, b, :, :n], one.xs, rtol=1e-11)
        np.testing.assert_allclose(batched.ts[b, :, :n], one.ts, rtol=1e-12)
        np.testing.assert_allclose(
            batched.brackets[1, b, :, : n - 1], one.brackets, atol=1e-12
        )


def test_gradient_in_times(rng):
    ts, xs, _ = make(rng, times=5)
    knots = 0.5 * (ts[:-1] + ts[1:])

    def loss(ts):
        path = abx.SampledPath(ts, xs, check=False)
        return jnp.sum(abx.windows_by_time(path, knots, max_points=3).xs ** 2)

    check_grads(jax.jit(loss), (ts,), order=1, atol=1e-4, rtol=1e-4)


def test_lengths_stop_the_path(rng):
    ts, xs, brackets = make(rng, (2,))
    lengths = np.array([14, 6])
    knots = irregular_knots(ts)
    path = abx.SampledPath(ts, xs, lengths=lengths, brackets=brackets)
    windows = abx.windows_by_time(path, knots)
    whole = abx.windows_by_time(abx.SampledPath(ts, xs, brackets=brackets), knots)
    np.testing.assert_allclose(windows.xs[0], whole.xs[0], rtol=1e-12)
    assert not np.any(windows.increments()[1, 4:])
    assert not np.any(windows.brackets[1, 4:])
    assert not np.any(windows.dt[1, 4:])
    total = np.sum(windows.increments()[1, 3], axis=0)
    start = 0.5 * (xs[1, 3] + xs[1, 4])
    np.testing.assert_allclose(total, xs[1, 5] - start, atol=1e-13)
    one = abx.SampledPath(ts, xs[1], lengths=6, brackets=brackets[1])
    one = abx.windows_by_time(one, knots)
    np.testing.assert_allclose(
        jnp.sum(one.increments(), -2), jnp.sum(windows.increments()[1], -2), atol=1e-13
    )


@pytest.mark.parametrize("size", (1, 4, 13, 20))
def test_by_points(rng, size):
    ts, xs, brackets = make(rng, (3,))
    path = abx.SampledPath(ts, xs, brackets=brackets)
    windows = abx.windows_by_points(path, size)
    count = -(-13 // size)
    assert windows.xs.shape == (3, count, size + 1, 2)
    assert windows.ts.shape == (count, size + 1)
    assert windows.brackets.shape == (3, count, size, 2, 2)
    for k in range(count):
        place = np.minimum(np.arange(k * size, (k + 1) * size + 1), 13)
        np.testing.assert_array_equal(windows.xs[:, k], xs[:, place])
        np.testing.assert_array_equal(windows.ts[k], ts[place])
    flat = np.asarray(windows.brackets).reshape(3, -1, 2, 2)
    np.testing.assert_array_equal(flat[:, :13], brackets)
    assert not np.any(flat[:, 13:])
    if size == 4:
        by_time = abx.windows_by_time(path, ts[[0, 4, 8, 12, 13]])
        np.testing.assert_array_equal(by_time.xs, windows.xs)
        mapped = jax.jit(
            jax.vmap(lambda x: abx.windows_by_points(abx.SampledPath(ts, x), 4).xs)
        )(xs)
        np.testing.assert_array_equal(mapped, windows.xs)


def test_by_points_of_one_point():
    windows = abx.windows_by_points(abx.SampledPath(np.zeros(1), np.ones((1, 2))), 3)
    assert windows.xs.shape == (1, 4, 2)
    assert not np.any(windows.increments())


TS = np.arange(4.0)
BAD_KNOTS = {
    "unsorted": (TS, [0.0, 2.0, 1.0], ValueError, "strictly increasing"),
    "no extent": (TS, [0.0, 1.0, 1.0], ValueError, "`knots` must be strictly"),
    "no window": (TS, [0.0], ValueError, "at least two"),
    "before": (TS, [-0.5, 1.0], ValueError, "outside"),
    "after": (TS, [0.5, 3.5], ValueError, "outside"),
    "nan": (TS, [0.5, np.nan], ValueError, "finite"),
    "rank": (TS, [[0.5, 1.0]], ValueError, "one-dimensional"),
    "integer": (TS, np.array([0, 1]), TypeError, "floating"),
}


@pytest.mark.parametrize("case", BAD_KNOTS)
def test_bad_knots(case):
    ts, knots, error, match = BAD_KNOTS[case]
    with pytest.raises(error, match=match):
        abx.windows_by_time(abx.SampledPath(ts, ts[:, None]), np.asarray(knots))


def test_errors(rng):
    ts, xs, brackets = make(rng)
    path = abx.SampledPath(ts, xs)
    knots = irregular_knots(ts)
    with pytest.raises(ValueError, match="max_points"):
        jax.jit(lambda t: abx.windows_by_time(abx.SampledPath(t, xs), knots).xs)(ts)
    with pytest.raises(ValueError, match="one point"):
        abx.windows_by_time(path.slice(0, 1), knots)
    with pytest.raises(ValueError, match="at least 1"):
        abx.windows_by_points(path, 0)
    with pytest.raises(TypeError):
        abx.windows_by_points(path, 2.0)
    run = eqx.filter_jit(lambda k, n: abx.windows_by_time(path, k, max_points=n).xs)
    for bad, points, match in (
        (knots, 3, "more points than"),
        (knots[::-1].copy(), 9, "strictly increasing"),
        (knots + 5.0, 9, "outside the sampled interval"),
    ):
        assert np.all(np.isnan(run(jnp.asarray(bad), points)))
        with pytest.raises(ValueError, match=match):
            abx.windows_by_time(path, bad, max_points=points)

"""Realised brackets are made of observed increments: gaps take nothing from them, and
channels of finite variation have none (MATH.md, section 6)."""

import functools as ft

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arborax as abx


close = ft.partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-12)
ITO, GL = abx.Ito(2, 2), abx.GrossmanLarson(2, 2)
TIMES = 24


def draw(kind, rng, times=TIMES):
    """Times, values with NaN in the gaps, and the mask; both ends are observed."""
    ts = np.cumsum(rng.uniform(0.5, 1.5, times))
    xs = np.cumsum(rng.normal(size=(times, 2)), axis=0)
    mask = rng.random((times,) if kind == "points" else (times, 2)) < 0.5
    mask[0] = mask[-1] = True
    seen = mask if mask.ndim == 2 else np.repeat(mask[:, None], 2, axis=1)
    return ts, np.where(seen, xs, np.nan), mask


def by_hand(xs):
    """Outer products of increments that arrive at each step, by a loop."""
    last, out = xs[0].copy(), []
    for x in xs[1:]:
        step = np.where(np.isnan(x), 0.0, x - last)
        last = np.where(np.isnan(x), last, x)
        out.append(np.outer(step, step))
    return np.array(out)


kinds = pytest.mark.parametrize("kind", ["points", "channels"])


@kinds
def test_half_of_a_brownian_path_has_the_whole_quadratic_variation(kind, getkey):
    """Gaps are geometric, so the variance of one path's bracket is 6 / steps; four
    standard errors of the mean over paths and channels. (Interpolation gives 1/2.)"""
    paths, steps = 64, 400
    ts = np.linspace(0.0, 1.0, steps + 1)
    xs = abx.brownian(ts, 2, (paths,), key=getkey())
    mask = np.random.default_rng(1).random(xs.shape) < 0.5
    mask = mask[..., 0] if kind == "points" else mask
    mask[:, 0] = mask[:, -1] = True
    path = abx.SampledPath(ts, xs, mask)
    total = np.asarray(path.realised_brackets().sum(axis=1))
    error = 4 * np.sqrt(6 / steps / (2 * paths))
    assert abs(np.mean(np.einsum("pii->pi", total)) - 1) < error
    level_two = abx.log_signature(path, ITO, "realised")[
        :, ITO.primitive_index[((0, 0),)]
    ]
    close(level_two, -total[:, 0, 0] / 2)


@kinds
def test_brackets_are_sums_over_observations(kind, rng):
    ts, xs, mask = draw(kind, rng)
    path = abx.SampledPath(ts, xs, mask)
    close(path.realised_brackets(), by_hand(xs))
    for channel in range(2):
        seen = xs[~np.isnan(xs[:, channel]), channel]
        total = path.realised_brackets()[:, channel, channel].sum()
        close(total, np.sum(np.diff(seen) ** 2))


@pytest.mark.parametrize("alg", [ITO, GL, abx.Ito(2, 3)], ids=str)
def test_masked_points_are_as_if_dropped(alg, rng):
    ts, xs, mask = draw("points", rng)
    masked = abx.SampledPath(ts, xs, mask)
    dropped = abx.SampledPath(ts[mask], xs[mask])
    # Interpolation puts points on the segment, and only the last carries the bracket;
    # so the two agree where brackets and increments commute, up to weight two.
    keep = np.flatnonzero(alg.weights <= 2)
    close(
        abx.signature(masked, alg, "realised")[keep],
        abx.signature(dropped, alg, "realised")[keep],
    )


def test_padding_is_exact(rng):
    ts, xs, mask = draw("channels", rng)
    long = abx.SampledPath(ts, xs, mask, lengths=15)
    short = abx.SampledPath(ts[:15], xs[:15], mask[:15])
    brackets = np.asarray(long.realised_brackets())
    np.testing.assert_array_equal(brackets[:14], short.realised_brackets())
    assert not np.any(brackets[14:])
    close(abx.signature(long, ITO, "realised"), abx.signature(short, ITO, "realised"))


def test_padding_of_increments_and_supplied_brackets_is_ignored(rng):
    """Whether brackets come with the path or beside it, and whatever the padding
    holds."""
    ts, xs = np.arange(8.0), rng.normal(size=(8, 2))
    half = rng.normal(size=(7, 2, 2))
    brackets, ticks = half @ np.swapaxes(half, 1, 2), rng.normal(size=(7, 2))
    brackets[5:], ticks[5:] = np.nan, 3.0
    long = abx.SampledPath(ts, xs, lengths=6, ticks=ticks)
    short = abx.SampledPath(ts[:6], xs[:6], ticks=ticks[:5])
    close(abx.signature(long, ITO, "realised"), abx.signature(short, ITO, "realised"))
    given, kept = brackets, brackets[:5]
    want = abx.signature(xs[:6], ITO, kept)
    close(abx.signature(long, ITO, given), want)
    close(jax.jit(lambda b: abx.signature(long, ITO, b))(given), want)
    options = dict(window=3, basepoint=True)
    want = abx.rough_path(None, short, ITO, brackets=kept, **options).log_signatures
    got = abx.rough_path(None, long, ITO, brackets=given, **options).log_signatures
    close(got[:2], want)
    assert not np.any(got[2:])
    with pytest.raises(ValueError, match="shape"):
        abx.rough_path(ts, xs, ITO, brackets=brackets[:6], basepoint=True)


def test_observed_increments_that_are_given_are_kept(rng):
    ts, xs, mask = draw("channels", rng)
    ticks = rng.normal(size=(TIMES - 1, 2))
    path = abx.SampledPath(ts, xs, mask, ticks=ticks)
    for method in ("linear", "forward"):
        np.testing.assert_array_equal(path.filled(method).ticks, ticks)


def test_gradients_pass_by_the_gaps(rng):
    ts, xs, mask = draw("channels", rng)

    def loss(xs, ts):
        path = abx.SampledPath(ts, xs, mask)
        return abx.signature(path, ITO, "realised").sum()

    dx, dt = jax.grad(loss, (0, 1))(jnp.asarray(xs), jnp.asarray(ts))
    assert np.all(np.isfinite(dx))
    assert np.all(np.isfinite(dt))
    assert not np.any(dx[~mask])
    assert np.all(dx[mask] != 0)


def test_hayashi_yoshida_is_the_sum_over_overlapping_intervals(rng):
    ts, xs, mask = draw("channels", rng)
    expected = np.zeros((TIMES - 1, 2, 2))
    for i in range(2):
        for j in range(2):
            a, b = np.flatnonzero(mask[:, i]), np.flatnonzero(mask[:, j])
            for s, t in zip(a, a[1:]):
                for u, v in zip(b, b[1:]):
                    if s < v and u < t:
                        product = (xs[t, i] - xs[s, i]) * (xs[v, j] - xs[u, j])
                        expected[max(t, v) - 1, i, j] += product
    path = abx.SampledPath(ts, xs, mask)
    brackets = path.realised_brackets("hayashi-yoshida")
    close(brackets, expected)
    assert abx.signature(path, ITO, brackets).shape == (ITO.size,)
    with pytest.raises(ValueError, match="before"):
        abx.add_time(path).realised_brackets("hayashi-yoshida")
    with pytest.raises((ValueError, TypeError), match="estimator"):
        path.realised_brackets("hy")


def test_hayashi_yoshida_sees_channels_that_are_never_observed_together(getkey):
    """Correlation 0.8, observed in turn: previous tick sees none of it."""
    ts = np.linspace(0.0, 1.0, 201)
    w = abx.brownian(ts, 2, (200,), key=getkey())
    xs = jnp.stack([w[..., 0], 0.8 * w[..., 0] + 0.6 * w[..., 1]], axis=-1)
    mask = np.zeros(xs.shape, bool)
    mask[:, ::2, 0] = mask[:, 1::2, 1] = True
    path = abx.SampledPath(ts, xs, mask)
    total = path.realised_brackets("hayashi-yoshida").sum(axis=1)[:, 0, 1]
    error = 4 * np.std(total) / np.sqrt(200)
    assert abs(np.mean(total) - 0.8) < error + 0.01
    assert not np.any(path.realised_brackets()[..., 0, 1])


def split_points(path):
    return abx.windows_by_points(path, 5)


def split_time(path):
    t = np.asarray(path.ts)
    return abx.windows_by_time(path, np.linspace(t[0], t[-1], 6))


def split_time_traced(path):
    t = np.asarray(path.ts)
    return abx.windows_by_time(path, np.linspace(t[0], t[-1], 6), max_points=20)


@kinds
@pytest.mark.parametrize("split", [split_points, split_time, split_time_traced])
def test_cuts_keep_the_sum(kind, split, rng):
    ts, xs, mask = draw(kind, rng)
    path = abx.SampledPath(ts, xs, mask, finite_variation=(0,))
    windows = split(path)
    assert windows.finite_variation == (0,)
    total = windows.realised_brackets().sum(axis=(0, 1))
    close(total, path.realised_brackets().sum(axis=0))
    assert not np.any(total[0])


def test_windows_of_a_batch_with_times_of_their_own(rng):
    draws = [draw("channels", rng) for _ in range(3)]
    ts, xs, mask = (np.stack(part) for part in zip(*draws))
    path = abx.SampledPath(ts, xs, mask)
    knots = np.linspace(ts[:, 0].max(), ts[:, -1].min(), 4)
    windows = abx.windows_by_time(path, knots)
    for k in range(3):
        single = abx.SampledPath(ts[k], xs[k], mask[k])
        own = abx.windows_by_time(single, knots).realised_brackets().sum(axis=1)
        close(windows.realised_brackets()[k].sum(axis=1), own)


@kinds
def test_controls_carry_the_observed_brackets(kind, rng):
    ts, xs, mask = draw(kind, rng)
    path = abx.SampledPath(ts, xs, mask)
    whole = abx.signature(path, GL, "realised")
    control = abx.rough_path(None, path, GL, window=5, brackets="realised")
    total = jnp.zeros(GL.size)
    for lam in control.log_signatures:
        total = abx.combine(total, GL.exp(GL.from_primitive(lam)), GL)
    close(total, whole)
    knots = np.linspace(ts[0], ts[-1], 6)
    control = abx.rough_path(None, path, GL, knots=knots, brackets="realised")
    close(control.brackets.sum((0, 1)), path.realised_brackets().sum(axis=0))
    middle = (knots[1] + knots[2]) / 2
    halves = [(knots[1], middle), (middle, knots[2])]
    total = jnp.zeros(GL.size)
    for s, t in halves:
        lam = control.log_signature(s, t, 1)
        total = abx.combine(total, GL.exp(GL.from_primitive(lam)), GL)
    close(total, GL.exp(GL.from_primitive(control.log_signatures[1])))


def test_streams_carry_the_observed_brackets(rng):
    ts, xs, mask = draw("channels", rng)
    path = abx.SampledPath(ts, xs, mask)
    whole = abx.signature(path, ITO, "realised")
    close(abx.expanding_signature(path, ITO, "realised")[-1], whole)
    total = jnp.zeros(ITO.size)
    for part in abx.windowed_signature(path, ITO, 7, "realised"):
        total = abx.combine(total, part, ITO)
    close(total, whole)
    first = abx.signature(path.slice(0, 9), ITO, "realised")
    rest = path.slice(8, TIMES)
    close(abx.extend_signature(first, rest, ITO, "realised"), whole)


AUGMENTATIONS = {
    "time": (abx.add_time, 0),
    "basepoint": (abx.add_basepoint, None),
    "lead-lag": (abx.lead_lag, None),
    "rectilinear": (abx.rectilinear, 0),
}


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_augmentations_keep_observations_and_marks(name, rng):
    """The realised bracket of the augmented path is the augmentation of that of the
    path, whatever was filled in between."""
    augment, clock = AUGMENTATIONS[name]
    ts, xs, mask = draw("channels", rng)
    plain = abx.SampledPath(ts, xs, mask)
    carried = abx.SampledPath(ts, xs, mask, brackets=plain.realised_brackets())
    out = augment(plain)
    close(out.realised_brackets(), augment(carried).brackets)
    marked = augment(abx.SampledPath(ts, xs, mask, finite_variation=[1]))
    assert (
        marked.finite_variation
        == {
            "time": (0, 2),
            "basepoint": (1,),
            "lead-lag": (1, 3),
            "rectilinear": (0, 2),
        }[name]
    )
    assert not np.any(marked.realised_brackets()[:, list(marked.finite_variation)])
    if clock is not None:
        assert not np.any(out.realised_brackets()[:, clock])
        assert out.finite_variation == (clock,)


def test_marks_survive_the_container_and_transformations(rng):
    ts, xs, mask = draw("channels", rng)
    path = abx.SampledPath(
        ts, np.stack([xs, xs]), finite_variation=[1], mask=None, check=False
    )
    assert path.broadcast().finite_variation == (1,)
    assert path.slice(2, 9).finite_variation == (1,)
    assert path.filled("forward").finite_variation == (1,)
    masked = abx.SampledPath(ts, xs, mask, 20, finite_variation=[1])
    assert masked.filled().finite_variation == (1,)
    out = jax.vmap(lambda p: abx.add_time(p))(path.broadcast())
    assert out.finite_variation == (0, 2)
    assert eqx.filter_jit(lambda p: p.slice(0, 4))(path).finite_variation == (1,)


@pytest.mark.parametrize("marks", [(2,), (-1,), (0.5,)])
def test_marks_of_channels_that_do_not_exist(marks):
    with pytest.raises((ValueError, TypeError), match="finite_variation"):
        abx.SampledPath(np.arange(3.0), np.zeros((3, 2)), finite_variation=marks)


@pytest.mark.parametrize("alg", [abx.Ito(3, 2), abx.GrossmanLarson(3, 2)], ids=str)
def test_time_has_no_realised_bracket(alg, rng):
    ts, xs = np.linspace(0.0, 1.0, 9), rng.normal(size=(9, 2))
    path = abx.add_time(abx.SampledPath(ts, xs))
    supplied = abx.add_time(
        abx.SampledPath(ts, xs, brackets=abx.SampledPath(ts, xs).realised_brackets())
    )
    for function in (abx.signature, abx.log_signature, abx.expanding_signature):
        close(function(path, alg, "realised"), function(supplied, alg))
    values = np.concatenate([ts[:, None], xs], axis=1)
    marked = abx.SampledPath(ts, values, finite_variation=(0,))
    close(abx.signature(marked, alg, "realised"), abx.signature(supplied, alg))
    # The array has no mark: there time is a channel like any other.
    unmarked = abx.signature(values, alg, "realised")
    assert np.max(np.abs(unmarked - abx.signature(marked, alg, "realised"))) > 1e-3
    control = abx.rough_path(None, path, alg, brackets="realised", window=4)
    assert not np.any(control.brackets[..., 0, :])


def test_supplied_brackets_of_a_marked_channel_are_refused(rng):
    ts, xs = np.arange(4.0), rng.normal(size=(4, 2))
    full = np.broadcast_to(np.eye(2), (3, 2, 2))
    with pytest.raises(ValueError, match="finite_variation"):
        abx.SampledPath(ts, xs, brackets=full, finite_variation=(0,))
    path = abx.SampledPath(ts, xs, finite_variation=(0,))
    with pytest.raises(ValueError, match="finite_variation"):
        abx.signature(path, ITO, full)
    f = jax.jit(lambda b: abx.signature(path, ITO, b))
    assert np.all(np.isnan(f(full)))
    assert np.all(np.isfinite(f(full * np.diag([0.0, 1.0]))))


def test_left_point_sums_carry_missing_values_forward(rng):
    ts, xs, mask = draw("channels", rng)
    path = abx.SampledPath(ts, xs, mask)
    held = np.array(xs)
    for k in range(1, TIMES):
        held[k] = np.where(np.isnan(held[k]), held[k - 1], held[k])
    expected = abx.signature(held, GL, "left-point")
    close(abx.signature(path, GL, "left-point"), expected)
    control = abx.rough_path(None, path, GL, ts[[0, -1]], "left-point")
    group = GL.exp(GL.from_primitive(control.log_signatures[0]))
    close(group, expected)
    with pytest.raises(ValueError, match="forward"):
        abx.signature(path.filled(), GL, "left-point")
    with pytest.raises(ValueError, match="forward"):
        abx.signature(abx.add_time(path), abx.GrossmanLarson(3, 2), "left-point")
    with pytest.raises(ValueError, match="forward"):
        abx.rectilinear(path.filled())
    fine = abx.add_time(path.filled("forward"))
    assert np.all(
        np.isfinite(abx.signature(fine, abx.GrossmanLarson(3, 2), "left-point"))
    )

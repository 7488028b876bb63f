"""Streaming, expanding and windowed signatures equal recomputation; masks are exact."""

import functools as ft

import equinox as eqx
import jax.numpy as jnp
import jitted
import numpy as np
import pytest

import arborax as abx


CASES = [
    (abx.Shuffle(2, 3), None),
    (abx.GrossmanLarson(2, 3), "realised"),
    (abx.GrossmanLarson(2, 2), "left-point"),
    (abx.MuntheKaasWright(2, 3), None),
    (abx.MuntheKaasWright(2, 2), "left-point"),
    (abx.Ito(2, 3), "supplied"),
]
all_cases = pytest.mark.parametrize("alg, mode", CASES, ids=str)
close = ft.partial(np.testing.assert_allclose, rtol=1e-11, atol=1e-11)


def draw(times, shape=()):
    rng = np.random.default_rng(times)
    xs = rng.normal(size=(*shape, times, 2)) / 2
    square = rng.normal(size=(*shape, times - 1, 2, 2)) / 2
    return jnp.asarray(xs), jnp.asarray(square + square.swapaxes(-1, -2))


def choose(mode, supplied):
    return supplied if mode == "supplied" else mode


@all_cases
def test_extending_equals_recomputation(alg, mode):
    xs, supplied = draw(7)
    total = jnp.zeros(alg.size)
    for start, stop in [(0, 2), (2, 4), (4, 6)]:
        piece = choose(mode, supplied[start:stop])
        total = jitted.extend_signature(total, xs[start : stop + 1], alg, piece)
    close(total, jitted.signature(xs, alg, choose(mode, supplied)))


@all_cases
def test_expanding_equals_recomputation(alg, mode):
    xs, supplied = draw(7, (2,))
    out = jitted.expanding_signature(xs, alg, choose(mode, supplied))
    assert out.shape == (2, 7, alg.size)
    assert not np.any(out[:, 0])
    for n in (4, 7):
        piece = choose(mode, supplied[:, : n - 1])
        close(out[:, n - 1], jitted.signature(xs[:, :n], alg, piece))


@all_cases
def test_windows_equal_recomputation(alg, mode):
    xs, supplied = draw(9, (2,))
    given = choose(mode, supplied)
    signatures = jitted.windowed_signature(xs, alg, 3, given)
    logs = jitted.windowed_log_signature(xs, alg, 3, given)
    assert signatures.shape == (2, 3, alg.size)
    assert logs.shape == (2, 3, alg.primitive_size)
    filled = jnp.concatenate([xs, xs[:, -1:]], axis=1)
    more = jnp.concatenate([supplied, jnp.zeros((2, 1, 2, 2))], axis=1)
    for k in range(3):
        piece = choose(mode, more[:, 3 * k : 3 * k + 3])
        expected, log = jitted.both(filled[:, 3 * k : 3 * k + 4], alg, piece)
        close(signatures[:, k], expected)
        close(logs[:, k], log)
    total = jitted.combine(
        jitted.combine(signatures[:, 0], signatures[:, 1], alg), signatures[:, 2], alg
    )
    close(total, jitted.signature(xs, alg, given))


@all_cases
def test_padding_is_exact(alg, mode):
    """A repeated last point adds a zero increment: nothing changes, to the last bit."""
    xs, supplied = draw(6)
    padded = jnp.concatenate([xs, jnp.broadcast_to(xs[-1:], (3, 2))])
    extra = jnp.concatenate([supplied, jnp.zeros((3, 2, 2))])
    close(
        jitted.signature(padded, alg, choose(mode, extra)),
        jitted.signature(xs, alg, choose(mode, supplied)),
    )
    still = jnp.broadcast_to(xs[:1], (5, 2))
    given = choose(mode, jnp.zeros((4, 2, 2)))
    assert not np.any(jitted.log_signature(still, alg, given))


@all_cases
def test_lengths_and_masks_of_a_sampled_path(alg, mode):
    """Garbage, NaN included, behind the length or the mask has no effect."""
    xs, supplied = draw(8)
    ts = jnp.arange(8.0)
    given = supplied if mode == "supplied" else None
    name = None if mode == "supplied" else mode
    garbage = xs.at[5:].set(jnp.nan)
    path = abx.SampledPath(ts, garbage, lengths=jnp.array(5), brackets=given)
    expected = jitted.log_signature(xs[:5], alg, choose(mode, supplied[:4]))
    close(jitted.log_signature(path, alg, brackets=name), expected)
    if mode is None:
        keep = np.array([0, 2, 3, 6, 7])
        mask = jnp.zeros(8, bool).at[keep].set(True)
        holes = jnp.where(mask[:, None], xs, jnp.nan)
        path = abx.SampledPath(ts, holes, mask=mask)
        close(jitted.log_signature(path, alg), jitted.log_signature(xs[keep], alg))


def make_control(ts, knots, alg, xs, brackets):
    """Times and knots are known at compile time, values and brackets are not."""
    return eqx.filter_jit(
        lambda x, a: abx.rough_path(ts, x, alg, knots=knots, brackets=a)
    )(xs, brackets)


@eqx.filter_jit
def between(control, s, t, window=None):
    return control.log_signature(s, t, window)


@all_cases
def test_control_holds_one_log_signature_per_window(alg, mode):
    xs, supplied = draw(9)
    ts = jnp.linspace(0.0, 2.0, 9)
    given = choose(mode, supplied)
    control = make_control(ts, ts[::4], alg, xs, given)
    assert control.calculus == ("stratonovich" if mode is None else "ito")
    assert control.alg == alg
    close(control.knots, ts[::4])
    close(control.log_signatures, jitted.windowed_log_signature(xs, alg, 4, given))
    first = jitted.log_signature(xs[:3], alg, choose(mode, supplied[:2]))
    close(between(control, ts[0], ts[2]), first)
    second = jitted.log_signature(xs[5:8], alg, choose(mode, supplied[5:7]))
    close(between(control, ts[5], ts[7]), second)
    close(between(control, ts[0], ts[4]), control.log_signatures[0])


@all_cases
def test_control_with_knots_between_samples_obeys_chen(alg, mode):
    """Cut segments are divided in proportion to time. (Left-point and realised sums
    see a cut as a further sample, so only the other modes are invariant.)"""
    xs, supplied = draw(9)
    ts = jnp.linspace(0.0, 2.0, 9)
    given = choose(mode, supplied)
    knots = jnp.array([0.0, 0.3, 1.1, 2.0])
    control = make_control(ts, knots, alg, xs, given)
    assert control.log_signatures.shape == (3, alg.primitive_size)
    if mode in (None, "supplied"):
        total = np.zeros(alg.size)
        for step in np.asarray(control.log_signatures):
            total = alg.product(total, alg.exp(alg.from_primitive(step)))
        close(total, jitted.signature(xs, alg, given))

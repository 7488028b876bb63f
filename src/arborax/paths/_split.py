"""Cutting a sampled path at knots that need not fall on samples.

The cut is a plan of indices and weights (static NumPy when the times are known before
tracing), applied to values by one gather and one linear interpolation.
"""

from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from .._inputs import as_real


class Cut(NamedTuple):
    """Index arrays of a cut, in NumPy or JAX.

    - `left`, `weight`: `(windows + 1,)`. The value at knot `k` is
        `(1 - weight) x[left] + weight x[left + 1]`.
    - `index`: `(windows, max_points)`. Points of each window, as indices into the
        samples followed by the knot values; the tail repeats the closing knot.
    - `segment`, `fraction`: `(windows, max_points - 1)`. Each step lies in one sampled
        segment and covers this fraction of its time; zero on padding.
    - `times`: `(windows, max_points)`. Times of the points.
    - `lengths`: `(windows,)`. Number of points of each window before padding.
    """

    left: Any
    weight: Any
    index: Any
    segment: Any
    fraction: Any
    times: Any
    lengths: Any


def snap(xp: ModuleType, ts: Any, knots: Any, tolerance: Any) -> Any:
    """Move each knot that is within `tolerance` of a sample onto it."""
    after = xp.clip(xp.searchsorted(ts, knots, side="left"), 0, ts.shape[0] - 1)
    before = xp.clip(after - 1, 0, ts.shape[0] - 1)
    for near in (ts[before], ts[after]):
        knots = xp.where(xp.abs(knots - near) <= tolerance, near, knots)
    return knots


def window_lengths(xp: ModuleType, ts: Any, knots: Any) -> tuple[Any, Any]:
    """First sample strictly after each opening knot, and the points of each window."""
    first = xp.searchsorted(ts, knots[:-1], side="right")
    stop = xp.searchsorted(ts, knots[1:], side="left")
    return first, xp.maximum(stop - first, 0) + 2


def cut(xp: ModuleType, ts: Any, knots: Any, max_points: int) -> Cut:
    """The cut of samples at times `ts` (at least two) by `knots`, in NumPy or JAX.
    Segments of length zero (padding) get weight and fraction zero."""
    num_times, windows = ts.shape[0], knots.shape[0] - 1
    left = xp.clip(xp.searchsorted(ts, knots, side="right") - 1, 0, num_times - 2)
    gap = ts[left + 1] - ts[left]
    safe = xp.where(gap > 0, gap, xp.ones_like(gap))
    weight = xp.where(gap > 0, (knots - ts[left]) / safe, xp.zeros_like(gap))

    first, lengths = window_lengths(xp, ts, knots)
    first, lengths_ = first[:, None], lengths[:, None]
    point = xp.arange(max_points, dtype=left.dtype)[None, :]
    opening = xp.arange(windows, dtype=left.dtype)[:, None] + num_times
    sample = xp.clip(first + point - 1, 0, num_times - 1)
    index = xp.where(point == 0, opening, sample)
    index = xp.where(point >= lengths_ - 1, opening + 1, index)
    times = xp.concatenate([ts, knots])[index]

    segment = xp.where(point == 0, left[:-1, None], sample)[:, :-1]
    segment = xp.clip(segment, 0, num_times - 2)
    span = ts[segment + 1] - ts[segment]
    safe = xp.where(span > 0, span, xp.ones_like(span))
    step = times[:, 1:] - times[:, :-1]
    fraction = xp.where(span > 0, step / safe, xp.zeros_like(step))
    return Cut(left, weight, index, segment, fraction, times, lengths)


def gather_values(plan: Cut, xs: jax.Array) -> jax.Array:
    """Values `(..., times, channels)` at the points `(..., windows, points, channels)`;
    exact for a knot on a sample."""
    weight = jnp.asarray(plan.weight, xs.dtype)
    weight = weight.reshape((1,) * (xs.ndim - 2) + (-1, 1))
    knots = (1 - weight) * xs[..., plan.left, :] + weight * xs[..., plan.left + 1, :]
    return jnp.concatenate([xs, knots], axis=-2)[..., plan.index, :]


def gather_brackets(plan: Cut, brackets: jax.Array) -> jax.Array:
    """Brackets `(..., times - 1, d, d)` over the steps of each window."""
    fraction = jnp.asarray(plan.fraction, brackets.dtype)[..., None, None]
    lead = (1,) * (brackets.ndim - 3)
    return fraction.reshape(lead + fraction.shape) * brackets[..., plan.segment, :, :]


def gather_ticks(plan: Cut, ticks: jax.Array) -> jax.Array:
    """Observed increments `(..., times - 1, d)` over the steps of each window.

    By the root of the fraction, so that their squares divide as brackets do.
    """
    fraction = jnp.asarray(plan.fraction, ticks.dtype)[..., None]
    positive = fraction > 0
    root = jnp.where(positive, jnp.sqrt(jnp.where(positive, fraction, 1)), 0)
    lead = (1,) * (ticks.ndim - 2)
    return root.reshape(lead + root.shape) * ticks[..., plan.segment, :]


def by_points(values: jax.Array, size: int, axis: int) -> jax.Array:
    """Overlap-by-one windows along `axis`; `size` divides the number of steps."""
    axis = axis % values.ndim
    windows = (values.shape[axis] - 1) // size
    head, tail = values.shape[:axis], values.shape[axis + 1 :]
    body = jax.lax.slice_in_dim(values, 0, windows * size, axis=axis)
    body = body.reshape(*head, windows, size, *tail)
    ends = jax.lax.slice_in_dim(values, size, None, stride=size, axis=axis)
    return jnp.concatenate([body, jnp.expand_dims(ends, axis + 1)], axis=axis + 1)


def _known(name: str, value: Any) -> tuple[np.ndarray, float]:
    """`value` as a float64 vector, with the rounding unit of the dtype it came in."""
    array = np.asarray(as_real(name, value))
    if array.ndim != 1:
        raise ValueError(f"`{name}` must be one-dimensional, got shape {array.shape}.")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"`{name}` must be finite, got NaN or infinity.")
    return array.astype(np.float64), float(jnp.finfo(array.dtype).eps)


def check_knots(knots: np.ndarray) -> None:
    """Refuse knots that do not make windows of positive extent."""
    _check_rising("knots", knots, np.diff(knots) <= 0)


def _check_rising(name: str, times: np.ndarray, bad: np.ndarray) -> None:
    if not bad.size:
        raise ValueError(
            f"`{name}` must hold at least two times (one window), got {times.size}."
        )
    if np.any(bad):
        k = int(np.argmax(bad))
        raise ValueError(
            f"`{name}` must be strictly increasing; times {k} and {k + 1} are "
            f"{times[k]} and {times[k + 1]}. Sort them and drop repetitions."
        )


def plan_cut(ts: ArrayLike, knots: ArrayLike, stopped: bool) -> Cut:
    """The cut of samples at times `ts` by `knots`, both known now, in float64.

    A path that is `stopped` is constant after its last sample: knots may lie beyond it,
    and the last time may be repeated (padding).
    """
    samples, eps_ts = _known("ts", ts)
    cuts, eps_knots = _known("knots", knots)
    bad = np.diff(samples) <= 0
    if stopped and bad.size:
        last = int(np.argmax(samples == samples[-1]))
        bad[last:] = samples[last + 1 :] != samples[-1]
    _check_rising("ts", samples, bad)
    scale = max(abs(samples[0]), abs(samples[-1]))
    tolerance = 8 * max(eps_ts, eps_knots) * scale
    check_knots(cuts)
    cuts = snap(np, samples, cuts, tolerance)
    if cuts[0] < samples[0] or (cuts[-1] > samples[-1] and not stopped):
        raise ValueError(
            f"`knots` run from {cuts[0]} to {cuts[-1]}, outside the sampled interval "
            f"[{samples[0]}, {samples[-1]}]. Clip the knots or extend the path."
        )
    if stopped:
        cuts = np.minimum(cuts, samples[-1])
    else:
        check_knots(cuts)
    max_points = int(np.max(window_lengths(np, samples, cuts)[1]))
    return cut(np, samples, cuts, max_points)

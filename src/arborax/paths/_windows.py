"""Windows of a sampled path: by number of points and by time."""

from types import ModuleType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from .._inputs import as_count, as_floating
from .._values import is_concrete, refuse
from ._sampled import derived, SampledPath
from ._split import (
    by_points,
    check_knots,
    cut,
    gather_brackets,
    gather_ticks,
    gather_values,
    plan_cut,
    snap,
    window_lengths,
)


def windows_by_points(path: SampledPath, size: int) -> SampledPath:
    """Cut a path into windows of `size` steps.

    Window `k` holds the points `k size, ..., (k + 1) size`: neighbours share an end
    point. The path is filled first, and padded by repetition of its last point to a
    whole number of windows, at least one. Cost: one copy, no gather.

    **Arguments:**

    - `path`: a [`arborax.SampledPath`][].
    - `size`: steps per window, a Python integer.

    **Returns:**

    A [`arborax.SampledPath`][] with one more batch axis at the end: values
    `(..., windows, size + 1, channels)`, times `(..., windows, size + 1)`, brackets
    `(..., windows, size, channels, channels)`, without mask or lengths.
    """
    size = as_count("size", size)
    path = path.filled()
    steps = path.num_times - 1
    windows = max(-(-steps // size), 1)
    pad = windows * size - steps

    def padded(values, core, mode):
        after = [(0, pad)] + [(0, 0)] * (core - 1)
        return jnp.pad(values, [(0, 0)] * (values.ndim - core) + after, mode=mode)

    def cut_steps(values, core):
        if values is None:
            return None
        head, tail = values.shape[:-core], values.shape[1 - core :]
        return padded(values, core, "constant").reshape(*head, windows, size, *tail)

    ts = by_points(padded(path.ts, 1, "edge"), size, -1)
    xs = by_points(padded(path.xs, 2, "edge"), size, -2)

    return derived(path, ts, xs, cut_steps(path.brackets, 3), cut_steps(path.ticks, 2))


def windows_by_time(
    path: SampledPath, knots: ArrayLike, *, max_points: int | None = None
) -> SampledPath:
    """Cut a path into the windows between `knots`, which need not fall on samples.

    Values at knots are interpolated linearly, the bracket of a cut segment is divided
    in proportion to time, and short windows are padded by their last point. A path with
    `lengths` is stopped at its last valid point, and knots may lie beyond it.

    When all times are known before tracing, indices are too. Otherwise they are
    computed at run time; under `jit` the size of the result must then be given by
    `max_points`.

    **Arguments:**

    - `path`: a [`arborax.SampledPath`][] with at least two points. It is filled first.
    - `knots`: `(windows + 1,)`, strictly increasing, inside the sampled interval.
        Knots within 8 rounding units of a sample are moved onto it.
    - `max_points`: points per window, padding included; at least the number of samples
        strictly inside a window plus two, or the call fails. `None`: as many as needed.

    **Returns:**

    A [`arborax.SampledPath`][] with one more batch axis at the end: values
    `(..., windows, max_points, channels)`, times, and brackets
    `(..., windows, max_points - 1, channels, channels)`, without mask or lengths.
    """
    if max_points is not None:
        max_points = as_count("max_points", max_points, 2)
    if path.num_times < 2:
        raise ValueError(
            "a path of one point has no extent in time and cannot be cut into windows; "
            "it needs at least two points."
        )
    stopped = path.lengths is not None
    path = path.filled()
    if max_points is None and path.ts.ndim == 1 and is_concrete(path.ts, knots):
        return windows_at_known_times(path, path.ts, knots, stopped)
    cuts = as_floating("knots", knots)
    if cuts.ndim != 1 or cuts.shape[0] < 2:
        raise ValueError(
            f"`knots` must have shape (windows + 1,) with at least one window, got "
            f"{cuts.shape}."
        )
    if is_concrete(cuts):
        check_knots(np.asarray(cuts))
    if max_points is None:
        max_points = _fullest(path.ts, cuts)
    windows, faults = _windows_traced(path, cuts, max_points, stopped)
    for bad, message in zip(
        faults,
        (
            "`knots` must be strictly increasing.",
            "`knots` reach outside the sampled interval, or two of them lie within "
            "rounding of one sample. Clip the knots or extend the path.",
            f"a window holds more points than `max_points={max_points}`: it takes the "
            "samples strictly inside the fullest window plus two.",
        ),
    ):
        windows = refuse(windows, bad, message)
    return windows


def windows_at_known_times(
    path: SampledPath, ts: ArrayLike, knots: ArrayLike, stopped: bool = False
) -> SampledPath:
    """As `windows_by_time`, for a filled path of times that are known now: `ts`, since
    inside `jit` even constant times of a path are traced."""
    plan = plan_cut(ts, knots, stopped)
    places = plan.left + (plan.weight == 1)
    strides = np.diff(places)
    regular = strides[0] > 0 and np.all(strides == strides[0])
    if regular and np.all(plan.weight % 1 == 0):  # nothing to interpolate or gather
        first, last = int(places[0]), int(places[-1])
        return windows_by_points(path.slice(first, last + 1), int(strides[0]))
    brackets = path.brackets
    return derived(
        path,
        jnp.asarray(plan.times, path.ts.dtype),
        gather_values(plan, path.xs),
        None if brackets is None else gather_brackets(plan, brackets),
        gather_ticks(plan, path.observed_increments()),
    )


def _place(xp: ModuleType, ts: Any, knots: Any) -> tuple[Any, Any]:
    """Knots moved onto close samples, before and after stopping at the last time."""
    eps = max(float(jnp.finfo(a.dtype).eps) for a in (knots, ts))
    scale = xp.maximum(xp.abs(ts[0]), xp.abs(ts[-1]))
    snapped = snap(xp, ts, knots.astype(ts.dtype), 8 * eps * scale)
    return snapped, xp.minimum(snapped, ts[-1])


def _fullest(ts: Array, knots: Array) -> int:
    """Points of the fullest window over a batch of times that are known now."""
    if not is_concrete(ts, knots):
        raise ValueError(
            "times or knots are traced, so the number of points per window is unknown: "
            "pass `max_points` (samples strictly inside the fullest window, plus two)."
        )
    rows, cuts = np.asarray(ts).reshape(-1, ts.shape[-1]), np.asarray(knots)
    lengths = [window_lengths(np, row, _place(np, row, cuts)[1])[1] for row in rows]
    return int(np.max(lengths))


@eqx.filter_jit
def _windows_traced(
    path: SampledPath, knots: Array, max_points: int, stopped: bool
) -> tuple[SampledPath, tuple[Array, ...]]:
    """The cut with indices computed at run time, and what is wrong with the knots."""
    times = path.ts.reshape(-1, path.num_times)
    snapped, inner = jax.vmap(lambda t: _place(jnp, t, knots))(times)
    outside = snapped[:, 0] < times[:, 0]
    if not stopped:
        touching = jnp.any(jnp.diff(snapped) <= 0, axis=-1)
        outside = outside | touching | (snapped[:, -1] > times[:, -1])
    plans = jax.vmap(lambda t, k: cut(jnp, t, k, max_points))(times, inner)
    faults = (
        ~jnp.all(jnp.diff(knots) > 0),
        jnp.any(outside),
        jnp.any(plans.lengths > max_points),
    )
    # Flatten the batch axes that times have, keep others leading.
    own = path.ts.shape[:-1]
    spare = path.batch_shape[: len(path.batch_shape) - len(own)]
    mapped = len(spare)

    def gathered(gather, values, core) -> Any:
        if values is None:
            return None
        values = jnp.broadcast_to(values, (*path.batch_shape, *values.shape[-core:]))
        values = values.reshape(*spare, len(times), *values.shape[-core:])
        values = jax.vmap(gather, in_axes=(0, mapped), out_axes=mapped)(plans, values)
        return values.reshape(*path.batch_shape, *values.shape[mapped + 1 :])

    xs = gathered(gather_values, path.xs, 2)
    brackets = gathered(gather_brackets, path.brackets, 3)
    ticks = gathered(gather_ticks, path.observed_increments(), 2)
    ts = plans.times.reshape(*own, *plans.times.shape[1:])
    return derived(path, ts, xs, brackets, ticks), faults

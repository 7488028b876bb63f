"""Augmentations: time, basepoint, lead-lag, rectilinear. Each carries the brackets."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from .._inputs import as_floating, is_suffix
from ._sampled import derived, SampledPath


def clock(ts: Float[Array, "..."], dtype: Any) -> Float[Array, "..."]:
    """Times as a channel; from zero if their digits do not fit into `dtype`."""
    narrow = jnp.finfo(dtype).eps > jnp.finfo(ts.dtype).eps
    return (ts - ts[..., :1] if narrow else ts).astype(dtype)


def _time_first(times: Float[Array, "..."], xs: Float[Array, "..."]) -> Array:
    times = jnp.broadcast_to(times, xs.shape[:-1])
    return jnp.concatenate([times[..., None], xs], axis=-1)


def _pad(values: Array | None, *widths: tuple[int, int]) -> Array | None:
    """Zeros before and after along the last axes; `None` stays `None`."""
    if values is None:
        return None
    return jnp.pad(values, [(0, 0)] * (values.ndim - len(widths)) + list(widths))


def _time_marks(path: SampledPath) -> tuple[int, ...]:
    return (0, *(channel + 1 for channel in path.finite_variation))


def _interleave(even: Any, odd: Any, axis: int) -> Any:
    """`even[0], odd[0], even[1], ...`; equally many of each, or one more `even`."""
    if even is None:
        return None
    axis = axis % even.ndim
    size, head, tail = odd.shape[axis], even.shape[:axis], even.shape[axis + 1 :]
    kept = jax.lax.slice_in_dim(even, 0, size, axis=axis)
    last = jax.lax.slice_in_dim(even, size, None, axis=axis)
    pairs = jnp.stack([kept, odd], axis=axis + 1).reshape(*head, 2 * size, *tail)
    return jnp.concatenate([pairs, last], axis=axis)


def _with_midpoints(ts: Float[Array, "..."]) -> Float[Array, "..."]:
    return _interleave(ts, ts[..., :-1] + jnp.diff(ts, axis=-1) / 2, -1)


def add_time(path: SampledPath) -> SampledPath:
    """Add time as the first channel.

    The path is filled first, so time stands still on padding. Times of a wider dtype
    than the values (epoch seconds in float64, values in float32) are counted from the
    first one, since their digits would be lost in the channel. Time has finite
    variation: its brackets are zero, realised ones included.

    **Returns:**

    A [`arborax.SampledPath`][] with one more channel, without mask or lengths.
    """
    path = path.filled()
    brackets, ticks = _pad(path.brackets, (1, 0), (1, 0)), _pad(path.ticks, (1, 0))
    xs = _time_first(clock(path.ts, path.xs.dtype), path.xs)
    return derived(path, path.ts, xs, brackets, ticks, _time_marks(path))


def add_basepoint(path: SampledPath, value: ArrayLike | None = None) -> SampledPath:
    """Prepend one point, so that the signature sees where the path starts.

    The new point stands one first time step before the path (one unit of time if there
    is none). The jump to the first sample is no part of the process: its bracket is
    zero, the realised one included. After [`arborax.add_time`][] the basepoint is zero
    in the time channel too.

    **Arguments:**

    - `path`: a [`arborax.SampledPath`][].
    - `value`: the point, `(channels,)` or with batch axes. `None`: zero.
    """
    path = path.filled()
    ts, xs = path.ts, path.xs
    shape = (*path.batch_shape, path.dim)
    base = as_floating("value", jnp.zeros(path.dim) if value is None else value)
    if base.ndim < 1 or not is_suffix(base.shape, shape):
        raise ValueError(
            f"`value` must have shape ({path.dim},) or {shape} to be a basepoint "
            f"of a path of shape {xs.shape}, got {base.shape}."
        )
    base = jnp.broadcast_to(base.astype(xs.dtype), shape)
    step = ts[..., min(1, path.num_times - 1), None] - ts[..., :1]
    step = jnp.where(step > 0, step, 1)
    brackets = _pad(path.brackets, (1, 0), (0, 0), (0, 0))
    ticks = _pad(path.observed_increments(), (1, 0), (0, 0))
    ts = jnp.concatenate([ts[..., :1] - step, ts], axis=-1)
    xs = jnp.concatenate([base[..., None, :], xs], axis=-2)
    return derived(path, ts, xs, brackets, ticks)


def lead_lag(path: SampledPath) -> SampledPath:
    """The lead-lag path: first the lead channels, then the lag channels.

    From `(x_k, x_k)` the lead moves first, to `(x_{k+1}, x_k)` at the middle of the
    step, and the lag follows. The Lévy area between lead and lag is then half of the
    realised quadratic variation. Lead and lag never move together: a step's bracket
    goes to the lead-lead block of the first half and to the lag-lag block of the
    second, and cross blocks are zero.

    **Returns:**

    A [`arborax.SampledPath`][] with `2 n - 1` points and `2 d` channels for `n` points
    and `d` channels, without mask or lengths.
    """
    path = path.filled()
    xs, d = path.xs, path.dim
    both = jnp.concatenate([xs, xs], axis=-1)
    moved = jnp.concatenate([xs[..., 1:, :], xs[..., :-1, :]], axis=-1)
    brackets, ticks, marks = path.brackets, path.ticks, path.finite_variation
    lead, lag = _pad(brackets, (0, d), (0, d)), _pad(brackets, (d, 0), (d, 0))
    return derived(
        path,
        _with_midpoints(path.ts),
        _interleave(both, moved, -2),
        _interleave(lead, lag, -3),
        _interleave(_pad(ticks, (0, d)), _pad(ticks, (d, 0)), -2),
        (*marks, *(channel + d for channel in marks)),
    )


def rectilinear(path: SampledPath) -> SampledPath:
    """The rectilinear path: time moves with the values held, then the values move.

    Time is added as the first channel. From `(t_k, x_k)` time advances first, to
    `(t_{k+1}, x_k)`, then the values jump to `x_{k+1}`; nothing before `t_{k+1}`
    depends on `x_{k+1}`. Missing values are carried forward, which uses no future value
    either (Morrill et al., "Neural controlled differential equations for online
    prediction tasks", 2021). The corners have `ts` at mid-step. A step's bracket
    belongs to the part in which the values move.

    **Returns:**

    A [`arborax.SampledPath`][] with `2 n - 1` points for `n`, and one more channel,
    without mask or lengths.
    """
    path = path.filled("forward")
    ts, xs = path.ts, path.xs
    times = clock(ts, xs.dtype)
    corners = _time_first(times[..., 1:], xs[..., :-1, :])
    brackets, ticks = _pad(path.brackets, (1, 0), (1, 0)), _pad(path.ticks, (1, 0))
    no_brackets, no_ticks = jax.tree.map(jnp.zeros_like, (brackets, ticks))
    return derived(
        path,
        _with_midpoints(ts),
        _interleave(_time_first(times, xs), corners, -2),
        _interleave(no_brackets, brackets, -3),
        _interleave(no_ticks, ticks, -2),
        _time_marks(path),
    )

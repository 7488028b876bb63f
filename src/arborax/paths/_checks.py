"""Checks of a sampled path: shapes, marks and values."""

import functools as ft
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._inputs import as_count, as_floating, is_suffix
from .._values import explain_times, is_concrete, refuse


_NOT_FINITE = (
    "`xs` holds NaN or infinity at an observed place. Pass `mask` (True where "
    "observed), e.g. `mask=~jnp.isnan(xs)`, or clean the data."
)
_NOT_INCREASING = (
    "`ts` must be finite and strictly increasing over the valid points. Sort the "
    "samples by time and drop repeated times."
)
_NOT_SYMMETRIC = "`brackets` must be finite symmetric matrices over the valid steps."
_FINITE_VARIATION = "`brackets` must be zero on the channels of `finite_variation`."


def as_steps(name: str, values: Any, xs: Array, *core: int, shared: bool) -> Any:
    """Numbers `(..., times - 1, *core)` for each step; batch axes may be shared."""
    if values is None:
        return None
    values = as_floating(name, values)
    expected = (*xs.shape[:-2], xs.shape[-2] - 1, *core)
    fits = values.ndim > len(core) and is_suffix(values.shape, expected)
    if not fits or not (shared or values.shape == expected):
        raise ValueError(
            f"`{name}` must have shape {expected}, one entry for each step of `xs` of "
            f"shape {xs.shape}, got {values.shape}."
        )
    if values.dtype != xs.dtype:
        raise TypeError(
            f"`{name}` must have the dtype {xs.dtype} of `xs`, got {values.dtype}. "
            "Cast one of them."
        )
    return values


def as_channels(channels: Iterable[int], dim: int) -> tuple[int, ...]:
    """Distinct channel numbers in increasing order."""
    if isinstance(channels, int):
        channels = (channels,)
    numbers = sorted({as_count("finite_variation", c, 0) for c in channels})
    if numbers and numbers[-1] >= dim:
        raise ValueError(
            f"`finite_variation` holds channel {numbers[-1]}, but the path has {dim} "
            f"channels, numbered from 0 to {dim - 1}."
        )
    return tuple(numbers)


def check_sampled(given: dict[str, Any], path: Any) -> Array:
    """`path.xs` if what was given is sound: an error if it is known now, otherwise NaN.

    Faults are looked for in what was given, since inside `jit` even constants are
    traced, and per path, so that one bad path of a batch leaves the others alone.
    """
    xs, times = path.xs, path.num_times
    outside = lambda xp, path, n: (n < 1) | (n > times)  # noqa: E731
    for find, names, message in (
        (outside, ("lengths",), f"`lengths` must lie between 1 and {times}."),
        (_bad_values, ("xs", "mask", "lengths"), _NOT_FINITE),
        (_bad_times, ("ts", "lengths"), _NOT_INCREASING),
        (_bad_brackets, ("brackets", "lengths"), _NOT_SYMMETRIC),
        (_moving_brackets, ("brackets", "lengths"), _FINITE_VARIATION),
    ):
        parts = [given[name] for name in names]
        if parts[0] is None:
            continue
        concrete = is_concrete(*parts)
        xp: Any = np if concrete else jnp
        arrays = [None if part is None else xp.asarray(part) for part in parts]
        bad = find(xp, path, *arrays)
        if concrete:
            if np.any(bad):
                if find is _bad_times:
                    message = explain_times(given["ts"], message)
                raise ValueError(message)
            continue
        check = ft.partial(refuse, message=message)
        for _ in path.batch_shape:
            check = jax.vmap(check)
        xs = check(xs, jnp.broadcast_to(bad, path.batch_shape))
    return xs


def valid_points(xp: Any, path: Any, lengths: Any) -> Any:
    """Which points are valid, with the batch axes that `lengths` has."""
    if lengths is None:
        return xp.ones(path.num_times, bool)
    place = xp.arange(path.num_times, dtype=lengths.dtype)
    return place.reshape((1,) * lengths.ndim + (-1,)) < lengths[..., None]


def _bad_values(xp: Any, path: Any, xs: Any, mask: Any, lengths: Any) -> Any:
    finite = xp.isfinite(xs.astype(path.xs.dtype))
    if mask is not None:
        mask = mask if mask.ndim == xs.ndim else mask[..., None]
        finite = finite | ~xp.broadcast_to(mask, xs.shape)
    if lengths is not None:
        inside = valid_points(xp, path, lengths)[..., None]
        finite = finite | ~xp.broadcast_to(inside, xs.shape)
    return ~xp.all(finite, axis=(-1, -2))


def _bad_times(xp: Any, path: Any, ts: Any, lengths: Any) -> Any:
    ts = ts.astype(path.ts.dtype)
    with np.errstate(invalid="ignore"):
        rising = xp.isfinite(ts[..., 1:]) & (ts[..., 1:] > ts[..., :-1])
    return _over_valid_steps(xp, path, ~rising, lengths) | ~xp.isfinite(ts[..., 0])


def _bad_brackets(xp: Any, path: Any, brackets: Any, lengths: Any) -> Any:
    tolerance = float(jnp.finfo(brackets.dtype).eps) ** 0.75
    with np.errstate(invalid="ignore"):
        gap = xp.abs(brackets - xp.swapaxes(brackets, -1, -2))
        biggest = xp.max(xp.abs(brackets), axis=(-1, -2), keepdims=True)
        fine = (gap <= tolerance * biggest) & xp.isfinite(biggest)
        fine = xp.all(fine, axis=(-1, -2))
    return _over_valid_steps(xp, path, ~fine, lengths)


def _moving_brackets(xp: Any, path: Any, brackets: Any, lengths: Any) -> Any:
    marked = brackets[..., list(path.finite_variation), :]
    return _over_valid_steps(xp, path, xp.any(marked != 0, axis=(-1, -2)), lengths)


def _over_valid_steps(xp: Any, path: Any, bad: Any, lengths: Any) -> Any:
    inside = valid_points(xp, path, lengths)[..., 1:]
    shape = np.broadcast_shapes(bad.shape, inside.shape)
    bad = xp.broadcast_to(bad, shape) & xp.broadcast_to(inside, shape)
    return xp.any(bad, axis=-1)

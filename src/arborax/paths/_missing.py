"""Filling of missing values, channel by channel."""

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from .._inputs import as_array, as_choice, as_floating, is_suffix


def observed_mask(
    xs: Float[Array, "*batch times channels"], mask: ArrayLike | None
) -> Bool[Array, "*batch times channels"]:
    """The mask of observed values in the shape of `xs`; `None` reads NaN as missing."""
    if mask is None:
        return ~jnp.isnan(xs)
    mask = as_array("mask", mask)
    if mask.dtype != jnp.bool_:
        raise TypeError(
            f"`mask` must be boolean (True where observed), got {mask.dtype}."
        )
    if mask.shape == xs.shape[:-1]:
        mask = mask[..., None]
    elif mask.shape != xs.shape:
        raise ValueError(
            f"`mask` must have shape {xs.shape[:-1]} (per time) or {xs.shape} (per "
            f"time and channel) to match `xs`, got {mask.shape}."
        )
    return jnp.broadcast_to(mask, xs.shape)


def neighbours(
    mask: Bool[Array, "*s"],
) -> tuple[Int[Array, "*s"], Int[Array, "*s"]]:
    """Last observation at or before each time, or -1; first at or after it, or T."""
    axis, times = mask.ndim - 2, mask.shape[-2]
    place = jax.lax.broadcasted_iota(jnp.int32, mask.shape, axis)
    before = jax.lax.cummax(jnp.where(mask, place, -1), axis=axis)
    after = jax.lax.cummin(jnp.where(mask, place, times), axis=axis, reverse=True)
    return before, after


def take(
    values: Float[Array, "*batch times channels"],
    index: Int[Array, "*batch points channels"],
) -> Float[Array, "*batch points channels"]:
    """Rows of each channel; indices are clipped to the array."""
    index = jnp.clip(index, 0, values.shape[-2] - 1)
    return jnp.take_along_axis(values, index, axis=-2)


def divide(x: Float[Array, "*s"], y: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """`x / y`, and zero (with zero derivative) where `y` is not positive."""
    positive = y > 0
    return jnp.where(positive, x / jnp.where(positive, y, 1), 0)


def check_times(ts: ArrayLike, xs: Array) -> Float[Array, "..."]:
    """`ts` as an array `(times,)` or with the last batch axes of `xs`."""
    ts = as_floating("ts", ts)
    if ts.ndim < 1 or not is_suffix(ts.shape, xs.shape[:-1]):
        if ts.shape[-1:] == xs.shape[-1:]:
            raise ValueError(
                f"`xs` of shape {xs.shape} has its {ts.shape[-1]} times last; expected "
                "(..., times, channels). Channels come last: use "
                "jnp.swapaxes(xs, -1, -2)."
            )
        raise ValueError(
            f"`ts` must have shape ({xs.shape[-2]},) or {xs.shape[:-1]} to match `xs` "
            f"of shape {xs.shape}, got {ts.shape}."
        )
    return ts


def fill(
    ts: Float[Array, "..."],
    xs: Float[Array, "*batch times channels"],
    seen: Bool[Array, "*batch times channels"],
    method: Literal["linear", "forward"],
) -> Float[Array, "*batch times channels"]:
    """Values with the gaps filled; see `fill_missing`."""
    as_choice("method", method, ("linear", "forward"))
    xs = jnp.where(seen, xs, 0)
    before, after = neighbours(seen)
    x0, x1 = take(xs, before), take(xs, after)
    has0, has1 = before >= 0, after < xs.shape[-2]
    if method == "linear":
        times = jnp.broadcast_to(ts[..., None], xs.shape)
        t0, t1 = take(times, before), take(times, after)
        weight = divide(times - t0, t1 - t0).astype(xs.dtype)
        between = x0 + weight * (x1 - x0)
        x0 = jnp.where(has1, between, x0)
    return jnp.where(has0, x0, jnp.where(has1, x1, 0))

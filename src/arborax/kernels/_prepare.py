"""From what the user passes to points and bracket increments on a common footing."""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from ..paths import add_basepoint, add_time, lead_lag, SampledPath


Kind = Literal["geometric", "ito", "branched", "planar"]
Brackets = Literal["left-point", "realised", "canonical"] | Float[Array, "..."] | None
KINDS = ("geometric", "ito", "branched", "planar")


def check_kind(kind: str, depth: int | None) -> None:
    if kind not in KINDS:
        raise ValueError(f"Unknown kind {kind!r}: expected one of {KINDS}.")
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int)):
        raise TypeError(f"`depth` must be an integer or None, got {depth!r}.")
    if depth is not None and depth < 1:
        raise ValueError(f"`depth` must be at least 1 or None, got {depth}.")


def sampled(
    path: SampledPath | ArrayLike,
    lengths: Int[Array, "..."] | None = None,
    mask: Bool[Array, "..."] | None = None,
) -> SampledPath:
    """A filled [`arborax.SampledPath`][]; an array gets the times `0..1`."""
    if isinstance(path, SampledPath):
        if lengths is not None or mask is not None:
            raise ValueError(
                "A SampledPath brings its own `lengths` and `mask`: do not pass them "
                "again."
            )
        return path.filled()
    xs = jnp.asarray(path)
    if xs.ndim < 2:
        raise ValueError(
            f"A path must have shape (..., times, channels), got {xs.shape}. Add a "
            "channel axis with `x[..., None]`."
        )
    if not jnp.issubdtype(xs.dtype, jnp.floating):
        raise TypeError(f"A path must be real floating, got {xs.dtype}.")
    ts = jnp.linspace(0, 1, xs.shape[-2], dtype=xs.dtype)
    return SampledPath(ts, xs, mask, lengths, check=False).filled()


def _increments_of_brackets(
    kind: Kind, path: SampledPath, brackets: Brackets
) -> Array | None:
    if kind == "geometric":
        if brackets is not None:
            raise ValueError(
                "The geometric kernel knows no brackets. Use kind='ito', 'branched' or "
                "'planar', or leave `brackets` out."
            )
        return None
    if brackets is None:
        return path.brackets
    if isinstance(brackets, str):
        dx = jnp.diff(path.xs, axis=-2)
        if brackets == "left-point":
            return None
        if brackets == "realised":
            return dx[..., :, None] * dx[..., None, :]
        if brackets == "canonical":
            return jnp.zeros((*dx.shape, dx.shape[-1]), dx.dtype)
        raise ValueError(
            f"Unknown brackets {brackets!r}: expected None, 'left-point', 'realised', "
            "'canonical' (zero) or an array (..., steps, d, d)."
        )
    return jnp.asarray(brackets)


def prepare(
    path: SampledPath | ArrayLike,
    brackets: Brackets,
    *,
    kind: Kind,
    time: bool = False,
    basepoint: bool = False,
    leads: bool = False,
    lengths: Int[Array, "..."] | None = None,
    mask: Bool[Array, "..."] | None = None,
) -> tuple[Float[Array, "... times d"], Float[Array, "... steps d d"] | None]:
    """Fill, augment (lead-lag, then time, then basepoint) and carry the brackets.

    **Returns:**

    Points `(..., times, d)` and increments of the brackets `(..., times - 1, d, d)`,
    or `None` for left-point sums.
    """
    path = sampled(path, lengths, mask)
    increments = _increments_of_brackets(kind, path, brackets)
    if increments is not None and lengths is not None:
        moves = jnp.any(jnp.diff(path.xs, axis=-2) != 0, axis=-1)
        place = jnp.arange(moves.shape[-1], dtype=lengths.dtype)
        inside = place.reshape((1,) * lengths.ndim + (-1,)) < lengths[..., None] - 1
        inside = jnp.broadcast_to(inside, moves.shape)[..., None, None]
        increments = jnp.where(inside, increments, 0)
    path = SampledPath(path.ts, path.xs, brackets=increments, check=False)
    if leads:
        path = lead_lag(path)
    if time:
        path = add_time(path)
    if basepoint:
        path = add_basepoint(path)
    increments = path.brackets
    if increments is not None:
        shape = (*path.batch_shape, path.num_times - 1, path.dim, path.dim)
        increments = jnp.broadcast_to(increments, shape)
    return path.xs, increments

"""Checked and augmented points and bracket increments, from what the user passes."""

from typing import Any, Literal, TypedDict

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from .._inputs import as_floating, as_real, as_values, is_suffix
from .._values import is_concrete, refuse
from ..paths import add_basepoint, add_time, lead_lag, SampledPath


Kind = Literal["geometric", "ito", "branched", "planar"]
Brackets = Literal["left-point", "realised", "canonical"] | Float[Array, "..."] | None
KINDS = ("geometric", "ito", "branched", "planar")


class Sides(TypedDict, total=False):
    """Options of the two sides of a kernel; see [`arborax.signature_kernel`][]."""

    brackets_x: Brackets
    brackets_y: Brackets
    lengths_x: Int[Array, "..."] | None
    lengths_y: Int[Array, "..."] | None
    mask_x: Bool[Array, "..."] | None
    mask_y: Bool[Array, "..."] | None


def refuse_beyond(values: Array, limit: float, message: str) -> Array:
    """`values`, refused unless all are numbers of modulus below `limit`."""
    known = np.asarray(values) if is_concrete(values) else values
    return refuse(values, ~(abs(known) < limit), message)


def check_kind(kind: str, depth: int | None) -> None:
    if kind not in KINDS:
        raise ValueError(f"Unknown kind {kind!r}: expected one of {KINDS}.")
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int)):
        raise TypeError(f"`depth` must be an integer or None, got {depth!r}.")
    if depth is not None and depth < 1:
        raise ValueError(f"`depth` must be at least 1 or None, got {depth}.")


def as_sample(name: str, paths: Any) -> Any:
    """A `SampledPath` or a floating array of shape `(n, times, channels)`, `n >= 1`.

    A NumPy array stays on the host.
    """
    if not isinstance(paths, SampledPath):
        paths = as_real(name, paths)
    shape = paths.xs.shape if isinstance(paths, SampledPath) else paths.shape
    if len(shape) != 3:
        advice = (
            f"If its paths have one channel, pass `{name}[..., None]`; if it is a "
            f"single path, pass `{name}[None]`."
        )
        raise ValueError(
            f"`{name}` must be a sample of paths (n, times, channels), got shape "
            f"{shape}. {advice if len(shape) == 2 else 'Flatten its leading axes.'}"
        )
    if shape[0] == 0:
        raise ValueError(f"`{name}` holds no path: its shape is {shape}.")
    return paths


def as_brackets(name: str, brackets: Any, points: jax.Array) -> jax.Array:
    """Increments `(..., times - 1, d, d)` that fit the points `(..., times, d)`."""
    brackets = as_floating(name, brackets)
    *lead, times, d = points.shape
    expected = (*lead, times - 1, d, d)
    if brackets.ndim < 3 or not is_suffix(brackets.shape, expected):
        raise ValueError(
            f"`{name}` must have shape {expected}, one matrix for each step of the "
            f"paths, got {brackets.shape}."
        )
    return jnp.broadcast_to(brackets, expected).astype(points.dtype)


def check_alike(x: Any, y: Any) -> None:
    """Paths to be compared have the same channels and the same dtype."""
    x, y = (p.xs if isinstance(p, SampledPath) else p for p in (x, y))
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(
            "Both paths must have the same number of channels, got "
            f"{x.shape[-1]} and {y.shape[-1]}."
        )
    kinds = [jax.dtypes.canonicalize_dtype(p.dtype) for p in (x, y)]
    if kinds[0] != kinds[1]:
        raise TypeError(
            f"Both paths must have the same dtype, got {kinds[0]} and {kinds[1]}. Cast "
            "one of them."
        )


def _sampled(
    path: SampledPath | ArrayLike,
    lengths: Int[Array, "..."] | None = None,
    mask: Bool[Array, "..."] | None = None,
) -> SampledPath:
    """A [`arborax.SampledPath`][]; an array gets the times `0..1`."""
    if isinstance(path, SampledPath):
        if lengths is not None or mask is not None:
            raise ValueError(
                "A SampledPath brings its own `lengths` and `mask`: do not pass them "
                "again."
            )
        return path
    xs = as_values("path", path)
    ts = jnp.linspace(0, 1, xs.shape[-2], dtype=xs.dtype)
    return SampledPath(ts, xs, mask, lengths)


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
    if not isinstance(brackets, str):
        given = SampledPath(path.ts, path.xs, path.mask, path.lengths, brackets)
        return given.brackets
    if brackets == "left-point":
        return None
    if brackets == "realised":
        return path.realised_brackets()
    if brackets == "canonical":
        shape = (*path.batch_shape, path.num_times - 1, path.dim, path.dim)
        return jnp.zeros(shape, path.xs.dtype)
    raise ValueError(
        f"Unknown brackets {brackets!r}: expected None, 'left-point', 'realised', "
        "'canonical' (zero) or an array (..., steps, d, d)."
    )


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

    Realised brackets are made of observed increments, before anything is filled in
    (MATH.md §6). Left-point sums are sums over observed increments too, so there
    missing values are carried forward; everything else sees them interpolated. Time
    has no bracket.

    **Returns:**

    Points `(..., times, d)` and increments of the brackets `(..., times - 1, d, d)`,
    or `None` for left-point sums.
    """
    given = _sampled(path, lengths, mask)
    increments = _increments_of_brackets(kind, given, brackets)
    if increments is not given.brackets:
        given = eqx.tree_at(
            lambda p: p.brackets, given, increments, is_leaf=lambda leaf: leaf is None
        )
    left_point = kind != "geometric" and increments is None
    full = given.filled("forward" if left_point else "linear")
    if leads:
        full = lead_lag(full)
    if time:
        full = add_time(full)
    if basepoint:
        full = add_basepoint(full)
    increments = full.brackets
    if increments is not None:
        shape = (*full.batch_shape, full.num_times - 1, full.dim, full.dim)
        increments = jnp.broadcast_to(increments, shape)
    return full.xs, increments

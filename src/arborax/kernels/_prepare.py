"""Checked and augmented points and bracket increments, from the user's paths."""

import dataclasses
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._inputs import as_real, as_values
from .._values import is_concrete, refuse
from ..paths import add_basepoint, add_time, lead_lag, SampledPath


Kind = Literal["geometric", "ito", "branched", "planar"]
Brackets = Literal["left-point", "realised", "canonical"] | Float[Array, "..."] | None
Path = SampledPath | Float[ArrayLike, "..."]
Side = tuple[Array, Array | None]  # points, increments of the brackets
KINDS = ("geometric", "ito", "branched", "planar")


def refuse_beyond(values: Array, limit: float, message: str) -> Array:
    """`values`, refused unless all are numbers of modulus below `limit`."""
    known = np.asarray(values) if is_concrete(values) else values
    return refuse(values, ~(abs(known) < limit), message)


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
        return dataclasses.replace(path, brackets=brackets).brackets
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
    path: Any,
    brackets: Brackets,
    *,
    kind: Kind,
    time: bool = False,
    basepoint: bool = False,
    leads: bool = False,
) -> Side:
    """Points `(..., times, d)` and increments of the brackets `(..., times - 1, d, d)`,
    or `None` for left-point sums: filled, then augmented by lead-lag, time and
    basepoint, in this order.

    Realised brackets are made of observed increments, before anything is filled in
    (MATH.md §6). Left-point sums are sums over observed increments too, so there
    missing values are carried forward; all other sums see them interpolated.
    """
    if not isinstance(path, SampledPath):
        xs = as_values("path", path)
        path = SampledPath(jnp.linspace(0, 1, xs.shape[-2], dtype=xs.dtype), xs)
    increments = _increments_of_brackets(kind, path, brackets)
    if increments is not path.brackets:
        path = eqx.tree_at(
            lambda p: p.brackets, path, increments, is_leaf=lambda leaf: leaf is None
        )
    left_point = kind != "geometric" and increments is None
    full = path.filled("forward" if left_point else "linear")
    for wanted, augment in (
        (leads, lead_lag),
        (time, add_time),
        (basepoint, add_basepoint),
    ):
        full = augment(full) if wanted else full
    increments = full.brackets
    if increments is not None:
        shape = (*full.batch_shape, full.num_times - 1, full.dim, full.dim)
        increments = jnp.broadcast_to(increments, shape)
    return full.xs, increments

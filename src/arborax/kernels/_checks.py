"""Checks of samples of paths."""

from typing import Any

import jax
import jax.numpy as jnp

from .._inputs import as_floating, as_numbers, is_suffix
from ..paths import SampledPath


def as_sample(name: str, paths: Any) -> Any:
    """A `SampledPath` or a floating array of shape `(n, times, channels)`, `n >= 1`.

    A NumPy array stays on the host.
    """
    if not isinstance(paths, SampledPath):
        paths = as_numbers(name, paths)
    array = paths.xs if isinstance(paths, SampledPath) else paths
    shape = array.shape
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise TypeError(
            f"`{name}` must have a real floating dtype, got {array.dtype}. Cast it "
            f"first, e.g. `{name}.astype(float)`."
        )
    if len(shape) == 2:
        raise ValueError(
            f"`{name}` must be a sample of paths (n, times, channels), got shape "
            f"{shape}. If its paths have one channel, pass `{name}[..., None]`; if it "
            f"is a single path, pass `{name}[None]`."
        )
    if len(shape) != 3:
        raise ValueError(
            f"`{name}` must be a sample of paths (n, times, channels), got shape "
            f"{shape}. Flatten its leading axes."
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

"""Checks of what the user passes: paths, samples, keys."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..paths import SampledPath


def as_points(path: Any) -> Any:
    """`path` as an array `(..., times, channels)` of real floating dtype.

    A NumPy array stays on the host.
    """
    array = path
    if isinstance(path, list | tuple):
        try:
            shapes = {np.shape(one) for one in path}
        except ValueError:
            shapes = {(0,), (1,)}
        if len(shapes) > 1:
            raise ValueError(
                "The paths of the list differ in shape. Pad them to one array "
                "(n, times, channels) and pass their `lengths`, or build a SampledPath."
            )
        if any(isinstance(one, jax.Array) for one in path):
            array = jnp.stack([jnp.asarray(one) for one in path])
    if not isinstance(array, jax.Array):
        array = np.asarray(array)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise TypeError(
            f"A path must hold real floating numbers, got {type(path).__name__} of "
            f"dtype {array.dtype}. Cast integers, e.g. `x.astype(float)`; time stamps "
            "are the `ts` of a SampledPath."
        )
    if array.ndim < 2:
        raise ValueError(
            f"A path must have shape (..., times, channels), got {array.shape}. Add a "
            "channel axis with `x[..., None]`."
        )
    if 0 in array.shape[-2:]:
        raise ValueError(
            "A path must hold at least one time and one channel, got shape "
            f"{array.shape}."
        )
    return array


def as_sample(name: str, paths: Any) -> Any:
    """A `SampledPath` or an array of shape `(n, times, channels)`, `n >= 1`."""
    if isinstance(paths, SampledPath):
        shape = paths.xs.shape
    else:
        paths = as_points(paths)
        shape = paths.shape
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


def check_count(name: str, value: Any, minimum: int = 1) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(
            f"`{name}` must be a Python integer, got {type(value).__name__}."
        )
    if value < minimum:
        raise ValueError(f"`{name}` must be at least {minimum}, got {value}.")


def check_key(key: Any) -> None:
    """One key of `jax.random`, of the new or of the old style."""
    good = isinstance(key, jax.Array | np.ndarray) and (
        (jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.ndim == 0)
        or (key.dtype == jnp.uint32 and key.ndim == 1)
    )
    if not good:
        raise TypeError(
            "`key` must be one random key, e.g. `jax.random.key(0)`, got "
            f"{type(key).__name__}{getattr(key, 'shape', '')}."
        )

"""Shared checks of arguments: what is known at trace time raises at once."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer


def is_concrete(*arrays: Any) -> bool:
    """Whether all values are known now (none is a tracer); `None` counts as known."""
    return not any(isinstance(a, Tracer) for a in arrays)


def as_floating(name: str, value: Any) -> jax.Array:
    """`value` as a JAX array of real floating dtype; anything else is refused."""
    array = jnp.asarray(value)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise TypeError(
            f"`{name}` must have a real floating dtype, got {array.dtype}. Cast it "
            f"first, e.g. `{name}.astype(float)`."
        )
    return array


def is_suffix(short: tuple[int, ...], full: tuple[int, ...]) -> bool:
    """Whether the shape `short` is made of the last axes of the shape `full`."""
    return len(short) <= len(full) and full[len(full) - len(short) :] == short


def as_hurst(hurst: Any) -> float:
    """A Hurst index as a Python float in (0, 1)."""
    if not is_concrete(hurst):
        raise TypeError(
            "`hurst` must be a Python number, got a traced array. The covariance is "
            "tabulated in double precision before tracing; mark it static."
        )
    if np.ndim(hurst) != 0:
        raise ValueError(f"`hurst` must be a scalar, got shape {np.shape(hurst)}.")
    hurst = float(hurst)
    if not 0.0 < hurst < 1.0:
        raise ValueError(f"`hurst` must lie strictly between 0 and 1, got {hurst}.")
    return hurst


def as_count(name: str, value: Any, minimum: int = 1) -> int:
    """A static integer of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(
            f"`{name}` must be a Python integer, got {type(value).__name__}."
        )
    if value < minimum:
        raise ValueError(f"`{name}` must be at least {minimum}, got {value}.")
    return int(value)


def as_real_dtype(dtype: Any) -> Any:
    """A floating dtype; `None` means JAX's default (float32 unless x64 is on)."""
    dtype = jnp.zeros(()).dtype if dtype is None else jnp.dtype(dtype)
    if not jnp.issubdtype(dtype, jnp.floating):
        raise TypeError(f"`dtype` must be a real floating dtype, got {dtype}.")
    return jax.dtypes.canonicalize_dtype(dtype)

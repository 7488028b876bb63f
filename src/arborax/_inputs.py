"""Arguments of public functions as arrays, counts and keys, or a plain error.

What is known from types, dtypes and shapes alone; values are the business of `_values`.
"""

import math
import numbers
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._values import is_concrete, shown


def as_numbers(name: str, value: Any) -> Any:
    """`value` with a dtype of numbers or booleans, in NumPy or JAX as it came."""
    if hasattr(value, "to_numpy"):
        raise TypeError(
            f"`{name}` must be an array, got a {type(value).__name__}. Convert it with "
            f"`.to_numpy(dtype=float)`; times and values are separate arguments."
        )
    if isinstance(value, list | tuple):
        _refuse_ragged(name, value)
    array: Any = value
    if not hasattr(value, "dtype"):
        leaves = jax.tree.leaves(value)
        xp = jnp if any(isinstance(leaf, jax.Array) for leaf in leaves) else np
        try:
            array = xp.asarray(value)
        except (TypeError, ValueError):
            raise TypeError(
                f"`{name}` must be an array of numbers, got {type(value).__name__}."
            ) from None
    dtype = array.dtype
    if dtype.kind in ("M", "m"):
        raise TypeError(
            f"`{name}` holds dates ({dtype}). Convert them to floats, e.g. "
            f"`({name} - {name}[0]) / np.timedelta64(1, 's')`."
        )
    if dtype.kind in ("O", "U", "S", "T"):
        raise TypeError(
            f"`{name}` must be an array of numbers, got dtype {dtype}. Convert it "
            "first."
        )
    return array


def as_array(name: str, value: Any) -> jax.Array:
    """`value` as a JAX array of numbers or booleans; anything else is refused."""
    return jnp.asarray(as_numbers(name, value))


def as_real(name: str, value: Any) -> Any:
    """`value` with a real floating dtype, in NumPy or JAX as it came."""
    array = as_numbers(name, value)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        cast = f"{name}.astype(float)"
        if not hasattr(value, "astype"):  # a list
            cast = f"np.asarray({name}, float)"
        raise TypeError(
            f"`{name}` must have a real floating dtype, got {array.dtype}. Cast it "
            f"first, e.g. `{cast}`."
        )
    return array


def as_floating(name: str, value: Any) -> jax.Array:
    """`value` as a JAX array of real floating dtype; anything else is refused."""
    return jnp.asarray(as_real(name, value))


def _refuse_ragged(name: str, value: Any) -> None:
    try:
        shapes = [np.shape(part) for part in value]
    except ValueError:
        shapes = ["unequal"]
    if len(set(shapes)) > 1 or shapes == ["unequal"]:
        raise ValueError(
            f"`{name}` is a list of {len(value)} parts of unequal length. Pad them to "
            "one length, stack them, and pass `SampledPath(ts, xs, lengths=lengths)`; "
            "what stands after the lengths is ignored."
        )


def as_values(name: str, value: Any) -> jax.Array:
    """`value` as an array `(..., times, channels)` with at least one of each."""
    array = as_floating(name, value)
    if array.ndim < 2:
        raise ValueError(
            f"`{name}` must have shape (..., times, channels), got {array.shape}. A "
            f"path with one channel still needs its last axis: `{name}[..., None]`."
        )
    if array.shape[-2] == 0 or array.shape[-1] == 0:
        raise ValueError(
            f"`{name}` must hold at least one time and one channel, got shape "
            f"{array.shape}. (A path of one point is legal: its signature is the unit.)"
        )
    return array


def is_suffix(short: tuple[int, ...], full: tuple[int, ...]) -> bool:
    """Whether the shape `short` is made of the last axes of the shape `full`."""
    return len(short) <= len(full) and full[len(full) - len(short) :] == short


def as_count(name: str, value: Any, minimum: int = 1) -> int:
    """A static integer of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(
            f"`{name}` must be a whole number, got {shown(value)}. Give a Python "
            "integer."
        )
    if value < minimum:
        raise ValueError(f"`{name}` must be at least {minimum}, got {value}.")
    return int(value)


def as_number(
    name: str, value: Any, minimum: float | int = -math.inf, *, above: bool = False
) -> Any:
    """One finite real number, at least `minimum` (or `above` it); may be traced."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    else:
        real = np.shape(value) == () and jnp.issubdtype(dtype, jnp.number)
        real = real and not jnp.issubdtype(dtype, jnp.complexfloating)
    if not real:
        raise TypeError(f"`{name}` must be one number, got {shown(value)}.")
    if is_concrete(value):
        number = float(value)
        enough = number > minimum if above else number >= minimum
        if not (math.isfinite(number) and enough):
            if above and minimum == 0:
                kind = "positive number"
            elif minimum == -math.inf:
                kind = "number"
            else:
                kind = f"number {'above' if above else 'of at least'} {minimum:g}"
            raise ValueError(f"`{name}` must be one finite {kind}, got {shown(value)}.")
    return value


def as_flag(name: str, value: Any) -> bool:
    """`True` or `False`, of Python or NumPy."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"`{name}` must be True or False, got {shown(value)}.")
    return bool(value)


def as_kind(name: str, value: Any, kind: Any, must: str) -> Any:
    """An instance of `kind`; the message says what the argument `must`."""
    if not isinstance(value, kind):
        raise TypeError(f"`{name}` must {must}, got {shown(value)}.")
    return value


def as_choice(name: str, value: Any, choices: tuple) -> Any:
    """One of a few names."""
    if not isinstance(value, str | None) or value not in choices:
        raise ValueError(f"`{name}` must be one of {choices}, got {shown(value)}.")
    return value


def as_real_dtype(dtype: Any) -> Any:
    """A floating dtype; `None` means JAX's default (float32 unless x64 is on)."""
    try:
        found = jnp.zeros(()).dtype if dtype is None else jnp.dtype(dtype)
    except TypeError:
        raise TypeError(
            f"`dtype` must be a real floating dtype, got {shown(dtype)}."
        ) from None
    if not jnp.issubdtype(found, jnp.floating):
        raise TypeError(f"`dtype` must be a real floating dtype, got {found}.")
    return jax.dtypes.canonicalize_dtype(found)


def as_shape(name: str, value: Any) -> tuple[int, ...]:
    """A tuple of static integers; one integer stands for one axis."""
    axes = value if isinstance(value, tuple | list) else (value,)
    return tuple(as_count(name, axis, 0) for axis in axes)


def as_key(key: Any) -> Any:
    """One JAX random key, typed or raw."""
    dtype, ndim = getattr(key, "dtype", None), getattr(key, "ndim", None)
    typed = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
    if (typed and ndim == 0) or (dtype == np.uint32 and ndim == 1):
        return key
    got = shown(key) if dtype is None else f"an array {dtype}{list(key.shape)}"
    raise TypeError(
        f"`key` must be one JAX random key, got {got}. Make one by "
        "`jax.random.key(0)`; for a batch use `jax.vmap`."
    )

"""Brownian motion on any grid."""

from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from .._inputs import as_count, as_floating, as_key, as_real_dtype, as_shape
from .._values import explain_times, is_concrete, refuse


def grid_steps(given: Any, dtype: Any) -> Float[Array, " steps"]:
    """Time steps, taken before the cast, which may round close times together."""
    ts = as_floating("ts", given)
    if ts.ndim != 1 or ts.shape[0] == 0:
        raise ValueError(f"`ts` must have shape (times,), not empty, got {ts.shape}.")
    known = is_concrete(given)
    xp: Any = np if known else jnp
    checked = np.asarray(given, ts.dtype) if known else ts
    with np.errstate(invalid="ignore"):
        rising = checked[1:] > checked[:-1]
    bad = ~(xp.all(xp.isfinite(checked)) & xp.all(rising))
    message = "`ts` must be finite and strictly increasing."
    if known and bad:
        message = explain_times(given, message)
    dtype = as_real_dtype(ts.dtype if dtype is None else dtype)
    return refuse(jnp.diff(ts), bad, message).astype(dtype)


def brownian(
    ts: ArrayLike,
    dim: int,
    shape: tuple[int, ...] | int = (),
    *,
    key: PRNGKeyArray,
    dtype: Any = None,
) -> Float[Array, "*shape times dim"]:
    """Standard Brownian motion, exact in law on any increasing grid.

    Starts at zero at `ts[0]`. Its brackets are [`arborax.brownian_brackets`][].

    **Arguments:**

    - `ts`: `(times,)`, strictly increasing.
    - `dim`: number of independent components.
    - `shape`: batch shape, or a number of paths.
    - `key`: a JAX random key, e.g. `jax.random.key(0)`.
    - `dtype`: floating dtype of the result. `None`: that of `ts`.
    """
    key, shape, dim = as_key(key), as_shape("shape", shape), as_count("dim", dim)
    scale = jnp.sqrt(grid_steps(ts, dtype))
    dtype = scale.dtype
    normal = jr.normal(key, (*shape, scale.shape[0], dim), dtype)
    steps = scale.reshape((1,) * len(shape) + (-1, 1)) * normal
    start = jnp.zeros((*shape, 1, dim), dtype)
    return jnp.concatenate([start, jnp.cumsum(steps, axis=-2)], axis=-2)


def brownian_brackets(
    ts: ArrayLike, dim: int, dtype: Any = None
) -> Float[Array, "steps dim dim"]:
    """Quadratic covariation of Brownian motion over each step, `dt` times the identity.

    Arguments as [`arborax.brownian`][]. An array `(times - 1, dim, dim)`, shared by a
    batch of paths.
    """
    dim = as_count("dim", dim)
    steps = grid_steps(ts, dtype)
    return steps[:, None, None] * jnp.eye(dim, dtype=steps.dtype)[None]

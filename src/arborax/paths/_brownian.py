"""Brownian motion on any grid."""

from typing import Any

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from .._inputs import as_count, as_floating, as_key, as_real_dtype, as_shape
from .._values import refuse_times


def grid_steps(given: Any, dtype: Any) -> Float[Array, " steps"]:
    """Time steps, taken before the cast, which may round close times together."""
    ts = as_floating("ts", given)
    if ts.ndim != 1 or ts.shape[0] == 0:
        raise ValueError(f"`ts` must have shape (times,), not empty, got {ts.shape}.")
    message = "`ts` must be finite and strictly increasing."
    steps = refuse_times(jnp.diff(ts), ts, given, message)
    dtype = as_real_dtype(ts.dtype if dtype is None else dtype)
    return steps.astype(dtype)


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

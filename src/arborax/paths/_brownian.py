"""Brownian motion on any grid."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from ._checks import as_count, as_floating, as_real_dtype


def _steps(ts: Float[Array, "..."], dtype: Any) -> Float[Array, " steps"]:
    """Time steps, taken before the cast, which may round close times together."""
    if ts.ndim != 1 or ts.shape[0] == 0:
        raise ValueError(f"`ts` must have shape (times,), not empty, got {ts.shape}.")
    ts = eqx.error_if(
        ts,
        ~(jnp.all(jnp.isfinite(ts)) & jnp.all(jnp.diff(ts) > 0)),
        "`ts` must be finite and strictly increasing.",
    )
    return jnp.diff(ts).astype(dtype)


def brownian(
    key: PRNGKeyArray,
    ts: ArrayLike,
    dim: int,
    shape: tuple[int, ...] = (),
    dtype: Any = None,
) -> Float[Array, "*shape times dim"]:
    """Standard Brownian motion, exact in law on any increasing grid.

    Starts at zero at `ts[0]`. Its brackets are [`arborax.brownian_brackets`][].

    **Arguments:**

    - `key`: a JAX random key.
    - `ts`: `(times,)`, strictly increasing.
    - `dim`: number of independent components.
    - `shape`: batch shape.
    - `dtype`: floating dtype of the result. `None`: that of `ts`.

    **Returns:**

    Array `(*shape, times, dim)`.
    """
    dim = as_count("dim", dim)
    ts = as_floating("ts", ts)
    dtype = as_real_dtype(ts.dtype if dtype is None else dtype)
    scale = jnp.sqrt(_steps(ts, dtype))
    normal = jr.normal(key, (*shape, scale.shape[0], dim), dtype)
    steps = scale.reshape((1,) * len(shape) + (-1, 1)) * normal
    start = jnp.zeros((*shape, 1, dim), dtype)
    return jnp.concatenate([start, jnp.cumsum(steps, axis=-2)], axis=-2)


def brownian_brackets(
    ts: ArrayLike, dim: int, dtype: Any = None
) -> Float[Array, "steps dim dim"]:
    """Quadratic covariation of Brownian motion over each step, `dt` times the identity.

    **Arguments:**

    - `ts`: `(times,)`, strictly increasing.
    - `dim`: number of independent components.
    - `dtype`: floating dtype of the result. `None`: that of `ts`.

    **Returns:**

    Array `(times - 1, dim, dim)`, shared by a batch of paths.
    """
    dim = as_count("dim", dim)
    ts = as_floating("ts", ts)
    dtype = as_real_dtype(ts.dtype if dtype is None else dtype)
    steps = _steps(ts, dtype)
    return steps[:, None, None] * jnp.eye(dim, dtype=dtype)[None]

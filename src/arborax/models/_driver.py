"""The driver of generative models: time and Brownian motion."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import ArrayLike, PRNGKeyArray

from ..paths import brownian, brownian_brackets, SampledPath


def brownian_driver(
    key: PRNGKeyArray,
    ts: ArrayLike,
    dim: int,
    shape: tuple[int, ...] = (),
    *,
    brackets: bool = False,
    dtype: Any = None,
) -> SampledPath:
    """Time and `dim` independent Brownian motions from zero.

    **Arguments:**

    - `key`: a JAX random key.
    - `ts`: `(times,)`, strictly increasing.
    - `dim`: number of Brownian channels; zero is allowed.
    - `shape`: batch shape.
    - `brackets`: whether to supply brackets, the time step on the Brownian diagonal:
        the driver is then an Itô driver.
    - `dtype`: floating dtype of the values. `None`: that of `ts`.

    **Returns:**

    A [`arborax.SampledPath`][] with `1 + dim` channels, time first. Times and brackets
    are shared by the batch.
    """
    ts = jnp.asarray(ts)
    dtype = ts.dtype if dtype is None else dtype
    clock = jnp.broadcast_to(ts.astype(dtype)[:, None], (*shape, ts.shape[0], 1))
    parts = [clock]
    if dim:
        parts.append(brownian(key, ts, dim, shape, dtype))
    given = None
    if brackets:
        given = jnp.zeros((ts.shape[0] - 1, 1 + dim, 1 + dim), dtype)
        if dim:
            given = given.at[:, 1:, 1:].set(brownian_brackets(ts, dim, dtype))
    xs = jnp.concatenate(parts, axis=-1)
    return SampledPath(ts, xs, brackets=given, check=False)

"""Where along a path the numbers went wrong."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Inexact, Int32

from .._inputs import as_array


def first_nonfinite(values: Inexact[Array, "..."], axis: int = 0) -> Int32[Array, ""]:
    """The first index along an axis with a `nan` or infinity anywhere in it, or -1.

    Return it from an objective, `loss, {"window": first_nonfinite(ys, axis=1)}`, and
    `fit` reports the window in which a solution left the finite numbers.

    **Arguments:**

    - `values`: any array, for example states `(batch, windows, channels)`.
    - `axis`: the axis of windows or times.
    """
    values = as_array("values", values)
    whole = isinstance(axis, int | np.integer)
    if not whole or not -values.ndim <= axis < values.ndim:
        raise ValueError(
            f"`axis` must be the number of an axis of `values` of shape {values.shape}."
        )
    bad = ~jnp.isfinite(jnp.moveaxis(values, axis, 0))
    bad = jnp.any(bad.reshape(bad.shape[0], math.prod(bad.shape[1:])), axis=1)
    if not bad.shape[0]:
        return jnp.full((), -1, jnp.int32)
    return jnp.where(jnp.any(bad), jnp.argmax(bad), -1).astype(jnp.int32)

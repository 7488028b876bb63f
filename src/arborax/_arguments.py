"""Arguments of two common kinds, told from what is often given instead."""

import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def check_key(key: Any, name: str = "key") -> Any:
    """`key`, if it is one JAX random key, typed or raw; a `TypeError` otherwise."""
    if isinstance(key, jax.Array | np.ndarray):
        if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
            if key.ndim == 0:
                return key
        elif key.dtype == np.uint32 and key.ndim == 1:
            return key
        got = f"an array {key.dtype}{list(key.shape)}"
    else:
        got = f"{key!r:.40}"
    raise TypeError(
        f"`{name}` must be one JAX random key, got {got}. Make one from a seed with "
        "`jax.random.key(0)`; map over several with `jax.vmap`."
    )


def whole(name: str, value: Any) -> int:
    """`value` as a Python integer; a `TypeError` if it is not a whole number."""
    try:
        return operator.index(value)
    except TypeError:
        pass
    raise TypeError(f"`{name}` must be a whole number, got {value!r:.40}.")

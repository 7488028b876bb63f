"""Lengths that the library multiplies fast."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ._switch import uses


_MULTIPLE = 16
_EXTRA = 8  # one over the part that may be added


def even(values: Float[Array, "*lead points"]) -> Float[Array, "*lead more"]:
    """Values with the last one repeated until the number of steps between them is a
    multiple of 16. Steps of zero change no signature. If they would add more than an
    eighth, the values as they are."""
    steps = values.shape[-1] - 1
    fill = -steps % _MULTIPLE
    if _EXTRA * fill > steps or not uses("even"):
        return values
    pad = [(0, 0)] * (values.ndim - 1) + [(0, fill)]
    return jnp.pad(values, pad, mode="edge")

"""Realised brackets: products of observed increments."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._inputs import as_choice
from ._missing import neighbours, observed_mask


def realised_brackets(path: Any, estimator: str) -> Float[Array, "..."]:
    """Increments of the bracket of a `SampledPath`; see its method of this name."""
    as_choice("estimator", estimator, ("previous-tick", "hayashi-yoshida"))
    if estimator == "previous-tick":
        step = path.observed_increments()
        brackets = step[..., :, None] * step[..., None, :]
    else:
        brackets = _hayashi_yoshida(path)
    if not path.finite_variation:
        return brackets
    rough = np.ones(path.dim, bool)
    rough[list(path.finite_variation)] = False
    rough = np.broadcast_to(np.outer(rough, rough), brackets.shape)
    return jnp.where(rough, brackets, 0)


def _hayashi_yoshida(path: Any) -> Array:
    if path.interpolated:
        raise ValueError(
            "the path was filled by interpolation and no longer knows when each "
            "channel was observed; take `realised_brackets('hayashi-yoshida')` "
            "before filling, augmenting or cutting it."
        )
    held = path.filled("forward")
    values, step = held.xs, held.observed_increments()
    both = step[..., :, None] * step[..., None, :]
    if path.mask is None:
        return both
    # Intervals of channel j that end within the interval (p, k] of channel i add up to
    # the previous-tick increment of j over it.
    before, _ = neighbours(observed_mask(path.xs, path.mask))
    opening = before[..., :-1, :]
    shape = (*opening.shape, path.dim)
    rows = jnp.broadcast_to(values[..., 1:, None, :], shape)
    index = jnp.broadcast_to(jnp.clip(opening, 0, None)[..., None], shape)
    table = jnp.broadcast_to(values[..., None, :], (*values.shape, path.dim))
    past = jnp.take_along_axis(table, index, axis=-3)
    half = step[..., :, None] * (rows - past)
    return half + jnp.swapaxes(half, -1, -2) - both

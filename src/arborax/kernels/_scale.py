"""Safe scalings for kernels with a finite radius of convergence."""

from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax.lax as lax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._prepare import Side


def _size(
    points: Float[Array, "... times d"],
    brackets: Float[Array, "... steps d d"] | None,
    mode: Literal["auto", "bounded"],
) -> Float[Array, ""]:
    """The size of the largest path of a batch.

    `"auto"`: the larger of the largest distance from the start and the root of the
    realised (or supplied) quadratic variation. `"bounded"`: the length (1-variation),
    which controls every iterated sum.
    """
    moved = points - points[..., :1, :]
    # Squares of numbers near one neither overflow nor vanish.
    unit = jnp.max(jnp.abs(moved))
    unit = jnp.where(unit == 0, 1, unit)
    moved = moved / unit
    dx = jnp.diff(moved, axis=-2)
    if mode == "bounded":
        size = unit * jnp.sum(jnp.sqrt(jnp.sum(dx * dx, axis=-1)), axis=-1)
        if brackets is not None:
            entries = jnp.linalg.norm(brackets, axis=(-1, -2))
            size = size + jnp.sqrt(jnp.sum(entries, axis=-1))
        return lax.stop_gradient(jnp.max(size))
    largest = jnp.max(jnp.sum(moved * moved, axis=-1))
    variation = jnp.max(jnp.sum(dx * dx, axis=(-1, -2)))
    size = unit * jnp.sqrt(jnp.maximum(largest, variation))
    if brackets is not None:
        trace = jnp.sum(jnp.abs(jnp.trace(brackets, axis1=-2, axis2=-1)), axis=-1)
        size = jnp.maximum(size, jnp.sqrt(jnp.max(trace)))
    return lax.stop_gradient(size)


@eqx.filter_jit
def pooled_scale(
    sides: Sequence[Side], mode: Literal["auto", "bounded"]
) -> Float[Array, ""]:
    """One factor for all batches `(points, brackets)` of `sides` together: the size of
    the largest path becomes 1/2 (`"auto"`) or 1 (`"bounded"`)."""
    sizes = [_size(points, brackets, mode) for points, brackets in sides]
    size = jnp.max(jnp.stack(sizes))
    target = 0.5 if mode == "auto" else 1.0
    moves = ~(size <= jnp.finfo(size.dtype).tiny)  # true for NaN too
    return jnp.where(moves, target / jnp.where(moves, size, 1), 1)

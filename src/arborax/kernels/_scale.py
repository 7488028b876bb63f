"""Safe scalings for kernels with a finite radius of convergence."""

from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax.lax as lax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._prepare import Side


Mode = Literal["auto", "bounded", "median"]


def _sizes(
    points: Float[Array, "... times d"],
    brackets: Float[Array, "... steps d d"] | None,
    mode: Mode,
) -> Float[Array, "..."]:
    """The sizes of the paths of a batch.

    `"bounded"`: the length (1-variation), which controls every iterated sum. Otherwise
    the larger of the largest distance from the start and the root of the realised (or
    supplied) quadratic variation.
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
        return lax.stop_gradient(size)
    largest = jnp.max(jnp.sum(moved * moved, axis=-1), axis=-1)
    variation = jnp.sum(dx * dx, axis=(-1, -2))
    size = unit * jnp.sqrt(jnp.maximum(largest, variation))
    if brackets is not None:
        trace = jnp.sum(jnp.abs(jnp.trace(brackets, axis1=-2, axis2=-1)), axis=-1)
        size = jnp.maximum(size, jnp.sqrt(trace))
    return lax.stop_gradient(size)


@eqx.filter_jit
def pooled_scale(sides: Sequence[Side], mode: Mode) -> Float[Array, ""]:
    """One factor for all batches `(points, brackets)` of `sides` together. The largest
    path gets the size 1/2 (`"auto"`) or 1 (`"bounded"`), or that of median size the
    size 2 (`"median"`)."""
    sizes = [_sizes(points, brackets, mode) for points, brackets in sides]
    sizes = jnp.concatenate([jnp.ravel(size) for size in sizes])
    size = jnp.median(sizes) if mode == "median" else jnp.max(sizes)
    target = {"auto": 0.5, "bounded": 1.0, "median": 2.0}[mode]
    moves = ~(size <= jnp.finfo(size.dtype).tiny)  # true for NaN too
    return jnp.where(moves, target / jnp.where(moves, size, 1), 1)

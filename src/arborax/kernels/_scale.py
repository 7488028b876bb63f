"""Safe scalings for kernels with a finite radius of convergence."""

from typing import Literal

import jax.lax as lax
import jax.numpy as jnp
from jaxtyping import Array, Float


def path_size(
    points: Float[Array, "... times d"],
    brackets: Float[Array, "... steps d d"] | None = None,
    mode: Literal["auto", "bounded"] = "auto",
) -> Float[Array, ""]:
    """The size of a batch of paths: the largest over the batch.

    **Arguments:**

    - `points`, `brackets`: paths and increments of their brackets.
    - `mode`: `"auto"`: the larger of the largest distance from the start and the root
        of the realised (or supplied) quadratic variation. `"bounded"`: the length
        (1-variation), which controls every iterated sum.
    """
    dx = jnp.diff(points, axis=-2)
    if mode == "bounded":
        size = jnp.sum(jnp.sqrt(jnp.sum(dx * dx, axis=-1)), axis=-1)
        if brackets is not None:
            entries = jnp.sqrt(jnp.sum(brackets * brackets, axis=(-1, -2)))
            size = size + jnp.sqrt(jnp.sum(entries, axis=-1))
        return lax.stop_gradient(jnp.max(size))
    moved = points - points[..., :1, :]
    largest = jnp.max(jnp.sum(moved * moved, axis=-1))
    variation = jnp.max(jnp.sum(dx * dx, axis=(-1, -2)))
    size = jnp.maximum(largest, variation)
    if brackets is not None:
        trace = jnp.sum(jnp.abs(jnp.trace(brackets, axis1=-2, axis2=-1)), axis=-1)
        size = jnp.maximum(size, jnp.max(trace))
    return lax.stop_gradient(jnp.sqrt(size))


def safe_scale(
    x: Float[Array, "... times d"],
    y: Float[Array, "... times d"],
    brackets_x: Float[Array, "... steps d d"] | None = None,
    brackets_y: Float[Array, "... steps d d"] | None = None,
    mode: Literal["auto", "bounded"] = "auto",
) -> Float[Array, ""]:
    r"""The factor that `scale="auto"` or `scale="bounded"` puts on both paths.

    The full tree kernels grow like those of straight lines with
    `c = <x_1 - x_0, y_1 - y_0>`: non-planar `(1 - c/2)^{-2}`, infinite at `c = 2`.

    * `"auto"`: largest size 1/2 (see `path_size`), that is `c <= 1/4` for straight
      lines. Right for rough paths, whose length grows without bound as the mesh
      shrinks. It is a scaling and no proof: many fast rotations may still blow up, and
      that is then reported.
    * `"bounded"`: length at most 1. Then `|T| <= -2 log(1 - 1/2)` whatever the path:
      the recursion with `|dx| |dy|` in place of `<dx, dy>` is a majorant. Shrinks rough
      paths towards zero as the mesh is refined.

    The scale is a constant for differentiation. For training, compute it once from
    data and pass the number: otherwise the objective changes with each batch.

    **Returns:**

    A positive scalar.
    """
    size = jnp.maximum(path_size(x, brackets_x, mode), path_size(y, brackets_y, mode))
    target = 0.5 if mode == "auto" else 1.0
    return jnp.where(size > 0, target / jnp.where(size > 0, size, 1), 1)

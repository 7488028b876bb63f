"""Safe scalings for kernels with a finite radius of convergence."""

from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax.lax as lax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from .._inputs import as_values
from ._prepare import as_brackets, check_alike, refuse_beyond


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
    sides: Sequence[tuple[Array, Array | None]], mode: Literal["auto", "bounded"]
) -> Float[Array, ""]:
    """One factor for all batches `(points, brackets)` of `sides` together."""
    sizes = [path_size(points, brackets, mode) for points, brackets in sides]
    size = jnp.max(jnp.stack(sizes))
    target = 0.5 if mode == "auto" else 1.0
    moves = ~(size <= jnp.finfo(size.dtype).tiny)  # true for NaN too
    return jnp.where(moves, target / jnp.where(moves, size, 1), 1)


def safe_scale(
    x: Float[ArrayLike, "..."],
    y: Float[ArrayLike, "..."],
    brackets_x: Float[Array, "..."] | None = None,
    brackets_y: Float[Array, "..."] | None = None,
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

    It depends on all paths of `x` and `y` together, and on nothing else. The scale is a
    constant for differentiation. For training, compute it once from data and pass the
    number (or use [`arborax.SignatureKernel.fit`][], which also sees augmentations):
    otherwise the objective changes with each batch.

    **Arguments:**

    - `x`, `y`: paths `(..., times, d)`, as they enter the kernel.
    - `brackets_x`, `brackets_y`: increments `(..., times - 1, d, d)` of their brackets.
    - `mode`: as above.

    **Returns:**

    A positive scalar.
    """
    if mode not in ("auto", "bounded"):
        raise ValueError(f"`mode` must be 'auto' or 'bounded', got {mode!r}.")
    x, y = as_values("x", x), as_values("y", y)
    check_alike(x, y)
    if brackets_x is not None:
        brackets_x = as_brackets("brackets_x", brackets_x, x)
    if brackets_y is not None:
        brackets_y = as_brackets("brackets_y", brackets_y, y)
    factor = pooled_scale([(x, brackets_x), (y, brackets_y)], mode)
    message = "A path holds NaN or infinity: it has no scale."
    return refuse_beyond(factor, float("inf"), message)

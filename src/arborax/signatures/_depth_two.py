"""Signatures of depth two in closed form: one product over time of the path itself.

At depth two the signature is the increment, half its square, the Lévy area

    A = 1/2 sum_t (X_t - X_0) ^ dX_t,   a ^ b = a (x) b - b (x) a,

and, with brackets, their sum. It needs no running sums, no quadrature and no streams.
"""

import functools as ft

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._xla import apply_map, barrier, custom_jvp
from ..algebra import AbstractWordAlgebra, SparseMap


Last = Float[Array, "batch dim times"]
Square = Float[Array, "batch dim dim"]


def _over_time(x: Last, y: Last) -> Square:
    return jnp.einsum("bit,bjt->bij", x, y)


def _antisymmetric(x: Square) -> Square:
    return 0.5 * (x - jnp.swapaxes(x, 1, 2))


def _steps(path: Last) -> Last:
    """From each point to the next one, and zero at the last, so that steps are as many
    as points."""
    return jnp.pad(path[..., 1:] - path[..., :-1], ((0, 0), (0, 0), (0, 1)))


@custom_jvp
def _area(path: Last) -> Square:
    """`A^ij`. Differentiated by hand, which saves half the products over time."""
    return _antisymmetric(_over_time(path - path[..., :1], _steps(path)))


@_area.defjvp
def _area_jvp(primals, tangents):
    """`dA = 1/2 (sum_t v_t ^ (X_{t+1} - X_{t-1}) - (v_0 + v_T) ^ X_0T)`."""
    (path,), (v,) = primals, tangents
    step = _steps(path)
    central = step + jnp.pad(step[..., :-1], ((0, 0), (0, 0), (1, 0)))
    ends, total = v[..., 0] + v[..., -1], path[..., -1] - path[..., 0]
    product = _over_time(v, central) - ends[:, :, None] * total[:, None, :]
    return _area(path), _antisymmetric(product)


def _bracket_sums(path: Last, brackets) -> Float[Array, "batch letters"]:
    """Total increments of the letters `(i, j)`, `i <= j`; see `letter_increments`."""
    batch, dim, _ = path.shape
    if isinstance(brackets, str):
        step = _steps(path)
        total = _over_time(step, step)
    else:
        total = brackets.sum(axis=1)
    return apply_map(_letters_of_pairs(dim), total.reshape(batch, dim * dim))


@ft.cache
def _letters_of_pairs(dim: int) -> SparseMap:
    i, j = np.triu_indices(dim)
    value = np.where(i == j, -0.5, -1.0)
    return SparseMap(np.arange(len(i)), i * dim + j, value, (len(i), dim * dim))


def two_levels(
    words: AbstractWordAlgebra,
    values: Float[Array, "batch times dim"],
    brackets,
    log: bool,
) -> Float[Array, "batch words"]:
    """The signature of a path over words of depth two, or its logarithm, which is the
    area and the brackets. For `Ito`, `brackets` are a string for realised ones, or
    `(batch, steps, dim, dim)`."""
    batch, times, dim = values.shape
    if times == 1:  # the unit
        values, brackets = jnp.repeat(values, 2, axis=1), "realised"
    path = barrier(jnp.swapaxes(values, 1, 2))
    total = path[..., -1] - path[..., 0]
    square = _area(path)
    if not log:
        square = square + 0.5 * total[:, :, None] * total[:, None, :]
    levels = [total, square.reshape(batch, dim * dim)]
    if len(words.letter_counts) > 1:
        levels.append(_bracket_sums(path, brackets))
    return jnp.concatenate(levels, axis=1)

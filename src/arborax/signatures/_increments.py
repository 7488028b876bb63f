"""From a sampled path and its brackets to increments of letters."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ..algebra import AbstractHopfAlgebra, Ito, Shuffle
from ..paths import SampledPath
from ._outer import outer


_NOT_FINITE = (
    "`path` has NaN or infinite values. Fill them, or pass a SampledPath with a "
    "mask of observed values."
)


def read_path(
    path: Any, alg: AbstractHopfAlgebra, brackets: Any, *, finite: bool = True
) -> tuple[Float[Array, "..."], Any]:
    """Values `(..., times, dim)` without gaps, and brackets as the user meant them.

    A [`arborax.SampledPath`][] brings its own brackets unless others are given.
    With `finite=False` traced values are not looked at unless their signature hides
    them; see `refuse_not_finite`.
    """
    if isinstance(path, SampledPath):
        path = path.filled()
        values = path.xs
        if brackets is None:
            brackets = path.brackets
    else:
        values = _check_values(path)
        hidden = 1 in (alg.depth, values.shape[-2], values.shape[-1])
        if isinstance(path, Tracer) and (finite or hidden):
            values = eqx.error_if(values, ~jnp.all(jnp.isfinite(values)), _NOT_FINITE)
    if values.shape[-1] != alg.dim:
        raise ValueError(
            f"the path has {values.shape[-1]} channels (shape {values.shape}) but "
            f"{alg} expects {alg.dim}; build the algebra with dim={values.shape[-1]}"
        )
    return values, check_brackets(brackets, values, alg)


def _check_values(path: Any) -> Array:
    if isinstance(path, list | tuple):
        raise TypeError(
            "`path` must be an array of shape (..., times, channels), got "
            f"{type(path).__name__}; convert it with jnp.asarray"
        )
    concrete = not isinstance(path, Tracer)
    values = jnp.asarray(path)
    if not jnp.issubdtype(values.dtype, jnp.floating):
        raise TypeError(
            f"`path` must be floating point, got dtype {values.dtype}; cast it, e.g. "
            "path.astype(jnp.float32)"
        )
    if values.ndim < 2:
        raise ValueError(
            "`path` must have shape (..., times, channels), got "
            f"{values.shape}; for one channel use path[..., None]"
        )
    if values.shape[-2] == 0:
        raise ValueError(
            "`path` has no points; one point at least is needed (a single point has "
            "the unit signature)"
        )
    if concrete and not np.all(np.isfinite(np.asarray(path))):
        raise ValueError(_NOT_FINITE)
    return values


def refuse_not_finite(values: Any, parts: list) -> list:
    """Coordinates `parts`, or an error if the path behind them is not finite.

    Every sample enters the coordinates of weight two, so one that is not finite shows
    in their sum, and these are far fewer than the samples. The path itself is looked at
    only if the sum is not finite, which may also be overflow. The error hangs on the
    first part, the smallest.
    """
    values, second = jax.lax.stop_gradient((values, parts[:2][-1]))
    look = lambda x: ~jnp.all(jnp.isfinite(x))  # noqa: E731
    pass_by = lambda x: jnp.zeros((), bool)  # noqa: E731
    bad = jax.lax.cond(jnp.isfinite(_sum(second)), pass_by, look, values)
    return [eqx.error_if(parts[0], bad, _NOT_FINITE), *parts[1:]]


def _sum(x: Float[Array, "m n"]) -> Array:
    """As products with ones, which XLA's CPU backend does much faster than a sum."""
    return jnp.ones(x.shape[0], x.dtype) @ (x @ jnp.ones(x.shape[1], x.dtype))


def check_brackets(brackets: Any, values: Array, alg: AbstractHopfAlgebra) -> Any:
    """Refuse bracket modes that the algebra cannot honour, and wrong shapes."""
    if isinstance(alg, Shuffle):
        if brackets is not None:
            raise ValueError(
                "Shuffle is Stratonovich calculus and cannot carry brackets; use "
                "Ito, GrossmanLarson or MuntheKaasWright, or brackets=None"
            )
        return None
    if brackets is None:
        if isinstance(alg, Ito):
            raise ValueError(
                "Ito needs brackets: pass brackets='realised' or an array of "
                "increments of the quadratic covariation (..., steps, dim, dim); for "
                "the canonical (Stratonovich) lift use Shuffle"
            )
        return None
    if isinstance(brackets, str):
        if brackets not in ("realised", "left-point"):
            raise ValueError(
                "`brackets` must be None, 'realised', 'left-point' or an array, got "
                f"{brackets!r}"
            )
        if brackets == "left-point" and isinstance(alg, Ito) and alg.depth > 2:
            raise ValueError(
                "left-point sums of depth 3 or more do not lie in the compressed Itô "
                "algebra; use GrossmanLarson or MuntheKaasWright, or "
                "brackets='realised'"
            )
        return brackets
    concrete = not isinstance(brackets, Tracer)
    array = jnp.asarray(brackets)
    expected = (values.shape[-2] - 1, alg.dim, alg.dim)
    if array.shape[-3:] != expected:
        raise ValueError(
            f"`brackets` must have shape (..., {expected[0]}, {alg.dim}, {alg.dim}), "
            "one increment of the quadratic covariation for each step of the path; got "
            f"{array.shape}"
        )
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise TypeError(f"`brackets` must be floating point, got dtype {array.dtype}")
    array = array.astype(values.dtype)
    message = (
        "`brackets` must be finite symmetric matrices; symmetrise them with "
        "(a + swapaxes(a, -1, -2)) / 2"
    )
    xp = np if concrete else jnp
    checked = np.asarray(array) if concrete else array
    flipped = xp.swapaxes(checked, -1, -2)
    scale = xp.max(xp.abs(checked), initial=0.0)
    tolerance = 1e3 * float(jnp.finfo(array.dtype).eps)
    bad = ~(xp.max(xp.abs(checked - flipped), initial=0.0) <= tolerance * scale)
    if concrete:
        if bad:
            raise ValueError(message)
    else:
        array = eqx.error_if(array, bad, message)
    return jnp.broadcast_to(array, (*values.shape[:-2], *expected))


def letter_increments(
    words: Shuffle | Ito, last: Float[Array, "..."], brackets: Any
) -> list[Float[Array, "..."]]:
    """Increments of the letters of weight one and two, time last.

    **Arguments:**

    - `words`: `Shuffle` for the canonical lift, `Ito` otherwise.
    - `last`: increments `(..., dim, steps)`.
    - `brackets`: `None`, `"realised"`/`"left-point"`, or `(..., steps, dim, dim)`.

    **Returns:**

    Arrays `(..., letters, steps)`. The letter `(i, j)` moves by `-dA^ij / 2`, doubled
    off the diagonal.
    """
    if isinstance(words, Shuffle) or words.depth == 1:
        return [last]
    i, j = np.triu_indices(words.dim)
    factor = np.where(i == j, -0.5, -1.0)
    if isinstance(brackets, str):
        return [last, _scaled_products(last, factor)]
    pairs = jnp.moveaxis(brackets[..., i, j], -1, -2)
    scale = jnp.asarray(factor, last.dtype).reshape(-1, 1)
    return [last, pairs * jnp.broadcast_to(scale, pairs.shape)]


def _scaled_products(x: Array, factor: np.ndarray) -> Array:
    """`factor_k x[.., i, :] x[.., j, :]` for all `i <= j`, row by row of the square."""
    *batch, dim, steps = x.shape
    flat = x.reshape(math.prod(batch), dim, steps)
    pairs = [outer(flat[:, i : i + 1], flat[:, i:]) for i in range(dim)]
    pairs = jnp.concatenate(pairs, axis=1)
    scale = jnp.asarray(factor, x.dtype).reshape(1, -1, 1)
    scaled = pairs * jnp.broadcast_to(scale, pairs.shape)
    return scaled.reshape(*batch, factor.size, steps)

"""Signatures as the path grows: updates, expanding and sliding windows."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._inputs import as_count
from ..algebra import AbstractHopfAlgebra
from ._increments import check_leading, read_elements, read_path
from ._signature import (
    expanding_log_of_steps,
    log_signature_of_steps,
    signature_of_steps,
)


def extend_signature(
    s: Float[Array, "..."],
    path: Any,
    alg: AbstractHopfAlgebra,
    brackets: Any = None,
) -> Float[Array, "..."]:
    """Signature after new samples have arrived.

    **Arguments:**

    - `s`: signature `(..., alg.size)` so far; zeros (the unit) to begin.
    - `path`: the new samples, led by the last sample already seen.
    - `brackets`: as in [`arborax.signature`][], for the new steps.

    **Returns:**

    The signature over the whole time, `s * signature(path)`.
    """
    read = read_path(path, alg, brackets)
    steps = jnp.diff(read.values, axis=-2)
    (s,) = read_elements(alg, s=s)
    check_leading({"s": s.shape[:-1], "path": steps.shape[:-2]})
    return read.guard(alg.product(s, signature_of_steps(alg, steps, read.brackets)))


def expanding_signature(
    path: Any, alg: AbstractHopfAlgebra, brackets: Any = None
) -> Float[Array, "..."]:
    """Signatures from the start to every sample.

    **Returns:**

    Array `(..., times, alg.size)`; the first entry is the unit (zeros). Cost and
    memory are those of the output, times a logarithm of the length for the work.
    """
    read = read_path(path, alg, brackets)
    brackets = read.brackets
    steps = jnp.diff(read.values, axis=-2)[..., None, :]
    if brackets is not None and not isinstance(brackets, str):
        brackets = brackets[..., None, :, :]
    each = signature_of_steps(alg, steps, brackets)
    start = jnp.zeros((*each.shape[:-2], 1, alg.size), each.dtype)
    each = jnp.concatenate([start, each], axis=-2)
    return read.guard(jax.lax.associative_scan(alg.product, each, axis=each.ndim - 2))


def expanding_log_signature(
    path: Any, alg: AbstractHopfAlgebra, brackets: Any = None
) -> Float[Array, "..."]:
    """Log-signatures from the start to every sample.

    **Returns:**

    Array `(..., times, alg.primitive_size)`; the first entry is zero. At depth two
    running sums over the steps; at higher depths a product of signatures in
    logarithmic depth, as in [`arborax.expanding_signature`][].
    """
    read = read_path(path, alg, brackets)
    steps = jnp.diff(read.values, axis=-2)
    rest = expanding_log_of_steps(alg, steps, read.brackets)
    first = jnp.zeros((*rest.shape[:-2], 1, alg.primitive_size), rest.dtype)
    return read.guard(jnp.concatenate([first, rest], axis=-2))


def _over_windows(
    sum_up: Callable, path: Any, alg: AbstractHopfAlgebra, window: int, brackets: Any
) -> Array:
    """`sum_up` of steps `(..., windows, window, dim)`, the tail padded with zeros."""
    window = as_count("window", window)
    read = read_path(path, alg, brackets)
    brackets = read.brackets
    steps = jnp.diff(read.values, axis=-2)
    length = steps.shape[-2]
    if length == 0:
        raise ValueError("the path has a single point, so there is no window to sum up")
    count = -(-length // window)

    def cut(x, core):
        pad = [(0, 0)] * x.ndim
        pad[x.ndim - core] = (0, count * window - length)
        x = jnp.pad(x, pad)
        lead = x.shape[: x.ndim - core]
        return x.reshape(*lead, count, window, *x.shape[x.ndim - core + 1 :])

    if brackets is not None and not isinstance(brackets, str):
        brackets = cut(brackets, 3)
    return read.guard(sum_up(alg, cut(steps, 2), brackets))


def windowed_signature(
    path: Any, alg: AbstractHopfAlgebra, window: int, brackets: Any = None
) -> Float[Array, "..."]:
    """Signatures over consecutive windows of `window` steps.

    **Returns:**

    Array `(..., windows, alg.size)`. The last window may be short: it is padded by
    repeating the last point, which changes nothing.
    """
    return _over_windows(signature_of_steps, path, alg, window, brackets)


def windowed_log_signature(
    path: Any, alg: AbstractHopfAlgebra, window: int, brackets: Any = None
) -> Float[Array, "..."]:
    """Log-signatures `(..., windows, alg.primitive_size)` over consecutive windows."""
    return _over_windows(log_signature_of_steps, path, alg, window, brackets)

"""Signatures and log-signatures of sampled paths."""

import functools as ft
import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..algebra import (
    AbstractHopfAlgebra,
    GrossmanLarson,
    Ito,
    MuntheKaasWright,
    primitive_conversion,
    Shuffle,
    SparseMap,
    tree_coordinates,
)
from ._increments import letter_increments, read_path
from ._left_point import left_point_signature, multiply_trees, TreeAlgebra
from ._sparse_rows import apply_rows
from ._tensor import tensor_levels
from ._words import level_log


def word_algebra(alg: AbstractHopfAlgebra, brackets: Any) -> Shuffle | Ito:
    """The word algebra whose image under a morphism is the signature in `alg`."""
    if isinstance(alg, Shuffle | Ito):
        return alg
    return Shuffle(alg.dim, alg.depth) if brackets is None else Ito(alg.dim, alg.depth)


@ft.cache
def _tree_rows(words: Shuffle | Ito, alg: GrossmanLarson) -> SparseMap:
    return tree_coordinates(words, alg).take_rows(alg.tree_positions)


@ft.cache
def _primitive_rows(words: Shuffle | Ito, alg: AbstractHopfAlgebra) -> SparseMap:
    """Logarithm in words to primitive coordinates of `alg`."""
    return primitive_conversion(words, alg) @ words.primitive_maps[0]


def _flat(x: Array, core: int) -> Array:
    """Merge all leading axes into one."""
    lead = x.shape[: x.ndim - core]
    return x.reshape(math.prod(lead), *x.shape[x.ndim - core :])


def word_levels(alg: AbstractHopfAlgebra, steps: Array, brackets: Any, values: Any):
    """Levels `(words, batch)` of the word signature behind the one in `alg`."""
    words = word_algebra(alg, brackets)
    letters = letter_increments(words, steps, brackets)
    flat = [_flat(letter, 2) for letter in letters]
    if values is not None:
        values = jnp.swapaxes(_flat(values, 2), 1, 2)
    if steps.shape[-2] == 0:  # a single point: the unit
        flat = [jnp.zeros((*x.shape[:-1], 1), x.dtype) for x in flat]
        values = None
    return words, tensor_levels(words, flat, values)


def signature_of_steps(
    alg: AbstractHopfAlgebra, steps: Array, brackets: Any, values: Any = None
) -> Array:
    """Signature `(..., size)` from checked increments `(..., steps, dim)`.

    `values`, the path with these increments, saves running sums where it is at hand.
    """
    lead = steps.shape[:-2]
    if isinstance(alg, TreeAlgebra) and _is_left_point(brackets):
        if steps.shape[-2] == 0:
            return jnp.zeros((*lead, alg.size), steps.dtype)
        out = left_point_signature(alg, _flat(steps, 2))
        return out.reshape(*lead, alg.size)
    words, levels = word_levels(alg, steps, brackets, values)
    rows = jnp.concatenate(levels)
    if isinstance(alg, GrossmanLarson):
        rows = multiply_trees(alg, apply_rows(_tree_rows(words, alg), rows))
    elif isinstance(alg, MuntheKaasWright):
        rows = apply_rows(tree_coordinates(words, alg), rows)
    return rows.T.reshape(*lead, alg.size)


def log_signature_of_steps(
    alg: AbstractHopfAlgebra, steps: Array, brackets: Any, values: Any = None
) -> Array:
    """Log-signature `(..., primitive_size)` from checked increments."""
    lead = steps.shape[:-2]
    if isinstance(alg, TreeAlgebra) and _is_left_point(brackets):
        group = signature_of_steps(alg, steps, brackets)
        return alg.to_primitive(alg.log(group))
    words, levels = word_levels(alg, steps, brackets, values)
    rows = jnp.concatenate(level_log(words, levels))
    rows = apply_rows(_primitive_rows(words, alg), rows)
    return rows.T.reshape(*lead, alg.primitive_size)


def _is_left_point(brackets: Any) -> bool:
    """Whether steps are left-point characters (in `Ito`: the same as realised)."""
    return isinstance(brackets, str) and brackets == "left-point"


def signature(
    path: Any, alg: AbstractHopfAlgebra, brackets: Any = None
) -> Float[Array, "..."]:
    r"""Signature of a sampled path: the pairings $\langle X, k\rangle$, $k$ in `basis`.

    Each segment contributes $\exp_*(\ell)$ with
    $\ell = \sum_i \delta X^i\, \bullet_i - \tfrac12 \sum_{ij} \delta A^{ij} [j]_i$,
    and segments are multiplied in order (Chen). The unit coefficient is not stored.

    Computed as a fixed linear image of the tensor signature over channels (canonical
    lift) or over channels and brackets (Itô), itself a few batched matrix products
    over time: memory is `O(length * sqrt(size))`, also for gradients.

    **Arguments:**

    - `path`: array `(..., times, dim)` or a [`arborax.SampledPath`][]. A single point
        has the unit signature (zeros). Repeated points contribute nothing.
    - `alg`: the algebra, with `dim` channels.
    - `brackets`: increments of the quadratic covariation. `None`: canonical
        (Stratonovich, piecewise linear) lift. `"realised"`: $\delta X \delta X^\top$.
        Array `(..., times - 1, dim, dim)`: supplied, symmetric, differentiable.
        `"left-point"`: tree coordinates are the left-point iterated sums at every
        depth. `Shuffle` refuses brackets, `Ito` requires them.

    **Returns:**

    Array `(..., alg.size)` of the dtype of the path.
    """
    values, brackets = read_path(path, alg, brackets)
    return signature_of_steps(alg, jnp.diff(values, axis=-2), brackets, values)


def log_signature(
    path: Any, alg: AbstractHopfAlgebra, brackets: Any = None
) -> Float[Array, "..."]:
    """Log-signature of a sampled path: coordinates in `alg.primitive_basis`.

    For `Shuffle`, `Ito` and `MuntheKaasWright` these are coefficients of bracketed
    Lyndon words; for `GrossmanLarson` pairings with trees. The logarithm is taken in
    words, where it is cheapest, and carried over by a sparse map. Arguments as in
    [`arborax.signature`][].

    **Returns:**

    Array `(..., alg.primitive_size)`.
    """
    values, brackets = read_path(path, alg, brackets)
    return log_signature_of_steps(alg, jnp.diff(values, axis=-2), brackets, values)


def combine(alg: AbstractHopfAlgebra, s: Array, t: Array) -> Float[Array, "..."]:
    """Chen's identity: the signature over two adjacent intervals, in time order."""
    return alg.product(jnp.asarray(s), jnp.asarray(t))


def signature_from_increments(
    alg: AbstractHopfAlgebra, ell: Float[Array, "..."]
) -> Float[Array, "..."]:
    r"""Signature of a general (branched) rough path given step by step.

    The product over steps of $\exp_*(\ell_k)$ for *any* primitive elements $\ell_k$,
    for instance two-vertex trees that are not symmetric, or larger trees.

    **Arguments:**

    - `ell`: `(..., steps, alg.primitive_size)`, coordinates in `primitive_basis`.

    **Returns:**

    Array `(..., alg.size)`. Steps are multiplied in about `sqrt(steps)` chunks, each
    recomputed in the backward pass, so memory grows like `sqrt(steps) * size`.
    """
    ell = jnp.asarray(ell)
    if ell.ndim < 2:
        raise ValueError(
            f"`ell` must have shape (..., steps, {alg.primitive_size}), got {ell.shape}"
        )
    alg._check(ell, "ell", primitive=True)
    steps = ell.shape[-2]
    chunk = max(1, int(steps**0.5))
    count = max(1, -(-steps // chunk))
    pad = [(0, 0)] * (ell.ndim - 2) + [(0, count * chunk - steps), (0, 0)]
    ell = jnp.pad(ell, pad).reshape(*ell.shape[:-2], count, chunk, ell.shape[-1])

    @jax.checkpoint
    def advance(group, piece):
        group = alg.product(group, _ordered_product(alg, piece))
        return group, None

    start = jnp.zeros((*ell.shape[:-3], alg.size), ell.dtype)
    group, _ = jax.lax.scan(advance, start, jnp.moveaxis(ell, -3, 0))
    return group


def _ordered_product(alg: AbstractHopfAlgebra, ell: Array) -> Array:
    group = alg.exp(alg.from_primitive(ell))
    while group.shape[-2] > 1:
        if group.shape[-2] % 2:
            pad = [(0, 0)] * (group.ndim - 2) + [(0, 1), (0, 0)]
            group = jnp.pad(group, pad)
        group = alg.product(group[..., ::2, :], group[..., 1::2, :])
    return group[..., 0, :]

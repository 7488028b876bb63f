"""Signatures and log-signatures of sampled paths."""

import functools as ft
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._values import is_concrete
from .._xla import apply_map, apply_rows, barrier, even, scan
from ..algebra import (
    AbstractHopfAlgebra,
    AbstractWordAlgebra,
    primitive_conversion,
    SparseMap,
    word_algebra,
)
from ._chain import chained, is_long, left_point_chain, word_chain
from ._depth_two import two_levels
from ._increments import is_left_point, letter_increments, read_elements, read_path
from ._tensor import cached_levels
from ._trees import multiply_trees
from ._words import level_log


@ft.cache
def _image_rows(words: AbstractWordAlgebra, alg: AbstractHopfAlgebra) -> SparseMap:
    """Signature in words to coordinates of `alg` from which the others follow."""
    embed, free = alg.from_words(words), alg.free_positions
    return embed if free is None else embed.take_rows(free)


@ft.cache
def _primitive_rows(words: AbstractWordAlgebra, alg: AbstractHopfAlgebra) -> SparseMap:
    """Logarithm in words to primitive coordinates of `alg`."""
    return primitive_conversion(words, alg) @ words.primitive_maps[0]


def _merged(x: Any, core: int) -> Any:
    """All axes before the last `core` ones as one; `None` and strings as they are."""
    if isinstance(x, str | None):
        return x
    cut = x.ndim - core
    return x.reshape(math.prod(x.shape[:cut]), *x.shape[cut:])


def _time_last(steps: Any, values: Any) -> tuple[Array, Array | None]:
    """Increments `(batch, dim, steps)` and values `(batch, dim, points)`, either given.
    Where values are given, the last point may be repeated a few times."""
    if values is None:
        return jnp.swapaxes(steps, 1, 2), None
    values = barrier(even(jnp.swapaxes(values, 1, 2)))
    return values[..., 1:] - values[..., :-1], values


def _word_levels(words: AbstractWordAlgebra, steps: Any, brackets: Any, values: Any):
    """Levels `(words, batch)` of a signature over words."""
    last, values = _time_last(steps, values)
    if not isinstance(brackets, str | None):
        fill = last.shape[-1] - brackets.shape[1]
        brackets = jnp.pad(brackets, ((0, 0), (0, fill), (0, 0), (0, 0)))
    if words.depth > 2 or len(words.letter_counts) > 1:  # used more than once
        last = barrier(last)
    letters = letter_increments(words, last, brackets)
    if last.shape[-1] == 0:  # a single point: the unit
        letters = [jnp.zeros((*x.shape[:-1], 1), x.dtype) for x in letters]
        values = None
    if words.depth > 2 and is_long(letters):  # at depth two streams are as the path
        return chained(word_chain(words), letters)
    return cached_levels(words, letters, values)


def _word_rows(
    words: AbstractWordAlgebra, steps: Any, brackets: Any, values: Any, *, log: bool
) -> Float[Array, "words batch"]:
    """A signature over words, or its logarithm, with all leading axes as one."""
    steps, values = _merged(steps, 2), _merged(values, 2)
    brackets = _merged(brackets, 3)
    if values is not None and words.depth == 2:
        return two_levels(words, values, brackets, log).T
    levels = _word_levels(words, steps, brackets, values)
    return jnp.concatenate(level_log(words, levels) if log else levels)


def _left_point_rows(alg: AbstractHopfAlgebra, steps: Any, values: Any) -> Array:
    """The signature `(size, batch)` of left-point sums."""
    last, _ = _time_last(steps, values)
    if last.shape[-1] == 0:
        return jnp.zeros((alg.size, last.shape[0]), last.dtype)
    chain = left_point_chain(alg)
    return (chained(chain, [last]) if is_long([last]) else chain.piece([last]))[0]


def signature_of_steps(
    alg: AbstractHopfAlgebra,
    steps: Array | None,
    brackets: Any,
    values: Array | None = None,
) -> Array:
    """Signature `(..., size)` from increments `(..., steps, dim)` or from values.

    Values `(..., times, dim)` are preferred where they are known: they save running
    sums.
    """
    lead = (values if steps is None else steps).shape[:-2]
    if is_left_point(brackets) and alg.tree_algebra is not None:
        if alg.tree_algebra != alg:
            log = log_signature_of_steps(alg, steps, brackets, values)
            return alg.exp(alg.from_primitive(log))
        rows = _left_point_rows(alg, _merged(steps, 2), _merged(values, 2))
        return rows.T.reshape(*lead, alg.size)
    words = word_algebra(alg, brackets is not None)
    rows = _word_rows(words, steps, brackets, values, log=False)
    if words is not alg:
        rows = apply_rows(_image_rows(words, alg), rows)
        if alg.free_positions is not None:
            rows = multiply_trees(alg, rows)
    return rows.T.reshape(*lead, alg.size)


def log_signature_of_steps(
    alg: AbstractHopfAlgebra,
    steps: Array | None,
    brackets: Any,
    values: Array | None = None,
) -> Array:
    """Log-signature `(..., primitive_size)`; arguments as in `signature_of_steps`."""
    trees = alg.tree_algebra
    if is_left_point(brackets) and trees is not None:
        group = signature_of_steps(trees, steps, brackets, values)
        log = trees.to_primitive(trees.log(group))
        return log if trees == alg else apply_map(primitive_conversion(trees, alg), log)
    lead = (values if steps is None else steps).shape[:-2]
    words = word_algebra(alg, brackets is not None)
    rows = _word_rows(words, steps, brackets, values, log=True)
    rows = apply_rows(_primitive_rows(words, alg), rows)
    return rows.T.reshape(*lead, alg.primitive_size)


def expanding_log_of_steps(
    alg: AbstractHopfAlgebra, steps: Array, brackets: Any
) -> Array:
    """Log-signatures `(..., steps, primitive_size)` of the first step, the first two,
    and so on; arguments as in `signature_of_steps`."""
    words, trees = word_algebra(alg, brackets is not None), alg.tree_algebra
    if not is_left_point(brackets):
        trees = None
    if words.depth == 2 and trees is None:
        logs = _two_running_levels(words, steps, brackets)
        return apply_map(_primitive_rows(words, alg), logs)
    each = brackets
    if not isinstance(brackets, str | None):
        each = brackets[..., None, :, :]
    working = words if trees is None else trees
    each = signature_of_steps(working, steps[..., None, :], each)
    axis = each.ndim - 2
    logs = working.log(jax.lax.associative_scan(working.product, each, axis=axis))
    if trees is None:
        return apply_map(_primitive_rows(words, alg), logs)
    logs = trees.to_primitive(logs)
    return logs if trees == alg else apply_map(primitive_conversion(trees, alg), logs)


def _two_running_levels(words: AbstractWordAlgebra, steps: Array, brackets: Any):
    """The logarithm in words of depth two, `(..., steps, words)`."""
    total = jnp.cumsum(steps, axis=-2)
    before = total - steps
    pairs = before[..., :, None] * steps[..., None, :]
    area = jnp.cumsum(pairs - jnp.swapaxes(pairs, -1, -2), axis=-3) / 2
    levels = [total, area.reshape(*total.shape[:-1], -1)]
    if len(words.letter_counts) > 1:
        last = jnp.swapaxes(steps, -1, -2)
        letters = jnp.swapaxes(letter_increments(words, last, brackets)[1], -1, -2)
        levels.append(jnp.cumsum(letters, axis=-2))
    return jnp.concatenate(levels, axis=-1)


@ft.partial(jax.jit, static_argnums=(0, 1, 2))
def _compiled(
    of_steps: Callable, alg: AbstractHopfAlgebra, mode: str | None, brackets, values
) -> Array:
    return of_steps(alg, None, mode if brackets is None else brackets, values)


def _of_values(
    of_steps: Callable, alg: AbstractHopfAlgebra, brackets: Any, values: Array
) -> Array:
    """`of_steps` of values that are known now as one program, compiled once per shape.

    Called step by step, its loops would be compiled again in every call.
    """
    if not is_concrete(brackets, values):
        return of_steps(alg, None, brackets, values)
    if isinstance(brackets, str | None):
        return _compiled(of_steps, alg, brackets, None, values)
    return _compiled(of_steps, alg, None, brackets, values)


def signature(
    path: Any, alg: AbstractHopfAlgebra, brackets: Any = None
) -> Float[Array, "..."]:
    r"""Signature of a path: its iterated integrals, one for each key of `alg.basis`.

    !!! example

        ```python
        abx.signature(path, abx.Shuffle(dim=2, depth=3))          # (..., 14)
        abx.signature(path, abx.Ito(dim=2, depth=2), "realised")  # Itô calculus
        ```

    Each segment contributes $\exp_*(\ell)$ with $\ell = \sum_i \delta X^i\, \bullet_i -
    \tfrac12 \sum_{ij} \delta A^{ij} [j]_i$. Segments are multiplied in order (Chen's
    identity). The leading 1 is not stored.

    Cost: a few batched matrix products over time and one sparse linear map. Memory per
    path, gradient included, is `O(B * size^(3/4) + size + length * dim)` for blocks of
    `B <= 256` steps (with brackets, `dim^2` instead of `dim`). It does not grow with
    `length * size`. Second derivatives also keep one signature per block.

    **Arguments:**

    - `path`: array `(..., times, dim)` or a [`arborax.SampledPath`][]. A single point
        gives the unit signature (zeros). Repeated points contribute nothing.
    - `alg`: the algebra, with `dim` channels. Your own algebra works too: its
        `elementary_step` defines what one step of the path contributes.
    - `brackets`: increments of the quadratic covariation. `Ito` requires them,
        `Shuffle` takes none. `None`: the canonical lift (Stratonovich, piecewise
        linear). `"realised"`: $\delta X \delta X^\top$ of the observed increments, see
        [`arborax.SampledPath.realised_brackets`][]; zero for channels of finite
        variation, such as time in the first channel of `SampledPath(ts, xs,
        finite_variation=(0,))`. `"left-point"`: left-point iterated sums of all
        channels, at every depth. Missing values are then carried forward, and an
        interpolated path raises an error. An array `(..., times - 1, dim, dim)`: your
        own, symmetric; it may be differentiated.

    **Returns:**

    Array `(..., alg.size)` of the dtype of the path. Non-finite values raise an error;
    in compiled code the whole signature of such a path is NaN.
    """
    read = read_path(path, alg, brackets)
    return read.guard(_of_values(signature_of_steps, alg, read.brackets, read.values))


def log_signature(
    path: Any, alg: AbstractHopfAlgebra, brackets: Any = None
) -> Float[Array, "..."]:
    """Log-signature of a path: the same information as its signature, in fewer numbers.

    The coordinates are those of `alg.primitive_basis`: coefficients of bracketed Lyndon
    words for `Shuffle`, `Ito` and `MuntheKaasWright`, pairings with trees for
    `GrossmanLarson`. Arguments and cost are those of [`arborax.signature`][]; the
    logarithm is taken over words, where it is cheapest.

    **Returns:**

    Array `(..., alg.primitive_size)`.
    """
    read = read_path(path, alg, brackets)
    values = _of_values(log_signature_of_steps, alg, read.brackets, read.values)
    return read.guard(values)


def combine(s: Array, t: Array, alg: AbstractHopfAlgebra) -> Float[Array, "..."]:
    """Chen's identity: the signature over two adjacent intervals, in time order."""
    return alg.product(*read_elements(alg, s=s, t=t))


def signature_from_increments(
    ell: Float[Array, "..."], alg: AbstractHopfAlgebra
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
    (ell,) = read_elements(alg, primitive=True, ell=ell)
    if ell.ndim < 2:
        raise ValueError(
            f"`ell` must have shape (..., steps, {alg.primitive_size}), got {ell.shape}"
        )
    steps = ell.shape[-2]
    chunk = max(1, int(steps**0.5))
    count = max(1, -(-steps // chunk))
    pad = [(0, 0)] * (ell.ndim - 2) + [(0, count * chunk - steps), (0, 0)]
    ell = jnp.pad(ell, pad).reshape(*ell.shape[:-2], count, chunk, ell.shape[-1])

    @jax.checkpoint
    def advance(group, piece):
        whole = product_levels(alg, alg.exp(alg.from_primitive(piece)))[-1]
        return alg.product(group, whole[..., 0, :]), None

    start = jnp.zeros((*ell.shape[:-3], alg.size), ell.dtype)
    return scan(advance, start, jnp.moveaxis(ell, -3, 0))[0]


def product_levels(
    alg: AbstractHopfAlgebra, group: Float[Array, "..."]
) -> list[Float[Array, "..."]]:
    """Products of 1, 2, 4, .. neighbouring elements, the last of all of them."""
    levels = [group]
    while group.shape[-2] > 1:
        odd = group.shape[-2] % 2
        group = jnp.pad(group, [(0, 0)] * (group.ndim - 2) + [(0, odd), (0, 0)])
        group = alg.product(group[..., ::2, :], group[..., 1::2, :])
        levels.append(group)
    return levels

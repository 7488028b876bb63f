"""The tensor signature of a piecewise linear path over a weighted alphabet.

Level `n` of the signature is an integral over the position of one chosen letter,

    S_n = int Pre_p(t) (x) dX_t (x) Suf_q(t),   p + q + 1 = n,

where `Pre` is the signature up to time `t` and `Suf` the signature after it. Along a
linear segment both are polynomials of degree `p` and `q`. Held as coefficients of
Legendre polynomials, which are orthogonal, they make the level a sum of
`min(p, q) + 1` batched matrix products over time. Only streams of about half the depth
are ever formed, so time and memory are `O(L sqrt(size))` apart from those products,
and no loop runs over time.

The streams follow level by level: the next one is an integral of the one before times
the letter. The integral of a Legendre polynomial is a difference of its two
neighbours, and over a whole segment only the coefficient of degree zero counts.

Letters have weight one or two (the brackets of the Itô alphabet); a word is reached
through the letter that holds, or straddles, the middle of its weight.
"""

import functools as ft
import itertools as it
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._xla import apply_rows, in_pieces, is_symbolic, outer, running_sums
from ..algebra import AbstractWordAlgebra, selection, SparseMap


_CACHE = 2**21  # bytes of streams that fit into the cache of a CPU


class _Group(NamedTuple):
    """Words `u l v` with `u` of weight `left`, `v` of weight `right`."""

    left: int
    letter_weight: int
    right: int


class _Level(NamedTuple):
    groups: tuple[_Group, ...]
    order: SparseMap | None  # permutation to basis order; None when already in order


class _Plan(NamedTuple):
    prefix: int
    suffix: int
    levels: tuple[_Level, ...]


def _split(n: int, depth: int) -> int:
    """Weight before the chosen letter in words of weight `n`.

    The middle; but where prefixes of weight `n - 1` are formed anyway, the last letter:
    a product with them also makes XLA store values that it would compute many times.
    """
    middle = (depth - 1) // 2
    return n - 1 if n - 1 <= middle else (n - 1) // 2


def _spelled(letters: dict[int, list[tuple]], depth: int, front: bool) -> list[list]:
    """Words of each weight below `depth`, as streams have them: those of lower weight
    with a letter behind them, or in `front`."""
    out: list[list[tuple]] = [[()]]
    for m in range(1, depth):
        level = []
        for w in range(1, min(m, 2) + 1):
            pair = (out[m - w], letters[w])
            level += [u + v for u, v in it.product(*(pair[::-1] if front else pair))]
        out.append(level)
    return out


@ft.cache
def _plan(words: AbstractWordAlgebra) -> _Plan:
    depth = words.depth
    places = {w: np.flatnonzero(words.letter_weights == w) for w in (1, 2)}
    letters = {w: [(int(a),) for a in row] for w, row in places.items()}
    prefixes, suffixes = (_spelled(letters, depth, front) for front in (False, True))
    levels = []
    for n in range(1, depth + 1):
        p = _split(n, depth)
        groups = [_Group(p, 1, n - 1 - p)]
        if letters[2] and n - 2 - p >= 0:
            groups.append(_Group(p, 2, n - 2 - p))
        if letters[2] and p >= 1:
            groups.append(_Group(p - 1, 2, n - 1 - p))
        position: dict[tuple, int] = {}
        for g in groups:
            parts = prefixes[g.left], letters[g.letter_weight], suffixes[g.right]
            for u, a, v in it.product(*parts):
                position[u + a + v] = len(position)
        here = [w for w, weight in zip(words.words, words.weights) if weight == n]
        order = [position[word] for word in here]
        in_order = order == sorted(order)
        permute = None if in_order else selection(order, len(order))
        levels.append(_Level(tuple(groups), permute))
    prefix = max(g.left for level in levels for g in level.groups)
    suffix = max(g.right for level in levels for g in level.groups)
    return _Plan(prefix, suffix, tuple(levels))


def _integral(slope: list, start: Array) -> list:
    """Coefficients of `start` plus the integral from the beginning of the segment.

    On `[0, 1]` the integral of the Legendre polynomial `P_k` is
    `(P_{k+1} - P_{k-1}) / (4 k + 2)`, that of `P_0` is `(P_0 + P_1) / 2`.
    """
    out = [start + 0.5 * slope[0]]
    for k, x in enumerate(slope):
        out.append(x / (4 * k + 2))
        if k > 0:
            out[k - 1] = out[k - 1] - x / (4 * k + 2)
    return out


def _streams(letters: list, values: Any, depth: int, suffix: bool) -> list[list]:
    """Signatures before (or after) the points of every segment, by weight.

    **Returns:** for each weight from one the coefficients of Legendre polynomials along
    the segment (for suffixes: along the reversed segment), arrays
    `(batch, words, steps)`; entry 0 is empty. They are never stacked: products and sums
    then run along contiguous time, and no derivative has to be padded.
    """
    streams: list[list] = [[]]
    for m in range(1, depth + 1):
        parts = []  # for each letter weight a list over degrees
        for w, step in enumerate(letters, start=1):
            if w > m:
                continue
            inner = streams[m - w]
            slope = [outer(step, x) if suffix else outer(x, step) for x in inner]
            slope = slope or [step]  # a single letter
            if m == 1 and values is not None:  # the path itself
                ends = values[..., 1:] if suffix else values[..., :-1]
                sums = values[..., -1:] - ends if suffix else ends - values[..., :1]
            else:
                sums = running_sums(slope[0], reverse=suffix)
            parts.append(_integral(slope, sums))
        streams.append(_side_by_side(parts))
    return streams


def _side_by_side(parts: list[list]) -> list:
    """Words of all parts, for each degree; a letter of weight two has lower ones."""
    if len(parts) == 1:
        return parts[0]
    top = max(map(len, parts))
    filled = [x + [jnp.zeros_like(x[0])] * (top - len(x)) for x in parts]
    return [jnp.concatenate(degree, axis=1) for degree in zip(*filled)]


def cached_levels(
    words: AbstractWordAlgebra,
    letters: list[Float[Array, "batch _ steps"]],
    values: Float[Array, "batch dim points"] | None = None,
) -> list[Float[Array, "_ batch"]]:
    """As `tensor_levels`, on a CPU a few paths at a time where streams are large.

    Streams of the whole batch would have to be written to memory and read back, at the
    deepest levels several times; reverse mode recomputes them for the same reason.
    Other devices take the batch as a whole.
    """
    batch = letters[0].shape[0]
    one = _bytes_of_streams(words, letters)
    small = is_symbolic(batch) or batch * one < 8 * _CACHE
    if small or jax.default_backend() != "cpu":
        return tensor_levels(words, letters, values)
    size = max(4, _CACHE // one)  # matrix products of fewer than four paths are slow
    function = ft.partial(tensor_levels, words)
    return in_pieces(function, (letters, values), size, place="last")


def _bytes_of_streams(words: AbstractWordAlgebra, letters: list[Array]) -> int:
    """All coefficients of the streams of one path and of prefixes times letters."""
    plan = _plan(words)
    count = [1, *(int(np.sum(words.weights == m)) for m in range(1, words.depth + 1))]
    leads = {(g.left, g.letter_weight) for v in plan.levels for g in v.groups}
    rows = sum(
        (m + 1) * count[m]
        for top in (plan.prefix, plan.suffix)
        for m in range(1, top + 1)
    )
    rows += sum((m + 1) * count[m] * letters[w - 1].shape[1] for m, w in leads)
    return rows * letters[0].shape[-1] * letters[0].dtype.itemsize


def tensor_levels(
    words: AbstractWordAlgebra,
    letters: list[Float[Array, "batch _ steps"]],
    values: Float[Array, "batch dim points"] | None = None,
) -> list[Float[Array, "_ batch"]]:
    """Signature of a piecewise linear path, weight by weight, in basis order, from
    increments of the letters of weight one and, for `Ito`, of weight two. The path
    itself, `values`, saves running sums of the first, if it is given.

    **Returns:** one array `(words of weight n, batch)` for each weight `n = 1..depth`.
    """
    plan = _plan(words)
    prefix = _streams(letters, values, plan.prefix, suffix=False)
    suffix = _streams(letters, values, plan.suffix, suffix=True)
    batch = letters[0].shape[0]

    @ft.cache
    def lead(left: int, letter_weight: int) -> list:
        """Prefix x letter, a list over degrees."""
        step = letters[letter_weight - 1]
        return [outer(x, step) for x in prefix[left]] or [step]

    def total(letter_weight: int):
        if values is not None and letter_weight == 1:
            return values[..., -1] - values[..., 0]
        return letters[letter_weight - 1].sum(axis=-1)

    out = []
    for level in plan.levels:
        parts = []
        for left, letter_weight, right in level.groups:
            if left == right == 0:
                parts.append(total(letter_weight))
                continue
            if right == 0:  # only the mean along the segment counts
                heads, trails = prefix[left][:1], [letters[letter_weight - 1]]
            else:
                heads, trails = lead(left, letter_weight), suffix[right]
            parts.append(_over_segments(heads, trails).reshape(batch, -1))
        flat = parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis=1)
        out.append(flat.T if level.order is None else apply_rows(level.order, flat.T))
    return out


def _over_segments(heads: list, trails: list) -> Float[Array, "batch i j"]:
    """Integral of a product over all segments, trails along the reversed segment.

    `P_k` has the square integral `1 / (2 k + 1)` and is odd about the middle for odd
    `k`. Degrees of which the other factor has none do not count.
    """
    products = [jnp.einsum("bit,bjt->bij", *pair) for pair in zip(heads, trails)]
    total = products[0]
    for k, product in enumerate(products[1:], start=1):
        total = total + (-1) ** k / (2 * k + 1) * product
    return total

"""The tensor signature of a piecewise linear path over a weighted alphabet.

Level `n` of the signature is an integral over the position of one chosen letter,

    S_n = int Pre_p(t) (x) dX_t (x) Suf_q(t),   p + q + 1 = n,

where `Pre` is the signature up to time `t` and `Suf` the signature after it. Along a
linear segment the integrand is a polynomial of degree below `n`, so Gauss-Legendre
quadrature with `ceil(N/2)` nodes per segment is exact, and the level is one batched
matrix product over time. Only streams of about half the depth are ever formed, so
time and memory are `O(L sqrt(size))` apart from that product, and no loop runs over
time. The streams themselves follow from collocation at the same nodes, again exactly.

Letters have weight one or two (the brackets of the Itô alphabet); a word is reached
through the letter that holds, or straddles, the middle of its weight.
"""

import functools as ft
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..algebra import Ito, Shuffle, SparseMap
from ._outer import outer
from ._sparse_rows import apply_rows


_BLOCK = 16
_CACHE = 2**21  # bytes of streams that a CPU keeps at hand


class _Group(NamedTuple):
    """Words `u l v` with `u` of weight `left`, `v` of weight `right`."""

    left: int
    letter_weight: int
    right: int


class _Level(NamedTuple):
    groups: tuple[_Group, ...]
    order: SparseMap | None  # permutation to basis order; None when already in order


class _Plan(NamedTuple):
    nodes: np.ndarray
    weights: np.ndarray
    collocation: np.ndarray  # integrals of the Lagrange polynomials up to each node
    prefix: int
    suffix: int
    levels: tuple[_Level, ...]


def _split(n: int, depth: int) -> int:
    """Weight before the chosen letter in words of weight `n`.

    The middle; but where prefixes of weight `n - 1` are formed anyway, the last letter:
    a product with them also makes XLA store what it would else compute many times.
    """
    middle = (depth - 1) // 2
    return n - 1 if n - 1 <= middle else (n - 1) // 2


@ft.cache
def _plan(words: Shuffle | Ito) -> _Plan:
    depth = words.depth
    count = (depth + 1) // 2
    nodes, weights = np.polynomial.legendre.leggauss(count)
    nodes, weights = (nodes + 1) / 2, weights / 2
    powers = np.arange(count)
    vandermonde = nodes[:, None] ** powers
    integrals = nodes[:, None] ** (powers + 1) / (powers + 1)
    collocation = integrals @ np.linalg.inv(vandermonde)

    letters = {w: np.flatnonzero(words.letter_weights == w).tolist() for w in (1, 2)}
    prefixes: list[list[tuple]] = [[()]]
    suffixes: list[list[tuple]] = [[()]]
    for m in range(1, depth):
        prefixes.append(
            [
                (*u, a)
                for w in (1, 2)
                if w <= m
                for u in prefixes[m - w]
                for a in letters[w]
            ]
        )
        suffixes.append(
            [
                (a, *v)
                for w in (1, 2)
                if w <= m
                for a in letters[w]
                for v in suffixes[m - w]
            ]
        )
    levels = []
    for n in range(1, depth + 1):
        p = _split(n, depth)
        groups = [_Group(p, 1, n - 1 - p)]
        if letters[2]:
            if n - 2 - p >= 0:
                groups.append(_Group(p, 2, n - 2 - p))
            if p >= 1:
                groups.append(_Group(p - 1, 2, n - 1 - p))
        spelled = [
            (*u, a, *v)
            for g in groups
            for u in prefixes[g.left]
            for a in letters[g.letter_weight]
            for v in suffixes[g.right]
        ]
        here = [w for w, weight in zip(words.words, words.weights) if weight == n]
        position = {word: k for k, word in enumerate(spelled)}
        order = np.array([position[word] for word in here])
        in_order = np.array_equal(order, np.arange(len(order)))
        many = len(order)
        permute = SparseMap(np.arange(many), order, np.ones(many), (many, many))
        levels.append(_Level(tuple(groups), None if in_order else permute))
    prefix = max(g.left for level in levels for g in level.groups)
    suffix = max(g.right for level in levels for g in level.groups)
    return _Plan(nodes, weights, collocation, prefix, suffix, tuple(levels))


def running_sums(
    x: Float[Array, "a b steps"], reverse: bool
) -> Float[Array, "a b steps"]:
    """Sums over the steps before each step (after it, if `reverse`), without itself.

    Products with small triangular matrices, block by block: faster than a scan, and the
    transpose is of the same kind.
    """
    batch, words, steps = x.shape
    block = min(_BLOCK, steps)
    blocks = -(-steps // block)
    if blocks * block != steps:
        x = jnp.pad(x, ((0, 0), (0, 0), (0, blocks * block - steps)))
    x = x.reshape(batch * words * blocks, block)
    side = np.tril if reverse else np.triu
    strict = -1 if reverse else 1
    within = x @ jnp.asarray(side(np.ones((block, block)), strict), x.dtype)
    totals = x @ jnp.ones((block, 1), x.dtype)  # a product: see `_outer` about sums
    totals = totals.reshape(batch * words, blocks)
    across = totals @ jnp.asarray(side(np.ones((blocks, blocks)), strict), x.dtype)
    sums = within.reshape(batch, words, blocks, block)
    sums = sums + across.reshape(batch, words, blocks, 1)
    return sums.reshape(batch, words, blocks * block)[:, :, :steps]


def _mix(factors, arrays: list):
    """A linear combination, written out."""
    total = float(factors[0]) * arrays[0]
    for factor, x in zip(factors[1:], arrays[1:]):
        total = total + float(factor) * x
    return total


def _streams(plan: _Plan, letters: list, values: Any, depth: int, suffix: bool):
    """Signatures before (or after) every node of every segment, by weight.

    **Returns:** for each weight a list over nodes of arrays `(batch, words, steps)`;
    entry 0 is `None`. Nodes are never stacked: products and sums then run along
    contiguous time, and no derivative has to be padded.
    """
    nodes = 1 - plan.nodes if suffix else plan.nodes
    # Gauss nodes are symmetric: integrals from a node to the end of the segment are
    # the collocation weights of the reversed segment.
    table = plan.collocation[::-1, ::-1] if suffix else plan.collocation
    streams: list = [None]
    for m in range(1, depth + 1):
        parts = []  # for each letter weight a list over nodes
        for w, step in enumerate(letters, start=1):
            if w > m:
                continue
            if w == m:  # a single letter: linear along the segment
                rise = step
                local = [float(node) * step for node in nodes]
            else:
                inner = streams[m - w]
                slope = [outer(step, x) if suffix else outer(x, step) for x in inner]
                local = [_mix(row, slope) for row in table]
                rise = _mix(plan.weights, slope)
            if m == 1 and values is not None:  # the path itself
                ends = values[..., 1:] if suffix else values[..., :-1]
                sums = values[..., -1:] - ends if suffix else ends - values[..., :1]
            else:
                sums = running_sums(rise, reverse=suffix)
            parts.append([sums + x for x in local])
        streams.append([_concatenate(node) for node in zip(*parts)])
    return streams


def _concatenate(parts):
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis=1)


def cached_levels(
    words: Shuffle | Ito,
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
    if batch * one < 4 * _CACHE or jax.default_backend() != "cpu":
        return tensor_levels(words, letters, values)
    # Matrix products of fewer than four paths are slow.
    count = -(-batch // max(4, _CACHE // one))
    size = -(-batch // count)

    def cut(x: Array) -> Array:
        x = jnp.pad(x, ((0, count * size - batch), (0, 0), (0, 0)))
        return x.reshape(count, size, *x.shape[1:])

    levels = jax.lax.map(
        jax.checkpoint(lambda part: tensor_levels(words, *part), prevent_cse=False),
        jax.tree_util.tree_map(cut, (letters, values)),
    )
    joined = [jnp.swapaxes(x, 0, 1).reshape(x.shape[1], -1) for x in levels]
    return [x[:, :batch] for x in joined]


def _bytes_of_streams(words: Shuffle | Ito, letters: list[Array]) -> int:
    """The widest streams of one path, at all nodes."""
    plan = _plan(words)
    widest = max(
        max(1, int(np.sum(words.weights == g.left)))
        * letters[g.letter_weight - 1].shape[1]
        for level in plan.levels
        for g in level.groups
    )
    steps, size = letters[0].shape[-1], letters[0].dtype.itemsize
    return len(plan.nodes) * widest * steps * size


def tensor_levels(
    words: Shuffle | Ito,
    letters: list[Float[Array, "batch _ steps"]],
    values: Float[Array, "batch dim points"] | None = None,
) -> list[Float[Array, "_ batch"]]:
    """Signature of a piecewise linear path, weight by weight, in basis order.

    **Arguments:**

    - `words`: the word algebra.
    - `letters`: increments of the letters of weight one and, for `Ito` of depth two or
        more, of weight two; each `(batch, letters, steps)`, time last.
    - `values`: the path whose increments are the letters of weight one, if at hand; it
        saves their running sums.

    **Returns:**

    One array `(words of weight n, batch)` for each weight `n = 1..depth`.
    """
    plan = _plan(words)
    prefix = _streams(plan, letters, values, plan.prefix, suffix=False)
    suffix = _streams(plan, letters, values, plan.suffix, suffix=True)
    batch = letters[0].shape[0]

    @ft.cache
    def lead(left: int, letter_weight: int) -> list:
        """Prefix x letter, a list over nodes."""
        step = letters[letter_weight - 1]
        if left == 0:
            return [step for _ in plan.weights]
        return [outer(x, step) for x in prefix[left]]

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
            if right == 0:
                heads = prefix[left]
                trails = [letters[letter_weight - 1] for _ in plan.weights]
            else:
                heads, trails = lead(left, letter_weight), suffix[right]
            products = [
                jnp.einsum("bit,bjt->bij", head, trail)
                for head, trail in zip(heads, trails)
            ]
            product = _mix(plan.weights, products)
            parts.append(product.reshape(batch, -1))
        flat = _concatenate(parts)
        out.append(flat.T if level.order is None else apply_rows(level.order, flat.T))
    return out

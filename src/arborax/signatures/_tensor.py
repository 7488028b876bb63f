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

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..algebra import Ito, Shuffle, SparseMap
from ._nodes import mix_nodes
from ._outer import outer
from ._sparse_rows import apply_rows


_BLOCK = 16


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


def _split(n: int) -> int:
    return (n - 1) // 2


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
        p = _split(n)
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
    x = jnp.pad(x, ((0, 0), (0, 0), (0, blocks * block - steps)))
    x = x.reshape(batch * words * blocks, block)
    side = np.tril if reverse else np.triu
    strict = -1 if reverse else 1
    within = x @ jnp.asarray(side(np.ones((block, block)), strict), x.dtype)
    totals = x.sum(axis=1).reshape(batch * words, blocks)
    across = totals @ jnp.asarray(side(np.ones((blocks, blocks)), strict), x.dtype)
    sums = within.reshape(batch, words, blocks, block)
    sums = sums + across.reshape(batch, words, blocks, 1)
    return sums.reshape(batch, words, blocks * block)[:, :, :steps]


def _streams(plan: _Plan, letters: list, values: Any, depth: int, suffix: bool):
    """Signatures before (or after) every node of every segment, by weight.

    **Returns:** a list of arrays `(batch, words, nodes, steps)`, entry 0 being `None`.
    """
    nodes = 1 - plan.nodes if suffix else plan.nodes
    # Gauss nodes are symmetric: integrals from a node to the end of the segment are
    # the collocation weights of the reversed segment.
    table = plan.collocation[::-1, ::-1] if suffix else plan.collocation
    streams: list = [None]
    for m in range(1, depth + 1):
        parts = []
        for w, step in enumerate(letters, start=1):
            if w > m:
                continue
            if w == m:  # a single letter: linear along the segment
                rise = step
                local = _at_nodes(nodes, step)
            else:
                inner = streams[m - w]
                shape = (*step.shape[:2], *inner.shape[2:])
                step = jnp.broadcast_to(step[:, :, None, :], shape)
                slope = outer(step, inner) if suffix else outer(inner, step)
                both = mix_nodes(np.vstack([table, plan.weights]), slope)
                local, rise = both[:, :, :-1], both[:, :, -1]
            if m == 1 and values is not None:  # the path itself
                ends = values[..., 1:] if suffix else values[..., :-1]
                sums = values[..., -1:] - ends if suffix else ends - values[..., :1]
            else:
                sums = running_sums(rise, reverse=suffix)
            parts.append(sums[:, :, None, :] + local)
        streams.append(parts[0] if len(parts) == 1 else jnp.concatenate(parts, 1))
    return streams


def _at_nodes(factors: np.ndarray, x):
    """`(batch, words, steps)` times a factor for each node, on a new node axis."""
    return mix_nodes(factors[:, None], x[:, :, None])


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
    batch, _, steps = letters[0].shape
    count = len(plan.nodes)
    weighted = [_at_nodes(plan.weights, step) for step in letters]

    def rows(stream):
        return stream.reshape(batch, -1, count * steps)

    @ft.cache
    def lead(left: int, letter_weight: int):
        """Quadrature weight x prefix x letter at every node."""
        step = weighted[letter_weight - 1]
        return rows(step if left == 0 else outer(prefix[left], step))

    out = []
    for level in plan.levels:
        parts = []
        for left, letter_weight, right in level.groups:
            if left == right == 0:
                parts.append(letters[letter_weight - 1].sum(axis=-1))
                continue
            if right == 0:
                head, trail = rows(prefix[left]), rows(weighted[letter_weight - 1])
            else:
                head, trail = lead(left, letter_weight), rows(suffix[right])
            product = jnp.einsum("bit,bjt->bij", head, trail)
            parts.append(product.reshape(batch, -1))
        flat = parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis=-1)
        out.append(flat.T if level.order is None else apply_rows(level.order, flat.T))
    return out

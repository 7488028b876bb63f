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


def _outer(left, right):
    """`(batch, m, ...), (batch, n, ...) -> (batch, m n, ...)`."""
    product = left[:, :, None] * right[:, None, :]
    return product.reshape(product.shape[0], -1, *product.shape[3:])


def _streams(plan: _Plan, letters: list, values: Any, depth: int, suffix: bool):
    """Signatures before (or after) every node of every segment, by weight.

    **Returns:** a list of arrays `(batch, words, nodes, steps)`, entry 0 being `None`.
    """
    dtype = letters[0].dtype
    nodes = jnp.asarray(1 - plan.nodes if suffix else plan.nodes, dtype)
    nodes = nodes.reshape(1, 1, -1, 1)
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
                local = nodes * step[:, :, None, :]
            else:
                inner, step = streams[m - w], step[:, :, None, :]
                slope = _outer(step, inner) if suffix else _outer(inner, step)
                rise = _combine_nodes(plan.weights, slope)
                local = [_combine_nodes(row, slope) for row in table]
                local = jnp.stack(local, axis=2)
            if m == 1 and values is not None:  # the path itself
                ends = values[..., 1:] if suffix else values[..., :-1]
                sums = values[..., -1:] - ends if suffix else ends - values[..., :1]
            else:
                sums = running_sums(rise, reverse=suffix)
            parts.append(sums[:, :, None, :] + local)
        streams.append(parts[0] if len(parts) == 1 else jnp.concatenate(parts, 1))
    return streams


def _combine_nodes(weights: np.ndarray, x):
    """Weighted sum over the node axis of `(batch, words, nodes, steps)`."""
    first, *rest = (float(w) * x[:, :, k] for k, w in enumerate(weights))
    return sum(rest, start=first)


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
    weights = jnp.asarray(plan.weights, letters[0].dtype).reshape(1, 1, -1, 1)

    @ft.cache
    def lead(left: int, letter_weight: int):
        """Quadrature weight x prefix x letter at every node."""
        step = weights * letters[letter_weight - 1][:, :, None, :]
        out = step if left == 0 else _outer(prefix[left], step)
        return out.reshape(batch, -1, count * steps)

    out = []
    for level in plan.levels:
        parts = []
        for group in level.groups:
            if group.right == 0:
                parts.append(lead(group.left, group.letter_weight).sum(axis=-1))
                continue
            trail = suffix[group.right].reshape(batch, -1, count * steps)
            head = lead(group.left, group.letter_weight)
            product = jnp.einsum("bit,bjt->bij", head, trail)
            parts.append(product.reshape(batch, -1))
        flat = parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis=-1)
        out.append(flat.T if level.order is None else apply_rows(level.order, flat.T))
    return out

"""Left-point iterated sums over trees, the discrete Itô integral at every depth."""

import functools as ft
import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._xla import apply_rows, running_sums
from ..algebra import AbstractHopfAlgebra, SparseMap


@ft.cache
def _grafts(alg: AbstractHopfAlgebra) -> list[list[tuple]]:
    """For each weight, the terms of one step of every forest of that weight.

    The increment of `<X, t1 .. tm>` over a step is the sum over `k >= 1` of
    `<X, t1 .. t_{m-k}>` times the product over the last `k` trees `[g]_c` of
    `<X, g> dX^c`, divided by `k!` in the planar case. **Returns** per weight a list of
    `(rows, head, children, colours, scale)`, index arrays into the streams of forests
    (the last row, of ones, is the unit); `children`, `colours` have `k` columns.
    Non-planar forests of several trees are products and are left out.
    """
    planar = alg.planar

    def place(forest) -> int:
        return alg.index[forest] if forest else alg.size

    out = []
    for n in range(1, alg.depth + 1):
        groups: dict[int, list] = {}
        for row, forest in enumerate(alg.basis):
            if alg.weights[row] != n or (not planar and len(forest) > 1):
                continue
            for k in range(1, len(forest) + 1):
                cut = len(forest) - k
                colours = [tree[0] for tree in forest[cut:]]
                children = [place(tree[1]) for tree in forest[cut:]]
                term = (row, place(forest[:cut]), children, colours)
                groups.setdefault(k, []).append(term)
        level = []
        for k, terms in groups.items():
            row, head, children, colours = (np.array(c) for c in zip(*terms))
            level.append((row, head, children, colours, 1 / math.factorial(k)))
        out.append(level)
    return out


@ft.cache
def _forest_factors(
    alg: AbstractHopfAlgebra,
) -> tuple[list[list[SparseMap]], SparseMap]:
    """For `m = 2, 3, ..` the selections of the trees of all forests of `m` trees.

    The second value brings trees and forests, by number of trees, into basis order.
    """
    positions = alg.free_positions
    assert positions is not None
    free = {alg.basis[row]: k for k, row in enumerate(positions)}
    rows: dict[int, list[int]] = {}
    for row, forest in enumerate(alg.basis):
        rows.setdefault(len(forest), []).append(row)
    factors = []
    for m in range(2, alg.depth + 1):
        forests = [alg.basis[row] for row in rows[m]]
        columns = [[free[f[k : k + 1]] for f in forests] for k in range(m)]
        shape = (len(forests), len(free))
        count = np.arange(len(forests))
        ones = np.ones(len(forests))
        factors.append([SparseMap(count, column, ones, shape) for column in columns])
    joined = np.concatenate([rows[m] for m in range(1, alg.depth + 1)])
    size = (alg.size, alg.size)
    return factors, SparseMap(joined, np.arange(alg.size), np.ones(alg.size), size)


def multiply_trees(
    alg: AbstractHopfAlgebra, trees: Float[Array, "trees batch"]
) -> Float[Array, "size batch"]:
    """All forests from the coordinates of trees, by the character law."""
    factors, order = _forest_factors(alg)
    if not factors:
        return trees
    parts = [trees]
    for selections in factors:
        product = apply_rows(selections[0], trees)
        for selection in selections[1:]:
            product = product * apply_rows(selection, trees)
        parts.append(product)
    return apply_rows(order, jnp.concatenate(parts))


def left_point_signature(
    alg: AbstractHopfAlgebra, steps: Float[Array, "batch dim steps"]
) -> Float[Array, "size batch"]:
    """Signature whose tree coordinates are exactly the left-point iterated sums.

    Cost: one running sum over time for each forest of weight below the depth.
    """
    batch, _, length = steps.shape
    moves = jnp.transpose(steps, (1, 0, 2))  # (dim, batch, steps)
    ones = jnp.ones((1, batch, length), steps.dtype)
    streams = jnp.zeros((alg.size + 1, batch, length), steps.dtype)
    streams = streams.at[alg.size].set(ones[0])
    totals = jnp.zeros((alg.size, batch), steps.dtype)
    planar = alg.planar
    for n, level in enumerate(_grafts(alg), start=1):
        count = int((alg.weights == n).sum())
        start = int(np.flatnonzero(alg.weights == n)[0])
        rise = jnp.zeros((count, batch, length), steps.dtype)
        for row, head, children, colours, scale in level:
            product = streams[head]
            for k in range(children.shape[1]):
                product = product * streams[children[:, k]] * moves[colours[:, k]]
            rise = rise.at[row - start].add(product * scale)
        totals = totals.at[start : start + count].set(rise.sum(axis=-1))
        if n < alg.depth:
            sums = running_sums(rise)
            if not planar:
                several = [k for k in range(count) if len(alg.basis[start + k]) > 1]
                for k in several:
                    factors = [alg.index[(t,)] for t in alg.basis[start + k]]
                    product = streams[factors[0]]
                    for factor in factors[1:]:
                        product = product * streams[factor]
                    sums = sums.at[k].set(product)
            streams = streams.at[start : start + count].set(sums)
    if not planar:
        totals = multiply_trees(alg, totals[alg.free_positions])
    return totals

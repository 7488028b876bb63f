"""Signatures over trees as rows `(size, batch)`: left-point iterated sums, the discrete
Itô integral at every depth, and Chen's identity."""

import functools as ft
import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._xla import apply_rows, running_sums
from ..algebra import AbstractHopfAlgebra, selection, SparseMap


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
        factors.append([selection(column, len(free)) for column in columns])
    joined = np.concatenate([rows[m] for m in range(1, alg.depth + 1)])
    return factors, selection(np.argsort(joined), alg.size)


def multiply_trees(
    alg: AbstractHopfAlgebra, trees: Float[Array, "trees batch"]
) -> Float[Array, "size batch"]:
    """All forests from the coordinates of trees, by the character law."""
    factors, order = _forest_factors(alg)
    if not factors:
        return trees
    parts = [trees]
    for selections in factors:
        chosen = [apply_rows(one, trees) for one in selections]
        parts.append(ft.reduce(jnp.multiply, chosen))
    return apply_rows(order, jnp.concatenate(parts))


def left_point_signature(
    alg: AbstractHopfAlgebra, steps: Float[Array, "batch dim steps"]
) -> Float[Array, "size batch"]:
    """Signature whose tree coordinates are exactly the left-point iterated sums.

    Cost: one running sum over time for each forest of weight below the depth.
    """
    batch, _, length = steps.shape
    moves = jnp.transpose(steps, (1, 0, 2))  # (dim, batch, steps)
    streams = jnp.zeros((alg.size + 1, batch, length), steps.dtype)
    streams = streams.at[alg.size].set(1)
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
                for k, forest in enumerate(alg.basis[start : start + count]):
                    if len(forest) > 1:
                        trees = [streams[alg.index[(tree,)]] for tree in forest]
                        sums = sums.at[k].set(ft.reduce(jnp.multiply, trees))
            streams = streams.at[start : start + count].set(sums)
    if not planar:
        totals = multiply_trees(alg, totals[alg.free_positions])
    return totals


@ft.cache
def _factors(alg: AbstractHopfAlgebra) -> tuple[SparseMap, SparseMap, SparseMap]:
    """Left and right factors of every term of the product, and the sum of terms."""
    table = alg.product_table
    count = table.out.size
    left, right = (selection(x, alg.size) for x in (table.left, table.right))
    shape = (alg.size, count)
    return left, right, SparseMap(table.out, np.arange(count), table.value, shape)


def tree_multiply(alg: AbstractHopfAlgebra, a: list, b: list) -> list:
    """`(1 + a)(1 + b) - 1`; elements are lists of one array."""
    left, right, total = _factors(alg)
    terms = apply_rows(left, a[0]) * apply_rows(right, b[0])
    return [a[0] + b[0] + apply_rows(total, terms)]


def tree_divide(alg: AbstractHopfAlgebra, c: list, b: list) -> list:
    """The `a` with `(1 + a)(1 + b) = 1 + c`, for a group-like `b`."""
    return tree_multiply(alg, c, [apply_rows(alg.antipode_map, b[0])])

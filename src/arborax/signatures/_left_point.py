"""Left-point iterated sums over trees, the discrete Itô integral at every depth."""

import functools as ft
import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..algebra import GrossmanLarson, MuntheKaasWright
from ._tensor import running_sums


TreeAlgebra = GrossmanLarson | MuntheKaasWright


@ft.cache
def _grafts(alg: TreeAlgebra) -> list[list[tuple]]:
    """For each weight, the terms of one step of every forest of that weight.

    The increment of `<X, t1 .. tm>` over a step is the sum over `k >= 1` of
    `<X, t1 .. t_{m-k}>` times the product over the last `k` trees `[g]_c` of
    `<X, g> dX^c`, divided by `k!` in the planar case. **Returns** per weight a list of
    `(rows, head, children, colours, scale)`, index arrays into the streams of forests
    (the last row, of ones, is the unit); `children`, `colours` have `k` columns.
    Non-planar forests of several trees are products and are left out.
    """
    planar = isinstance(alg, MuntheKaasWright)

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
def _forest_factors(alg: GrossmanLarson) -> np.ndarray:
    """Rows of the trees of each forest, padded with the row of the unit."""
    table = np.full((alg.size, alg.depth), alg.size)
    for row, forest in enumerate(alg.basis):
        for k, tree in enumerate(forest):
            table[row, k] = alg.index[(tree,)]
    return table


def multiply_trees(alg: GrossmanLarson, trees: Float[Array, "trees ..."]) -> Array:
    """All forests `(size, ...)` from the coordinates of trees, by the character law."""
    padded = jnp.zeros((alg.size + 1, *trees.shape[1:]), trees.dtype)
    padded = padded.at[alg.tree_positions].set(trees).at[alg.size].set(1)
    out = trees
    several = np.flatnonzero([len(forest) > 1 for forest in alg.basis])
    if several.size:
        factors = _forest_factors(alg)[several]
        product = padded[factors[:, 0]]
        for k in range(1, alg.depth):
            product = product * padded[factors[:, k]]
        joined = np.concatenate([alg.tree_positions, several])
        out = jnp.concatenate([trees, product])[np.argsort(joined)]
    return out


def left_point_signature(
    alg: TreeAlgebra, steps: Float[Array, "batch steps dim"]
) -> Float[Array, "batch size"]:
    """Signature whose tree coordinates are exactly the left-point iterated sums.

    Cost: one running sum over time for each forest of weight below the depth.
    """
    batch, length, _ = steps.shape
    moves = jnp.transpose(steps, (2, 0, 1))  # (dim, batch, steps)
    ones = jnp.ones((1, batch, length), steps.dtype)
    streams = jnp.zeros((alg.size + 1, batch, length), steps.dtype)
    streams = streams.at[alg.size].set(ones[0])
    totals = jnp.zeros((alg.size, batch), steps.dtype)
    planar = isinstance(alg, MuntheKaasWright)
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
            sums = running_sums(rise, reverse=False)
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
        totals = multiply_trees(alg, totals[alg.tree_positions])
    return totals.T

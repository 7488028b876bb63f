r"""The node recursions: words and non-planar trees, truncated or not.

Each entry is an element-wise update from three corners of a cell and its increment
`c`, the mixed second difference of the static kernel (MATH.md §5).

| kind | recursion for the far corner |
|---|---|
| geometric | second-order Goursat scheme for `F_st = c F` |
| ito | `dd F = c F`, exact for words with left-point sums |
| branched | `dd T = c exp(T)`, exact for non-planar trees with left-point sums |

`dd` is the mixed second difference over the cell and the right-hand side is taken at
the near corner. Truncated kernels carry one component per weight, with
`F_k = sum_j (j/k) T_j F_{k-j}` for forests.
"""

import functools as ft

import jax.numpy as jnp
from jaxtyping import Array

from ._sweep import State


def goursat(upper: State, right: State, corner: State, c: Array) -> State:
    """Second-order scheme of Salvi et al. (2021), exact to order `c^2`."""
    (f10,), (f01,), (f00,) = upper, right, corner
    square = c * c * (1 / 12)
    return ((f10 + f01) * (1 + 0.5 * c + square) - f00 * (1 - square),)


def ito(upper: State, right: State, corner: State, c: Array) -> State:
    (f10,), (f01,), (f00,) = upper, right, corner
    return (f10 + f01 + f00 * (c - 1),)


def branched(upper: State, right: State, corner: State, c: Array) -> State:
    (t10,), (t01,), (t00,) = upper, right, corner
    return (t10 + t01 - t00 + jnp.exp(t00) * c,)


def ito_truncated(upper: State, right: State, corner: State, c: Array) -> State:
    return _truncated(upper, right, corner, [jnp.ones_like(c), *corner[:-1]], c)


def branched_truncated(upper: State, right: State, corner: State, c: Array) -> State:
    lower = forests_from_trees(corner[:-1]) if len(corner) > 1 else [jnp.ones_like(c)]
    return _truncated(upper, right, corner, lower, c)


def _truncated(
    upper: State, right: State, corner: State, below: list[Array], c: Array
) -> State:
    """`dd u_k = c below_k`, with `below` one weight lower."""
    rows = zip(upper, right, corner, below, strict=True)
    return tuple(u10 + u01 - u00 + low * c for u10, u01, u00, low in rows)


def forests_from_trees(trees: State) -> list[Array]:
    """Forest sums `F_0..F_N` from tree sums `T_1..T_N`: the exponential, by weight."""
    forests = [jnp.ones_like(trees[0])]
    for k in range(1, len(trees) + 1):
        terms = [
            (j / k) * trees[j - 1] * forests[k - j] if j < k else trees[k - 1]
            for j in range(1, k + 1)
        ]
        forests.append(ft.reduce(jnp.add, terms))
    return forests

"""Elements of a word algebra as lists of levels, batch last.

Level `n` holds the words of weight `n` in basis order as an array `(words, batch)`.
Rows are contiguous, so products, gathers and scatters over words run at memory speed.
"""

import functools as ft

import jax.numpy as jnp
import numpy as np

from .._xla import apply_rows
from ..algebra import AbstractWordAlgebra, selection, SparseMap


@ft.cache
def _placements(words: AbstractWordAlgebra) -> dict[tuple[int, int], SparseMap | None]:
    """Where the outer product of level `p` with level `n - p` stands in level `n`.

    Keyed by `(n, p)`. `None` stands for the whole level in order; from `Ito`, words
    with a letter of weight two across `p` are not reached.
    """
    levels: list[list[tuple]] = [[] for _ in range(words.depth + 1)]
    for word, weight in zip(words.words, words.weights):
        levels[weight].append(word)
    out: dict[tuple[int, int], SparseMap | None] = {}
    for n in range(2, words.depth + 1):
        index = {word: k for k, word in enumerate(levels[n])}
        for p in range(1, n):
            places = np.array([index[u + v] for u in levels[p] for v in levels[n - p]])
            whole = np.array_equal(places, np.arange(len(levels[n])))
            embed = selection(places, len(levels[n])).transpose()
            out[n, p] = None if whole else embed
    return out


def _level_product(words: AbstractWordAlgebra, a: list, b: list, top: int) -> list:
    """Levels `1..top` of the product of two elements without unit part.

    Needs the levels below `top` of both factors.
    """
    placements = _placements(words)
    out = [jnp.zeros_like(a[0])]
    for n in range(2, top + 1):
        parts = [_placed(placements[n, p], a[p - 1], b[n - p - 1]) for p in range(1, n)]
        out.append(sum(parts[1:], start=parts[0]))
    return out


def _placed(place: SparseMap | None, a, b):
    """The words `u v` of a level, from the levels of `u` and of `v`."""
    outer = a[:, None] * b[None]
    outer = outer.reshape(-1, outer.shape[-1])
    return outer if place is None else apply_rows(place, outer)


def level_log(words: AbstractWordAlgebra, g: list) -> list:
    """`log(1 + g)` by Horner's rule.

    A partial sum that is still to be multiplied `k` times by `g` is needed up to weight
    `depth - k` only, so the top level is formed once.
    """
    out = [g[0] / words.depth]
    for k in range(words.depth - 1, 0, -1):
        top = words.depth - k + 1
        step = _level_product(words, g, out, top)
        out = [level / k - term for level, term in zip(g[:top], step)]
    return out


def level_multiply(words: AbstractWordAlgebra, a: list, b: list) -> list:
    """`(1 + a)(1 + b) - 1`."""
    product = _level_product(words, a, b, words.depth)
    return [x + y + z for x, y, z in zip(a, b, product)]


def level_divide(words: AbstractWordAlgebra, c: list, b: list) -> list:
    """The `a` with `(1 + a)(1 + b) = 1 + c`, level by level."""
    placements = _placements(words)
    a: list = []
    for n in range(1, words.depth + 1):
        level = c[n - 1] - b[n - 1]
        for p in range(1, n):
            level = level - _placed(placements[n, p], a[p - 1], b[n - p - 1])
        a.append(level)
    return a

"""Elements of a word algebra as lists of levels, batch last.

Level `n` holds the words of weight `n` in basis order as an array `(words, batch)`.
Rows are contiguous, so products, gathers and scatters over words run at memory speed.
"""

import functools as ft

import jax.numpy as jnp
import numpy as np

from ..algebra import Ito, Shuffle, SparseMap


_DENSE = 2**14


@ft.cache
def _positions(words: Shuffle | Ito) -> dict[tuple[int, int], np.ndarray | None]:
    """Positions in level `n` of the words that can be cut at weight `p`.

    Keyed by `(n, p)`; the positions are ordered like the outer product of level `p`
    with level `n - p`. `None` stands for the whole level in order.
    """
    levels: list[list[tuple]] = [[] for _ in range(words.depth + 1)]
    for word, weight in zip(words.words, words.weights):
        levels[weight].append(word)
    out: dict[tuple[int, int], np.ndarray | None] = {}
    for n in range(2, words.depth + 1):
        index = {word: k for k, word in enumerate(levels[n])}
        for p in range(1, n):
            places = np.array([index[u + v] for u in levels[p] for v in levels[n - p]])
            whole = np.array_equal(places, np.arange(len(levels[n])))
            out[n, p] = None if whole else places
    return out


def _level_product(words: Shuffle | Ito, a: list, b: list, top: int) -> list:
    """Levels `1..top` of the product of two elements without unit part.

    Needs the levels below `top` of both factors.
    """
    positions = _positions(words)
    out = [jnp.zeros_like(a[0])]
    for n in range(2, top + 1):
        parts = []
        for p in range(1, n):
            outer = a[p - 1][:, None] * b[n - p - 1][None]
            outer = outer.reshape(-1, outer.shape[-1])
            where = positions[n, p]
            if where is not None:
                full = jnp.zeros_like(a[n - 1])
                outer = full.at[where].set(outer, unique_indices=True)
            parts.append(outer)
        out.append(sum(parts[1:], start=parts[0]))
    return out


def level_log(words: Shuffle | Ito, g: list) -> list:
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


def apply_rows(table: SparseMap, x):
    """Apply a sparse map to the rows of `(columns, batch)`.

    Small maps are one dense product; larger ones gather rows.
    """
    if table.shape[0] * table.shape[1] <= _DENSE:
        return jnp.asarray(table.todense(), x.dtype) @ x
    parts = []
    tables, n_empty, position = table.plan
    for _, column, value in tables:
        scale = jnp.asarray(value, x.dtype)[:, :, None]
        parts.append((x[column] * scale).sum(axis=1))
    if n_empty:
        parts.append(jnp.zeros((n_empty, x.shape[1]), x.dtype))
    out = parts[0] if len(parts) == 1 else jnp.concatenate(parts)
    if np.array_equal(position, np.arange(table.shape[0])):
        return out
    return out[position]

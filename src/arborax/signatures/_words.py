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


def level_product(words: Shuffle | Ito, a: list, b: list) -> list:
    """Product of two elements without unit part; `out[n - 1]` is the level `n`."""
    positions = _positions(words)
    out = [jnp.zeros_like(a[0])]
    for n in range(2, words.depth + 1):
        total = jnp.zeros_like(a[n - 1])
        for p in range(1, n):
            outer = a[p - 1][:, None] * b[n - p - 1][None]
            outer = outer.reshape(-1, outer.shape[-1])
            where = positions[n, p]
            if where is None:
                total = total + outer
            else:
                total = total.at[where].add(outer, unique_indices=True)
        out.append(total)
    return out


def level_log(words: Shuffle | Ito, g: list) -> list:
    """`log(1 + g)` by Horner's rule, `depth - 1` products."""
    out = [level / words.depth for level in g]
    for k in range(words.depth - 1, 0, -1):
        step = level_product(words, g, out)
        out = [level / k - term for level, term in zip(g, step)]
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

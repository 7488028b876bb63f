"""Signatures at selected keys, at the cost of what these need."""

import functools as ft
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._values import shown
from .._xla import apply_map, scan
from ..algebra import AbstractHopfAlgebra, SparseMap, step_rule, StepRule, word_algebra
from ._increments import is_left_point, letter_increments, read_path


def selected_signature(
    path: Any, keys: Iterable, alg: AbstractHopfAlgebra, brackets: Any = None
) -> Float[Array, "... keys"]:
    """Coordinates of the signature at chosen words, trees or multi-indices.

    Step by step, carrying only [`arborax.algebra.prefix_closure`][] of the keys: for a
    word its prefixes, for a tree its branches. The cost per step is that of the cuts of
    these keys; it does not depend on `alg.size`, and no table is built: a word of depth
    5 over 10 channels carries 5 coordinates, where the whole signature has 111,110. For
    more than a small part of the basis [`arborax.signature`][] is faster.

    **Arguments:**

    - `path`, `brackets`: as in [`arborax.signature`][], except `"left-point"` sums of
        depth 3 or more.
    - `keys`: keys of `alg.basis`, such as `[(0, 1), (1, 0, 0)]` in `Shuffle`. Words
        with letters of weight 3 (`BranchedWords`) are refused: along sampled paths
        their coordinates are zero.
    - `alg`: the algebra.

    **Returns:**

    Array `(..., len(keys))`, in the order of `keys`.
    """
    if not isinstance(keys, Iterable) or isinstance(keys, str):
        raise TypeError(
            f"`keys` must be a list of keys of `alg.basis`, got {shown(keys)}."
        )
    keys = tuple(keys)
    if is_left_point(brackets) and alg.depth > 2:
        raise ValueError(
            "selected coordinates have no left-point sums of depth 3 or more; use "
            "`signature`, or brackets='realised'"
        )
    if not all(isinstance(key, Hashable) for key in keys):
        raise TypeError("`keys` are tuples as in `alg.basis`, got a list among them")
    read = read_path(path, alg, brackets)
    rule = step_rule(keys, alg, read.brackets is not None)
    values = jnp.swapaxes(read.values, -1, -2)
    words = word_algebra(alg, read.brackets is not None)
    steps = values[..., 1:] - values[..., :-1]
    letters = jnp.concatenate(letter_increments(words, steps, read.brackets), axis=-2)
    monomials, polynomials, right, lefts, total = _tables(rule)

    def advance(state, move):
        one = jnp.ones((*move.shape[:-1], 1), move.dtype)
        powers = ft.reduce(jnp.multiply, (_take(move, one, m) for m in monomials))
        segment = apply_map(polynomials, powers)
        terms = _take(segment, one, right)
        for left in lefts:
            terms = terms * _take(state, one, left)
        return apply_map(total, terms), None

    start = jnp.zeros((*letters.shape[:-2], len(rule.keys)), letters.dtype)
    out, _ = scan(advance, start, jnp.moveaxis(letters, -1, 0))
    one = jnp.ones((*out.shape[:-1], 1), out.dtype)
    members = (_take(out, one, places) for places in _columns(rule.selected))
    return read.guard(ft.reduce(jnp.multiply, members))


def _take(x: Array, one: Array, places: np.ndarray) -> Array:
    """Entries of the last axis; -1 stands for the unit."""
    return jnp.concatenate([x, one], axis=-1)[..., places]


@ft.cache
def _tables(rule: StepRule):
    """Letters of each monomial, monomials to segment, and factors of each term."""
    monomials = sorted({m for terms in rule.polynomials for m in terms})
    index = {m: k for k, m in enumerate(monomials)}
    entries = [
        (row, index[m], value)
        for row, terms in enumerate(rule.polynomials)
        for m, value in terms.items()
    ]
    row, column, value = zip(*entries)
    shape = (len(rule.polynomials), len(monomials))
    polynomials = SparseMap(row, column, value, shape)
    flat = [(k, *term) for k, terms in enumerate(rule.terms) for term in terms]
    right = np.array([-1 if number is None else number for _, _, number, _ in flat])
    out, values = [k for k, *_ in flat], [value for *_, value in flat]
    total = SparseMap(out, np.arange(len(flat)), values, (len(rule.keys), len(flat)))
    lefts = _columns([places for _, places, _, _ in flat])
    return _columns(monomials), polynomials, right, lefts, total


def _columns(rows: Sequence) -> list[np.ndarray]:
    """Rows of unequal length as columns, filled up with -1."""
    width = max(len(row) for row in rows)
    return list(np.array([(*row, *[-1] * (width - len(row))) for row in rows]).T)

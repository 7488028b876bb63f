"""Static sparse matrices applied to arrays.

A gather transposes to a scatter, which is two orders of magnitude slower on a CPU and
not deterministic on accelerators. The transpose of a static matrix is known in advance,
so here both directions gather.
"""

import functools as ft
import math

import jax.numpy as jnp
import numpy as np
from jax.lax import Precision
from jaxtyping import Array, Float

from ..algebra import SparseMap
from ._derivatives import Linear
from ._switch import uses


_DENSE = 2**15
_TERMS = 16


class _Rows(Linear):
    """A sparse map on the rows of an array `(columns, batch)`, compared by identity as
    a static parameter."""

    fixed = 0

    def __init__(self, sparse: SparseMap, transposed: "_Rows | None" = None):
        self.sparse = sparse
        self._transposed = transposed

    @ft.cached_property
    def transpose(self) -> "_Rows":  # pyright: ignore
        return self._transposed or _Rows(self.sparse.transpose(), self)

    def value(self, x):
        return [_gather_rows(self.sparse, x)]

    def batch(self, args, dims):
        """Columns of the batch are put beside those of the array."""
        x = jnp.moveaxis(args[0], dims[0], -1)  # (columns, batch, mapped)
        (out,) = self(x.reshape(x.shape[0], x.shape[1] * x.shape[2]))
        return [out.reshape(out.shape[0], *x.shape[1:])], [2]


_rows = ft.cache(_Rows)


def _gather_rows(sparse: SparseMap, x: Array) -> Array:
    if math.prod(sparse.shape) <= _DENSE:
        return jnp.asarray(sparse.todense(), x.dtype) @ x
    tables, n_empty, position = sparse.plan
    parts = [_weighted_rows(x, column, value) for column, value in tables]
    if n_empty or not parts:
        parts.append(jnp.zeros((n_empty, x.shape[1]), x.dtype))
    out = jnp.concatenate(parts)
    return out if np.array_equal(position, np.arange(len(position))) else out[position]


def _weighted_rows(x: Array, column: np.ndarray, value: np.ndarray) -> Array:
    """`sum_k value[:, k] x[column[:, k]]`, term by term. Wide tables are taken as
    partial sums of a few terms, added up in turn, so that programs stay short."""
    count, width = column.shape
    if width > _TERMS:
        parts = -(-width // _TERMS)
        pad = ((0, 0), (0, parts * _TERMS - width))
        column, value = (np.pad(t, pad).reshape(-1, _TERMS) for t in (column, value))
        index = np.arange(count * parts).reshape(count, parts)
        partial = _weighted_rows(x, column, value)
        return _weighted_rows(partial, index, np.ones(index.shape))
    terms = []
    for k in range(width):
        term = x[column[:, k]]
        if not np.all(value[:, k] == 1):
            term = term * jnp.asarray(value[:, k], x.dtype)[:, None]
        terms.append(term)
    return ft.reduce(jnp.add, terms)


def apply_rows(
    sparse: SparseMap, x: Float[Array, "columns batch"]
) -> Float[Array, "rows batch"]:
    """Apply a sparse map to the rows of `x`; small maps are one dense product.

    Linear, with the transposed map as its derivative's transpose, in all orders.
    """
    return _rows(sparse)(x)[0] if uses("sparse") else sparse(x.T).T


def apply_map(
    sparse: SparseMap, x: Float[Array, "... columns"]
) -> Float[Array, "... rows"]:
    """The same along the last axis."""
    if uses("sparse") and math.prod(sparse.shape) <= _DENSE:
        # From the left: under `vmap` the batch then comes first.
        dense = jnp.asarray(sparse.todense().T, x.dtype)
        return jnp.matmul(x, dense, precision=Precision.HIGHEST)
    rows = x.reshape(-1, x.shape[-1]).T
    return apply_rows(sparse, rows).T.reshape(*x.shape[:-1], sparse.shape[0])

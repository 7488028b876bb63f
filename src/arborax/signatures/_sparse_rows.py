"""A sparse matrix applied to rows, as a JAX primitive.

A gather transposes to a scatter, which is two orders of magnitude slower on a CPU and
not deterministic on accelerators. The transpose of a static sparse matrix is known in
advance, so this primitive gathers in both directions.
"""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

from ..algebra import SparseMap


_DENSE = 2**15
_TERMS = 16


class _Table:
    """A sparse map and its transpose, compared by identity as a static parameter."""

    def __init__(self, forward: SparseMap, backward: "_Table | None" = None):
        self.forward = forward
        self._backward = backward

    @ft.cached_property
    def transpose(self) -> "_Table":
        if self._backward is not None:
            return self._backward
        return _Table(self.forward.transpose(), self)


@ft.cache
def _table(sparse: SparseMap) -> _Table:
    return _Table(sparse)


def _gather_rows(x: Array, *, table: _Table) -> Array:
    sparse = table.forward
    if sparse.shape[0] * sparse.shape[1] <= _DENSE:
        return jnp.asarray(sparse.todense(), x.dtype) @ x
    parts = []
    tables, n_empty, position = sparse.plan
    for _, column, value in tables:
        parts.append(_weighted_rows(x, column, value))
    if n_empty or not parts:
        parts.append(jnp.zeros((n_empty, x.shape[1]), x.dtype))
    out = parts[0] if len(parts) == 1 else jnp.concatenate(parts)
    if np.array_equal(position, np.arange(sparse.shape[0])):
        return out
    return out[position]


def _weighted_rows(x: Array, column: np.ndarray, value: np.ndarray) -> Array:
    """`sum_k value[:, k] x[column[:, k]]`.

    Terms one by one, see `_outer`; but wide tables as partial sums of a few terms,
    added up in turn, so that programs stay short.
    """
    count, width = column.shape
    if width > _TERMS:
        pieces = -(-width // _TERMS)
        pad = ((0, 0), (0, pieces * _TERMS - width))
        column, value = (np.pad(t, pad).reshape(-1, _TERMS) for t in (column, value))
        return _sum_groups(_weighted_rows(x, column, value), count)
    total = None
    for k in range(width):
        term = x[column[:, k]]
        if not np.all(value[:, k] == 1):
            term = term * jnp.asarray(value[:, k], x.dtype)[:, None]
        total = term if total is None else total + term
    assert total is not None
    return total


def _sum_groups(x: Array, count: int) -> Array:
    """Sums over `count` equal groups of adjacent rows."""
    width = x.shape[0] // count
    if width == 1:
        return x
    pieces = -(-width // _TERMS)
    groups = x.reshape(count, width, x.shape[1])
    if pieces > 1:
        groups = jnp.pad(groups, ((0, 0), (0, pieces * _TERMS - width), (0, 0)))
        groups = groups.reshape(count * pieces, _TERMS, x.shape[1])
    total = groups[:, 0]
    for k in range(1, groups.shape[1]):
        total = total + groups[:, k]
    return _sum_groups(total, count)


_rows_p = Primitive("arborax_sparse_rows")
_rows_p.def_impl(jax.jit(_gather_rows, static_argnames="table"))


@_rows_p.def_abstract_eval
def _abstract(x, *, table: _Table):
    return x.update(shape=(table.forward.shape[0], x.shape[1]))


def _transpose(cotangent, x, *, table: _Table):
    return [_rows_p.bind(cotangent, table=table.transpose)]


def _batch(args, dims, *, table: _Table):
    (x,), (dim,) = args, dims
    x = jnp.moveaxis(x, dim, -1)  # (columns, batch, mapped)
    flat = x.reshape(x.shape[0], x.shape[1] * x.shape[2])
    out = _rows_p.bind(flat, table=table)
    return out.reshape(out.shape[0], *x.shape[1:]), 2


ad.deflinear2(_rows_p, _transpose)
batching.primitive_batchers[_rows_p] = _batch
mlir.register_lowering(_rows_p, mlir.lower_fun(_gather_rows, multiple_results=False))


def apply_rows(
    sparse: SparseMap, x: Float[Array, "columns batch"]
) -> Float[Array, "rows batch"]:
    """Apply a sparse map to the rows of `x`; small maps are one dense product.

    Linear, with the transposed map as its derivative's transpose, in all orders.
    """
    return _rows_p.bind(x, table=_table(sparse))

"""Sparse linear maps and bilinear products as static index tables.

Both act on the last axis of any array that follows the array API standard, so the
same tables serve NumPy, JAX (traced or not) and, exactly, NumPy object arrays of
fractions. Coefficients are integers or dyadic rationals of moderate size, which
float64 holds without error.
"""

import functools as ft
from fractions import Fraction

import numpy as np


def _cast(xp, table: np.ndarray, like):
    if like.dtype == object:
        return np.vectorize(Fraction, otypes=[object])(table)
    return xp.asarray(table, dtype=like.dtype)


def _zeros(xp, like, size: int):
    if like.dtype == object:
        out = np.empty((*like.shape[:-1], size), dtype=object)
        out[...] = Fraction(0)
        return out
    return xp.zeros((*like.shape[:-1], size), dtype=like.dtype)


def _plan(rows: np.ndarray, size: int, *columns: np.ndarray):
    """Entries in row order as rectangular tables, padded with zero entries.

    One table for rows whose numbers of entries agree within a factor of two. With it
    the number of empty rows, and the order of rows after tables and empty rows.
    """
    counts = np.bincount(rows, minlength=size)
    starts = np.cumsum(counts) - counts
    groups = np.frexp(counts)[1]
    tables, order = [], []
    for group in np.unique(groups[groups > 0]):
        here = np.flatnonzero(groups == group)
        offsets = np.arange(counts[here].max())
        valid = offsets < counts[here][:, None]
        where = np.where(valid, starts[here][:, None] + offsets, 0)
        tables.append([np.where(valid, column[where], 0) for column in columns])
        order.append(here)
    empty = np.flatnonzero(counts == 0)
    position = np.argsort(np.concatenate([*order, empty]), kind="stable")
    return tables, empty.size, position


def _sums(plan, like, term):
    """Sums over the entries of each row, `term(*places)` times the value of each."""
    xp = like.__array_namespace__()
    tables, n_empty, position = plan
    parts = []
    for *places, value in tables:
        value = _cast(xp, value, like)
        value = value.reshape((1,) * (like.ndim - 1) + value.shape)
        parts.append((term(*places) * value).sum(axis=-1))
    if n_empty or not parts:
        parts.append(_zeros(xp, like, n_empty))
    return xp.concatenate(parts, axis=-1)[..., position]


class SparseMap:
    """A sparse matrix `(rows, columns)` applied to the last axis of an array.

    Entries are kept in row order with duplicates summed and zeros dropped.
    """

    def __init__(self, row, column, value, shape: tuple[int, int]):
        row, column = np.asarray(row, np.int64), np.asarray(column, np.int64)
        flat, inverse = np.unique(row * shape[1] + column, return_inverse=True)
        summed = np.bincount(inverse, np.asarray(value, np.float64), flat.size)
        keep = summed != 0
        self.shape: tuple[int, int] = shape
        self.row = flat[keep] // shape[1]
        self.column = flat[keep] % shape[1]
        self.value = summed[keep]

    @classmethod
    def from_dense(cls, dense: np.ndarray) -> "SparseMap":
        row, column = np.nonzero(dense)
        return cls(row, column, dense[row, column], dense.shape)

    @property
    def nnz(self) -> int:
        return self.value.size

    @ft.cached_property
    def _rows(self):
        counts = np.bincount(self.row, minlength=self.shape[0])
        return np.cumsum(counts) - counts, counts

    @ft.cached_property
    def plan(self):
        return _plan(self.row, self.shape[0], self.column, self.value)

    def __call__(self, x):
        """`(..., columns) -> (..., rows)`."""
        if x.shape[-1] != self.shape[1]:
            raise ValueError(
                f"expected {self.shape[1]} coordinates on the last axis, "
                f"got an array of shape {x.shape}"
            )
        return _sums(self.plan, x, lambda column: x[..., column])

    def __matmul__(self, other: "SparseMap") -> "SparseMap":
        """Composition: `(self @ other)(x) == self(other(x))`."""
        starts, counts = other._rows
        repeats = counts[self.column]
        row = np.repeat(self.row, repeats)
        left = np.repeat(self.value, repeats)
        first = starts[self.column] - np.cumsum(repeats) + repeats
        entry = np.arange(row.size) + np.repeat(first, repeats)
        shape = (self.shape[0], other.shape[1])
        return SparseMap(row, other.column[entry], left * other.value[entry], shape)

    def take_rows(self, rows) -> "SparseMap":
        """The map followed by a selection of rows, in the given order."""
        return selection(rows, self.shape[0]) @ self

    def transpose(self) -> "SparseMap":
        rows, columns = self.shape
        return SparseMap(self.column, self.row, self.value, (columns, rows))

    def todense(self) -> np.ndarray:
        dense = np.zeros(self.shape)
        dense[self.row, self.column] = self.value
        return dense


def selection(positions, size: int) -> SparseMap:
    """The map `(size) -> (positions)` that takes these entries in this order."""
    count = len(positions)
    return SparseMap(np.arange(count), positions, np.ones(count), (count, size))


class ProductTable:
    """A bilinear product `out[k] = sum value * a[left] * b[right]` on the last axis."""

    def __init__(self, out, left, right, value, size: int):
        order = np.argsort(out, kind="stable")
        self.out = np.asarray(out, np.int64)[order]
        self.left = np.asarray(left, np.int64)[order]
        self.right = np.asarray(right, np.int64)[order]
        self.value = np.asarray(value, np.float64)[order]
        self.size = size

    @ft.cached_property
    def plan(self):
        return _plan(self.out, self.size, self.left, self.right, self.value)

    def __call__(self, a, b):
        """`(..., size), (..., size) -> (..., size)`, the same leading axes."""
        return _sums(self.plan, a, lambda i, j: a[..., i] * b[..., j])

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


def _buckets(counts: np.ndarray) -> list[np.ndarray]:
    """Rows grouped by number of entries, within a factor of two."""
    groups = []
    low = 1
    while low <= counts.max(initial=0):
        rows = np.flatnonzero((counts >= low) & (counts < 2 * low))
        if rows.size:
            groups.append(rows)
        low *= 2
    return groups


def _padded(rows: np.ndarray, starts, counts, *columns):
    """Entries of the given rows as rectangular tables, padded with zero entries."""
    width = int(counts[rows].max())
    offsets = np.arange(width)
    valid = offsets < counts[rows][:, None]
    where = np.where(valid, starts[rows][:, None] + offsets, 0)
    return [np.where(valid, column[where], 0) for column in columns]


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

    @property
    def nnz(self) -> int:
        return self.value.size

    @ft.cached_property
    def _rows(self):
        counts = np.bincount(self.row, minlength=self.shape[0])
        return np.cumsum(counts) - counts, counts

    @ft.cached_property
    def plan(self):
        starts, counts = self._rows
        tables = [
            (rows, *_padded(rows, starts, counts, self.column, self.value))
            for rows in _buckets(counts)
        ]
        order = np.concatenate([rows for rows, *_ in tables] or [np.zeros(0, int)])
        empty = np.flatnonzero(counts == 0)
        position = np.argsort(np.concatenate([order, empty]), kind="stable")
        return tables, empty.size, position

    def __call__(self, x):
        """`(..., columns) -> (..., rows)`."""
        if x.shape[-1] != self.shape[1]:
            raise ValueError(
                f"expected {self.shape[1]} coordinates on the last axis, "
                f"got an array of shape {x.shape}"
            )
        xp = x.__array_namespace__()
        tables, n_empty, position = self.plan
        parts = []
        for _, column, value in tables:
            value = _cast(xp, value, x)
            value = value.reshape((1,) * (x.ndim - 1) + value.shape)
            parts.append((x[..., column] * value).sum(axis=-1))
        if n_empty or not parts:
            parts.append(_zeros(xp, x, n_empty))
        return xp.concatenate(parts, axis=-1)[..., position]

    def __matmul__(self, other: "SparseMap") -> "SparseMap":
        """Composition: `(self @ other)(x) == self(other(x))`."""
        starts, counts = other._rows
        repeats = counts[self.column]
        row = np.repeat(self.row, repeats)
        left = np.repeat(self.value, repeats)
        first = np.repeat(starts[self.column], repeats)
        within = np.arange(first.size) - np.repeat(
            np.cumsum(repeats) - repeats, repeats
        )
        entry = first + within
        return SparseMap(
            row,
            other.column[entry],
            left * other.value[entry],
            (self.shape[0], other.shape[1]),
        )

    def take_rows(self, rows) -> "SparseMap":
        """The map followed by a selection of rows, in the given order."""
        rows = np.asarray(rows, np.int64)
        select = SparseMap(
            np.arange(rows.size),
            rows,
            np.ones(rows.size),
            (rows.size, self.shape[0]),
        )
        return select @ self

    def transpose(self) -> "SparseMap":
        rows, columns = self.shape
        return SparseMap(self.column, self.row, self.value, (columns, rows))

    def todense(self) -> np.ndarray:
        dense = np.zeros(self.shape)
        dense[self.row, self.column] = self.value
        return dense


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
        counts = np.bincount(self.out, minlength=self.size)
        starts = np.cumsum(counts) - counts
        columns = (self.left, self.right, self.value)
        tables = [
            (rows, *_padded(rows, starts, counts, *columns))
            for rows in _buckets(counts)
        ]
        order = np.concatenate([rows for rows, *_ in tables] or [np.zeros(0, int)])
        empty = np.flatnonzero(counts == 0)
        position = np.argsort(np.concatenate([order, empty]), kind="stable")
        return tables, empty.size, position

    def __call__(self, a, b):
        """`(..., size), (..., size) -> (..., size)`, the same leading axes."""
        xp = a.__array_namespace__()
        tables, n_empty, position = self.plan
        parts = []
        for _, left, right, value in tables:
            value = _cast(xp, value, a)
            value = value.reshape((1,) * (a.ndim - 1) + value.shape)
            parts.append((a[..., left] * b[..., right] * value).sum(axis=-1))
        if n_empty or not parts:
            parts.append(_zeros(xp, a, n_empty))
        return xp.concatenate(parts, axis=-1)[..., position]

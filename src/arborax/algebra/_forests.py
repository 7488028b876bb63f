"""Coloured forests by shape: one array of basis positions for each uncoloured shape.

Combinatorics is done once per shape, on forests whose vertices carry distinct labels,
and then spread over all colourings with NumPy index arithmetic. Tables for twenty
colours cost as much Python as tables for one.
"""

import functools as ft
from collections.abc import Callable, Iterable

import numpy as np

from ._cuts import cuts, dual_antipode, star_word
from ._sparse import ProductTable, SparseMap
from ._trees import (
    arrange,
    canonical,
    colours,
    Forest,
    forest_shapes,
    recolour,
    weight,
)


class ForestBasis:
    """Forests of weight `1..depth` with `dim` colours, planar or not.

    Order: by weight, number of trees, shape (tree by tree, decreasing level sequence)
    and colours in preorder of the arranged shape, lexicographically. Trees therefore
    come first within each weight.
    """

    def __init__(self, dim: int, depth: int, planar: bool):
        self.dim, self.depth, self.planar = dim, depth, planar
        self.keys: list[Forest] = []
        self.weights: list[int] = []
        self._positions: dict[Forest, np.ndarray] = {}
        self._representatives: dict[Forest, np.ndarray] = {}
        self._labelled: dict[Forest, Forest] = {}
        for n in range(1, depth + 1):
            grid = np.indices((dim,) * n).reshape(n, -1).T
            for shape in forest_shapes(n, planar):
                self._add(shape, grid)

    def _add(self, shape: Forest, grid: np.ndarray) -> None:
        n, start = grid.shape[1], len(self.keys)
        if self.planar:
            representatives = grid
            position = start + np.arange(len(grid))
            self.keys.extend(recolour(shape, tuple(row)) for row in grid.tolist())
        else:
            seen: dict[tuple, int] = {}
            position = np.empty(len(grid), np.int64)
            for k, row in enumerate(map(tuple, grid.tolist())):
                normal = colours(arrange(recolour(shape, row)))
                if normal == row:
                    seen[row] = start + len(seen)
                    self.keys.append(canonical(recolour(shape, row)))
                position[k] = seen[normal]
            representatives = np.array(list(seen), np.int64).reshape(-1, n)
        self.weights.extend([n] * len(representatives))
        self._positions[shape] = position
        self._representatives[shape] = representatives
        self._labelled[shape] = recolour(shape, tuple(range(n)))

    @property
    def shapes(self) -> Iterable[Forest]:
        return self._positions.keys()

    def positions(self, labelled: Forest, colouring: np.ndarray) -> np.ndarray:
        """Basis positions of a labelled forest under many colourings.

        **Arguments:**

        - `labelled`: forest whose colours are column numbers of `colouring`.
        - `colouring`: integer array `(colourings, labels)`.
        """
        if not self.planar:
            labelled = arrange(labelled)
        labels = list(colours(labelled))
        shape = recolour(labelled, (0,) * len(labels))
        flat = np.zeros(len(colouring), np.int64)
        for label in labels:
            flat = flat * self.dim + colouring[:, label]
        return self._positions[shape][flat]

    def spread(self, terms: Callable[[Forest], dict], select=None):
        """Evaluate `terms` on every labelled shape and spread over its colourings.

        **Arguments:**

        - `terms`: labelled forest -> `{(forest, ...): value}`.
        - `select`: optional predicate on the tuple of forests.

        **Returns:**

        Arrays `out, parts, value`: positions of the shape, a list of arrays of
        positions (one per member of the tuple; -1 for the empty forest), values.
        """
        rows, parts, values = [], [], []
        for shape in self.shapes:
            colouring = self._representatives[shape]
            labelled = self._labelled[shape]
            own = self.positions(labelled, colouring)
            for forests, value in terms(labelled).items():
                if select is not None and not select(forests):
                    continue
                rows.append(own)
                values.append(np.full(len(own), float(value)))
                parts.append(
                    [
                        self.positions(f, colouring) if f else np.full(len(own), -1)
                        for f in forests
                    ]
                )
        return (
            np.concatenate(rows),
            [np.concatenate(column) for column in zip(*parts)],
            np.concatenate(values),
        )

    @ft.cached_property
    def product_table(self) -> ProductTable:
        """`<a * b, f>` as a sum over proper cuts of `f`."""
        size = len(self.keys)
        if self.depth == 1:
            empty = np.zeros(0, int)
            return ProductTable(empty, empty, empty, empty, size)
        out, (left, right), value = self.spread(
            lambda forest: cuts(forest, self.planar), select=all
        )
        return ProductTable(out, left, right, value, size)

    @ft.cached_property
    def antipode_map(self) -> SparseMap:
        """`<S x, f> = <x, S f>` with the antipode of the dual algebra."""
        out, (column,), value = self.spread(
            lambda f: {(g,): c for g, c in dual_antipode(f, self.planar).items()}
        )
        return SparseMap(out, column, value, (len(self.keys), len(self.keys)))

    @ft.cached_property
    def star_words(self) -> SparseMap:
        """Column `(t1, .., tk)`: the product `t1 * ... * tk` expanded in forests."""
        column, (row,), value = self.spread(
            lambda f: {(g,): c for g, c in star_word(f).items()}
        )
        return SparseMap(row, column, value, (len(self.keys), len(self.keys)))

    def letter_cuts(self):
        """Cuts with a trunk of one vertex, or of one two-vertex tree.

        These are the cuts needed to multiply by a letter of the extended Itô alphabet
        from the right. **Returns:** `out, pruned, trunk, value`; `pruned` is -1 when
        the trunk is the whole forest.
        """
        out, (pruned, trunk), value = self.spread(
            lambda forest: cuts(forest, self.planar),
            select=lambda pair: len(pair[1]) == 1 and weight(pair[1]) <= 2,
        )
        return out, pruned, trunk, value


@ft.cache
def forest_basis(dim: int, depth: int, *, planar: bool) -> ForestBasis:
    """The shared instance of [`ForestBasis`][]."""
    return ForestBasis(dim, depth, planar)

"""Coloured forests by shape: one array of basis positions for each uncoloured shape.

Combinatorics is done once per shape, on forests whose vertices carry distinct labels,
and then spread over all colourings with NumPy index arithmetic. Tables for twenty
colours cost as much Python as tables for one.
"""

import functools as ft
import itertools as it
from collections.abc import Callable

import numpy as np

from ._cuts import cuts, dual_antipode, dual_product, star_word
from ._sparse import ProductTable, SparseMap
from ._trees import arrange, canonical, colours, Forest, forest_shapes, recolour


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

    def _spread(self, parts: int, terms: Callable[[Forest], dict]) -> list[np.ndarray]:
        """Evaluate `terms` on every labelled shape and spread over its colourings.

        `terms` maps a labelled forest to `{(forest, ...): value}`, `parts` forests in
        each tuple; those with an empty one are left out. **Returns** arrays of
        positions of the shape, of each part, and of values.
        """
        entries = [(np.zeros(0, np.int64),) * (parts + 2)]
        for shape, colouring in self._representatives.items():
            labelled = recolour(shape, it.count())
            own = self.positions(labelled, colouring)
            for forests, value in terms(labelled).items():
                if all(forests):
                    places = [self.positions(f, colouring) for f in forests]
                    entries.append((own, *places, np.full(len(own), float(value))))
        return [np.concatenate(column) for column in zip(*entries)]

    @ft.cached_property
    def product_table(self) -> ProductTable:
        """`<a * b, f>` as a sum over proper cuts of `f`."""
        out, left, right, value = self._spread(2, lambda f: cuts(f, self.planar))
        return ProductTable(out, left, right, value, len(self.keys))

    @ft.cached_property
    def antipode_map(self) -> SparseMap:
        """`<S x, f> = <x, S f>` with the antipode of the dual algebra."""
        split = ft.partial(cuts, planar=self.planar)
        multiply = ft.partial(dual_product, planar=self.planar)
        done: dict = {}
        return SparseMap(*self._linear(dual_antipode, split, multiply, done))

    @ft.cached_property
    def star_words(self) -> SparseMap:
        """Column `(t1, .., tk)`: the product `t1 * ... * tk` expanded in forests."""
        return SparseMap(*self._linear(star_word)).transpose()

    def _linear(self, function: Callable, *args) -> tuple:
        """Entries and shape of the map with rows `function(forest, *args)`."""
        entries = self._spread(
            1, lambda f: {(g,): c for g, c in function(f, *args).items()}
        )
        return *entries, (len(self.keys), len(self.keys))


@ft.cache
def forest_basis(dim: int, depth: int, *, planar: bool) -> ForestBasis:
    """The shared instance of [`ForestBasis`][]."""
    return ForestBasis(dim, depth, planar)

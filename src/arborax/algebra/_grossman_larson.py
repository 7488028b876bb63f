"""The Grossman-Larson algebra of non-planar forests: Euclidean Itô calculus."""

import dataclasses
import functools as ft

import numpy as np

from ._forest_algebra import AbstractForestAlgebra
from ._sparse import selection, SparseMap
from ._trees import Forest, symmetry_factor


@dataclasses.dataclass(frozen=True)
class GrossmanLarson(AbstractForestAlgebra):
    r"""Forests of non-planar trees: the algebra of branched rough paths in flat space.

    In a product each tree of the left factor either stays a tree of its own or is
    grafted onto a vertex of the right factor; the product is the sum over all choices.

    Trees of a key and children of a vertex are sorted. Coordinates are pairings
    $\langle x, f\rangle = \sigma(f) c_f$, where $x = \sum_f c_f f$ and $\sigma$ is the
    symmetry factor: for a signature they are products of iterated integrals. Primitive
    elements are combinations of trees; `primitive_basis` holds bare trees, with
    pairings as coordinates. The factor $1/\sigma$ appears only in the lift of vector
    fields.

    **Arguments:**

    - `dim`: number of channels, the colours of the vertices.
    - `depth`: largest number of vertices of a forest.

    ??? cite "References"

        R. Grossman and R. Larson, Hopf-algebraic structure of families of trees,
        Journal of Algebra 126 (1989). M. Gubinelli, Ramification of rough paths,
        Journal of Differential Equations 248 (2010).
    """

    @property
    def planar(self) -> bool:
        return False

    @property
    def primitive_size(self) -> int:
        return sum(self._counts[0])

    @ft.cached_property
    def primitive_basis(self) -> tuple:
        return tuple(self.basis[k][0] for k in self._tree_positions)

    @property
    def primitive_weights(self) -> np.ndarray:
        return self.weights[self._tree_positions]

    @ft.cached_property
    def primitive_maps(self) -> tuple[SparseMap, SparseMap]:
        select = selection(self._tree_positions, self.size)
        return select, select.transpose()

    @property
    def free_positions(self) -> np.ndarray:
        return self._tree_positions

    @ft.cached_property
    def forests(self) -> tuple[tuple[Forest, ...], SparseMap]:
        size, trees = np.arange(self.primitive_size), self.primitive_basis
        scale = [1 / symmetry_factor(tree) for tree in trees]
        diagonal = SparseMap(size, size, scale, (size.size, size.size))
        return tuple((tree,) for tree in trees), diagonal

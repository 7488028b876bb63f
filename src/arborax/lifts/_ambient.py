"""Words of vector fields, as operators on the ambient coordinate function."""

import functools as ft
from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float, PyTree

from .._xla import barrier
from ._calculus import contract, FrameCalculus, SWEPT
from ._grading import Grading, tree_grading
from ._linear import add, small_product, sum_rows, take


class AmbientCalculus:
    """Composition of operators on the ambient coordinate function, for words.

    Holds for any Lie polynomial, whatever the connection; the connection enters only
    through the fields of the letters `(i, j)` of the Itô alphabet.
    """

    def __init__(self, frame: FrameCalculus, pairs: tuple[tuple[int, int], ...]):
        self.frame = frame
        self.geometry = frame.geometry
        self.pairs = pairs

    def _pair_matrix(self, x: Float[Array, " pairs"]) -> Float[Array, " square"]:
        """Coefficients of the trees `i |> j` from those of the letters `(i, j)`."""
        d = self.frame.driving.number
        first, second = (jnp.asarray(column) for column in zip(*self.pairs))
        matrix = jnp.zeros((d, d), x.dtype).at[first, second].add(x / 2)
        return (matrix + matrix.T).reshape(-1)

    def single(self, parts: list[Array], y) -> PyTree[Array]:
        """A combination of the letters, as an ambient vector."""
        d = self.frame.driving.number
        if len(parts) > 1 and parts[1].size:
            x = [parts[0], self._pair_matrix(parts[1])]
            u = self.frame.contract(x, y, tree_grading(d, 2))
        else:
            u = parts[0] @ self.frame.fields(y)
        return self.geometry.frame(y, u)

    def letters(self, y, weight: int) -> tuple[Array, ...]:
        """Values of the letters up to this weight, in frame coordinates."""
        d, dim = self.frame.driving.number, self.frame.dim
        empty = jnp.zeros((0, dim), jtu.tree_leaves(y)[0].dtype)
        if weight == 1 or not self.pairs:
            return (self.frame.fields(y),) + (empty,) * (weight - 1)
        first, second = (jnp.asarray(column) for column in zip(*self.pairs))
        v, trees = self.frame.trees(y, 2)
        trees = trees.reshape(d, d, dim)
        values = (trees[first, second] + trees[second, first]) / 2
        return (v, values) + (empty,) * (weight - 2)

    def derive(self, g: Callable, y, u) -> PyTree[Array]:
        """Ambient directional derivative."""
        return jax.jvp(g, (y,), (self.geometry.frame(y, u),))[1]

    def channels(self, y, w: Float[Array, "channels dim"]) -> PyTree[Array]:
        r"""$\sum_i D V_i[W_i]$ in the ambient space."""
        v, derivative = self.frame.differentiate(y)
        return add(self.geometry.frame(y, derivative(w)), self._turning(y, v, w))

    def _turning(self, y, v: Array, w: Array) -> PyTree[Array]:
        """The part of `channels` that comes from derivatives of the frame."""
        if self.frame.dim < v.shape[0]:
            v, w = small_product(w.T, v), self.frame.eye(v)

        def one(u, vector):
            along = lambda z: self.geometry.frame(z, u)  # noqa: E731
            return jax.jvp(along, (y,), (vector,))[1]

        vectors = self.frame.tangents(y, w)
        if w.shape[0] > SWEPT:
            return sum_rows(jax.vmap(one)(v, vectors))
        return ft.reduce(add, [one(u, take(i, vectors)) for i, u in enumerate(v)])

    def second_order(self, grading: Grading, x: list[Array], y) -> PyTree[Array]:
        """Letters and words of weights one and two, with one evaluation of the
        fields."""
        frame = self.frame
        v, derivative = frame.differentiate(y)
        words = small_product(grading.block(x[1], 2, 1).T, v)
        out = small_product(x[0][None], v)[0]
        pairs = grading.single(x[1], 2)
        if pairs.size:
            matrix = self._pair_matrix(pairs).reshape(v.shape[0], -1)
            trees = small_product(matrix.T, v)
            out = out + derivative(barrier(words + trees))
            if not frame.parallel:
                out = out + frame.connect_rows(y, trees, v)
        else:
            out = out + derivative(barrier(words))
        return add(self.geometry.frame(y, out), self._turning(y, v, words))

    def contract(self, x: list[Array], y, grading: Grading) -> Float[Array, " dim"]:
        """The window field of a Lie polynomial with word coefficients `x`."""
        ambient = contract(
            x,
            y,
            grading,
            self.frame.dim,
            single=self.single,
            letters=self.letters,
            derive=self.derive,
            channels=self.channels,
            shortcuts={2: ft.partial(self.second_order, grading)},
        )
        return self.geometry.coordinates(y, ambient)

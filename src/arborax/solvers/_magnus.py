"""Exact flows of linear fields."""

from typing import Any

from jaxtyping import Array, PyTree

from ._base import AbstractSolver


class Magnus(AbstractSolver):
    r"""The exact flow of [`arborax.LinearFields`][] over a window: one exponential of
    the window matrix (in Euclidean space) or of a group element.

    The default for linear fields; it refuses all others. What remains is the error of
    the truncated log-signature, as in a Magnus expansion. A step back undoes a step, so
    [`arborax.ReversibleAdjoint`][] is exact to rounding.
    """

    order = 16  # that of the series inside the exponential, exact to rounding
    reversible = True
    euclidean = False

    def step(self, f: Any, geometry, s, y, h) -> PyTree[Array]:
        return f.flow(y, h)

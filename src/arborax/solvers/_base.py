"""The interface of one-step schemes on a geometry."""

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING

import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float, PyTree

from ..geometry import AbstractGeometry


if TYPE_CHECKING:
    from typing import ClassVar as AbstractClassVar
else:
    from equinox import AbstractClassVar


class AbstractSolver(eqx.Module):
    """A one-step scheme for `dy/ds = E_{f(s, y)}(y)` on a geometry.

    `f` gives frame coordinates; the scheme moves the state with the group action, so it
    stays on the manifold to rounding. Schemes hold static configuration only.

    - `order`: order of convergence on smooth fields.
    - `reversible`: whether a step back undoes a step forward to higher order than
        `order`, as the reversible adjoint needs.
    - `euclidean`: whether the scheme adds increments, and so works in flat space only.
    """

    order: AbstractClassVar[int]
    reversible: AbstractClassVar[bool]
    euclidean: AbstractClassVar[bool]

    @abc.abstractmethod
    def step(
        self,
        f: Callable,
        geometry: AbstractGeometry,
        s: Float[Array, ""],
        y: PyTree[Array],
        h: Float[Array, ""],
    ) -> PyTree[Array]:
        """One step of length `h` (negative to step back) from the state `y` at `s`."""

    def step_with_error(self, f, geometry, s, y, h) -> tuple[PyTree, PyTree | None]:
        """A step and its embedded local error estimate in ambient coordinates; `None`
        unless the scheme has one."""
        return self.step(f, geometry, s, y, h), None

    def check(self, geometry: AbstractGeometry, calculus: str = "stratonovich") -> None:
        """Refuse a geometry the scheme cannot move on, and an Itô equation if the
        scheme has order 1: it would converge to another equation."""
        if self.euclidean and not geometry.flat:
            raise ValueError(
                f"{type(self).__name__} adds increments and would leave {geometry}. "
                "Use a scheme that moves with the group action, such as `CFEES25`, "
                "`CF4` or `RKMK`."
            )
        if calculus == "ito" and self.order < 2:
            raise ValueError(
                f"{type(self).__name__} has order {self.order}, but Itô equations need "
                "order 2 at least: with less the solution converges to that of another "
                "equation. Use `CFEES25`, `CF4` or, in flat space, `Heun`."
            )


def combination(weights, elements: PyTree[Array]) -> PyTree[Array]:
    """`sum_j weights[j] * elements[j]` for stacked elements."""

    def one(leaf):
        return jnp.tensordot(jnp.asarray(weights, leaf.dtype), leaf, axes=1)

    return jtu.tree_map(one, elements)


def scale(factor, element: PyTree[Array]) -> PyTree[Array]:
    """`factor * element`."""
    return jtu.tree_map(lambda leaf: jnp.asarray(factor, leaf.dtype) * leaf, element)


def add(x: PyTree[Array], y: PyTree[Array]) -> PyTree[Array]:
    """`x + y`."""
    return jtu.tree_map(jnp.add, x, y)


def subtract(x: PyTree[Array], y: PyTree[Array]) -> PyTree[Array]:
    """`x - y`."""
    return jtu.tree_map(jnp.subtract, x, y)

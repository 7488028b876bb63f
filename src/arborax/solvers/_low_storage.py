"""Commutator-free schemes in Williamson's two-register form."""

import functools as ft
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float, PyTree

from .._xla import barrier, scan
from ..geometry import AbstractGeometry
from ._base import AbstractSolver, add, combination, scale, subtract


def _low_storage(tableau, f: Callable, geometry: AbstractGeometry, s, y, h):
    """`D <- A_l D + h f(y)`, `y <- exp(B_l D) . y`, one stage after another.

    Stages are a scan, so the field is traced once. Reverse mode recomputes each from
    its two registers: storing what happens inside takes longer than doing it again.
    **Returns:** the new state, the states before each stage and the generators `h f` of
    each stage, stacked.
    """
    dtype = jtu.tree_leaves(y)[0].dtype
    table = [jnp.asarray(row, dtype) for row in tableau]
    field = lambda s, z: geometry.generator(z, f(s, z))  # noqa: E731
    shape = jax.eval_shape(field, s, y)
    register = jtu.tree_map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shape)

    @ft.partial(jax.checkpoint, prevent_cse=False)
    def stage(carry, row):
        d, z = carry
        a, b, c = row
        k = jtu.tree_map(barrier, scale(h, field(s + c * h, z)))
        d = add(scale(a, d), k)
        return (d, geometry.act(scale(b, d), z)), (z, k)

    (_, y1), (states, generators) = scan(stage, (register, y), tuple(table))
    return y1, states, generators


class LieEuler(AbstractSolver):
    r"""The Lie-Euler scheme $y_1 = \exp(h \xi(y_0)) \cdot y_0$. Order 1, one stage.

    For drivers of bounded variation. A step leaves out $\frac12 L' L$ of the window
    field $L$, which for a Brownian driver has a mean as large as the window is long: as
    windows shrink the scheme converges to another equation. Itô controls are refused;
    a rough driver with a Stratonovich control cannot be told from a smooth one, so
    choose a scheme of order 2 for it yourself.
    """

    order = 1
    reversible = False
    euclidean = False

    def step(self, f, geometry, s, y, h) -> PyTree[Array]:
        return geometry.act(scale(h, geometry.generator(y, f(s, y))), y)


_EES25 = (
    (0.0, -7 / 15, -35 / 32),
    (1 / 3, 15 / 16, 2 / 5),
    (0.0, 1 / 3, 5 / 6),
)


class CFEES25(AbstractSolver):
    r"""Commutator-free EES(2,5; 1/10), explicit and effectively symmetric.

    Order 2; stepping forward and back returns to the start up to order 5. Three
    fields, three exponentials, two registers:
    $D_l = A_l D_{l-1} + h f(y)$, $y \leftarrow \exp(B_l D_l) \cdot y$ with
    $A = (0, -7/15, -35/32)$ and $B = (1/3, 15/16, 2/5)$. The embedded estimate has
    order 1: it replaces the last exponential by one with weights $(5/48, 1/16, 0)$.

    ??? cite "Reference"

        D. Shmelev, K. Ebrahimi-Fard, N. Tapia, C. Salvi, Explicit and effectively
        symmetric Runge-Kutta methods, arXiv:2507.21006.
    """

    order = 2
    reversible = True
    euclidean = False

    def step(self, f, geometry, s, y, h) -> PyTree[Array]:
        return _low_storage(_EES25, f, geometry, s, y, h)[0]

    def step_with_error(self, f, geometry, s, y, h):
        y1, states, generators = _low_storage(_EES25, f, geometry, s, y, h)
        last = jtu.tree_map(lambda leaf: leaf[2], states)
        xi = combination((5 / 48, 1 / 16, 0.0), generators)
        return y1, subtract(y1, geometry.act(xi, last))


_R2 = math.sqrt(2.0)
_EES27 = (
    (0.0, (-7 + 4 * _R2) / 3, -(4 + 5 * _R2) / 12, 3 * (-31 + 8 * _R2) / 49),
    ((2 - _R2) / 3, (4 + _R2) / 8, 3 * (3 - _R2) / 7, (9 - 4 * _R2) / 14),
    (0.0, (2 - _R2) / 3, (2 + _R2) / 6, (4 + _R2) / 6),
)


class CFEES27(AbstractSolver):
    r"""Commutator-free EES(2,7; $(5 - 3\sqrt2)/14$).

    Order 2; stepping forward and back returns to the start up to order 7. Four fields,
    four exponentials, two registers. Reference: see [`arborax.CFEES25`][].
    """

    order = 2
    reversible = True
    euclidean = False

    def step(self, f, geometry, s, y, h) -> PyTree[Array]:
        return _low_storage(_EES27, f, geometry, s, y, h)[0]


class CF4(AbstractSolver):
    r"""The commutator-free scheme of order 4 of Celledoni, Marthinsen and Owren.

    Four fields and five exponentials per step; the classical Runge-Kutta scheme in flat
    space.

    ??? cite "Reference"

        E. Celledoni, A. Marthinsen, B. Owren, Commutator-free Lie group methods, Future
        Generation Computer Systems 19 (2003).
    """

    order = 4
    reversible = False
    euclidean = False

    def step(
        self, f, geometry, s: Float[Array, ""], y: PyTree[Array], h
    ) -> PyTree[Array]:
        def generator(c, z):
            return scale(h, geometry.generator(z, f(s + c * h, z)))

        def mix(weights, *elements):
            stacked = jtu.tree_map(lambda *leaf: jnp.stack(leaf), *elements)
            return combination(weights, stacked)

        k1 = generator(0.0, y)
        y2 = geometry.act(scale(0.5, k1), y)
        k2 = generator(0.5, y2)
        k3 = generator(0.5, geometry.act(scale(0.5, k2), y))
        k4 = generator(1.0, geometry.act(mix((1.0, -0.5), k3, k1), y2))
        half = mix((1 / 4, 1 / 6, 1 / 6, -1 / 12), k1, k2, k3, k4)
        rest = mix((-1 / 12, 1 / 6, 1 / 6, 1 / 4), k1, k2, k3, k4)
        return geometry.act(rest, geometry.act(half, y))

"""Explicit Runge-Kutta schemes in the Lie algebra, from any Butcher tableau."""

import functools as ft
from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.lax as lax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, PyTree

from .._inputs import as_count
from .._values import shown
from .._xla import scan
from ..geometry import AbstractGeometry
from ._base import AbstractSolver, add, combination, scale, subtract


_BERNOULLI = (1.0, -1 / 2, 1 / 12, 0.0, -1 / 720, 0.0, 1 / 30240, 0.0, -1 / 1209600)


class Tableau(eqx.Module):
    """An explicit Butcher tableau as hashable static data."""

    a: tuple[tuple[float, ...], ...] = eqx.field(static=True)
    b: tuple[float, ...] = eqx.field(static=True)
    c: tuple[float, ...] = eqx.field(static=True)
    b_error: tuple[float, ...] = eqx.field(static=True)


def _as_tableau(scheme: Any, order: int | None) -> tuple[Tableau, int]:
    """The tableau and the order of a Diffrax solver, or of a tableau given as such."""
    tableau = getattr(scheme, "tableau", scheme)
    if not isinstance(tableau, diffrax.ButcherTableau):
        raise TypeError(
            "expected an explicit Diffrax Runge-Kutta solver (`diffrax.Dopri5()`) or a "
            f"`diffrax.ButcherTableau`, got {shown(scheme)}. Other schemes "
            "are arborax's own: `LieEuler`, `CFEES25`, `CF4`."
        )
    if tableau.implicit:
        raise ValueError(
            f"{type(scheme).__name__} is implicit; an explicit scheme is needed."
        )
    if order is None:
        if scheme is tableau:
            raise ValueError("give the `order` of a bare Butcher tableau.")
        order = scheme.order(None)
    stages = len(tableau.b_sol)
    a = np.zeros((stages, stages))
    for i, row in enumerate(tableau.a_lower, start=1):
        a[i, :i] = row
    b, c, b_error = (
        tuple(np.asarray(row).tolist())
        for row in (tableau.b_sol, tableau.c, tableau.b_error)
    )
    own = Tableau(tuple(map(tuple, a.tolist())), b, (0.0, *c), b_error)
    return own, as_count("order", order)


def _stages(tableau: Tableau, evaluate: Callable, s, y, h) -> PyTree[Array]:
    """`k_i = evaluate(s + c_i h, sum_j a_ij k_j)`, stacked; traced once."""
    dtype = jtu.tree_leaves(y)[0].dtype
    shape = jax.eval_shape(evaluate, s, None)
    count = len(tableau.b)
    ks = jtu.tree_map(lambda k: jnp.zeros((count, *k.shape), k.dtype), shape)

    def stage(ks, row):
        i, a, c = row
        k = scale(h, evaluate(s + c * h, combination(a, ks)))
        put = ft.partial(lax.dynamic_update_index_in_dim, index=i, axis=0)
        return jtu.tree_map(put, ks, k), None

    rows = (
        jnp.arange(count),
        jnp.asarray(tableau.a, dtype),
        jnp.asarray(tableau.c, dtype),
    )
    return scan(stage, ks, rows)[0]


class RKMK(AbstractSolver):
    r"""Runge-Kutta-Munthe-Kaas schemes: an explicit Runge-Kutta scheme for
    $\dot\Theta = \mathrm{dexp}^{-1}_\Theta \xi(\exp(\Theta) \cdot y_0)$, $\Theta(0) =
    0$.

    The series of $\mathrm{dexp}^{-1}$ is cut where the order of the scheme is kept; one
    exponential per stage, and commutators from order 3 on. Order of the tableau.

    **Arguments:**

    - `scheme`: an explicit Diffrax Runge-Kutta solver, or a `diffrax.ButcherTableau`.
    - `order`: order of a bare tableau.

    ??? cite "Reference"

        H. Munthe-Kaas, High order Runge-Kutta methods on manifolds, Applied Numerical
        Mathematics 29 (1999).
    """

    tableau: Tableau
    order: int = eqx.field(static=True)
    reversible = False
    euclidean = False

    def __init__(self, scheme=None, order: int | None = None):
        scheme = diffrax.Bosh3() if scheme is None else scheme
        self.tableau, self.order = _as_tableau(scheme, order)
        if self.order > len(_BERNOULLI) + 1:
            raise ValueError(f"RKMK goes up to order {len(_BERNOULLI) + 1}.")

    def _dexpinv(self, geometry: AbstractGeometry, theta, xi):
        out = term = xi
        for coefficient in _BERNOULLI[1 : max(self.order - 1, 1)]:
            term = geometry.lie_bracket(theta, term)
            if coefficient:
                out = add(out, scale(coefficient, term))
        return out

    def step(self, f, geometry, s, y, h) -> PyTree[Array]:
        return self._step(f, geometry, s, y, h)[0]

    def step_with_error(self, f, geometry, s, y, h):
        y1, ks = self._step(f, geometry, s, y, h)
        other = np.subtract(self.tableau.b, self.tableau.b_error)
        return y1, subtract(y1, geometry.act(combination(other, ks), y))

    def _step(self, f, geometry, s, y, h):
        def evaluate(time, theta):
            if theta is None:  # shapes only
                return geometry.generator(y, f(time, y))
            z = geometry.act(theta, y)
            xi = geometry.generator(z, f(time, z))
            return self._dexpinv(geometry, theta, xi)

        ks = _stages(self.tableau, evaluate, s, y, h)
        return geometry.act(combination(self.tableau.b, ks), y), ks


class EuclideanRK(AbstractSolver):
    """Any explicit Diffrax Runge-Kutta solver, in flat space only.

    **Arguments:**

    - `scheme`: an explicit Diffrax Runge-Kutta solver, or a `diffrax.ButcherTableau`.
    - `order`: order of a bare tableau.
    """

    tableau: Tableau
    order: int = eqx.field(static=True)
    reversible = False
    euclidean = True

    def __init__(self, scheme, order: int | None = None):
        self.tableau, self.order = _as_tableau(scheme, order)

    def step(self, f, geometry, s, y, h) -> PyTree[Array]:
        return _combined(y, h, self.tableau.b, self._slopes(f, geometry, s, y, h))

    def step_with_error(self, f, geometry, s, y, h):
        ks = self._slopes(f, geometry, s, y, h)
        zero = jtu.tree_map(jnp.zeros_like, y)
        error = _combined(zero, h, self.tableau.b_error, ks)
        return _combined(y, h, self.tableau.b, ks), error

    def _slopes(self, f, geometry, s, y, h) -> list[PyTree[Array]]:
        """Stages one after the other, each traced on its own."""
        ks = []
        for row, c in zip(self.tableau.a, self.tableau.c):
            z = _combined(y, h, row, ks)
            ks.append(geometry.frame(z, f(s + c * h, z)))
        return ks


def _combined(y, h, weights, ks: list[PyTree[Array]]) -> PyTree[Array]:
    """`y + h sum_j weights_j k_j`, terms with weight zero left out."""
    for weight, k in zip(weights, ks):
        if weight:
            y = add(y, scale(weight * h, k))
    return y


class Heun(AbstractSolver):
    """Heun's scheme, order 2 with two stages, in flat space only."""

    order = 2
    reversible = False
    euclidean = True

    def step(self, f, geometry, s, y, h) -> PyTree[Array]:
        return EuclideanRK(diffrax.Heun()).step(f, geometry, s, y, h)

    def step_with_error(self, f, geometry, s, y, h):
        return EuclideanRK(diffrax.Heun()).step_with_error(f, geometry, s, y, h)


def as_solver(
    solver: Any,
    geometry: AbstractGeometry | None = None,
    calculus: str = "stratonovich",
) -> AbstractSolver:
    """The scheme that a user's `solver` stands for; an explicit Diffrax Runge-Kutta
    solver becomes an [`arborax.EuclideanRK`][]. With a `geometry`, refuse a scheme that
    cannot move there or does not fit the `calculus`."""
    if not isinstance(solver, AbstractSolver):
        if not isinstance(getattr(solver, "tableau", None), diffrax.ButcherTableau):
            raise TypeError(
                "`solver` must be an arborax scheme such as `CFEES25()`, `CF4()` or "
                "`LieEuler()`, or an explicit Diffrax Runge-Kutta solver, got "
                f"{shown(solver)}."
            )
        scheme = EuclideanRK(solver)
        if geometry is not None and not geometry.flat:
            name = type(solver).__name__
            raise ValueError(
                f"`diffrax.{name}` adds increments and would leave {geometry}. Use "
                f"`RKMK(diffrax.{name}())`, or a scheme such as `CFEES25` or `CF4`."
            )
        solver = scheme
    if geometry is not None:
        solver.check(geometry, calculus)
    return solver

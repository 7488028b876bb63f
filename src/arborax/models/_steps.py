"""Solver steps over unit time, with the stages written out."""

from collections.abc import Callable

import jax.lax as lax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..geometry import AbstractGeometry
from ..solvers import AbstractSolver, EuclideanRK, Heun


def _explicit(tableau, f: Callable, s, y: Array, h) -> Array:
    """One explicit Runge-Kutta step of a vector."""
    ks = []
    for row, c in zip(tableau.a, tableau.c):
        z = y
        for weight, k in zip(row, ks):
            if weight:
                z = z + weight * h * k
        ks.append(f(s + c * h, z))
    out = y
    for weight, k in zip(tableau.b, ks):
        if weight:
            out = out + weight * h * k
    return out


def one_step(
    solver: AbstractSolver,
    f: Callable,
    geometry: AbstractGeometry,
    s: Float[Array, ""],
    y: PyTree[Array],
    h: Float[Array, ""],
) -> PyTree[Array]:
    """`solver.step`. Stages of schemes for vectors are written out, not scanned: the
    compiler then fuses them, and derivatives of the small networks of models run
    several times faster."""
    if isinstance(solver, Heun):
        k = f(s, y)
        return y + (h / 2) * (k + f(s + h, y + h * k))
    if isinstance(solver, EuclideanRK):
        return _explicit(solver.tableau, f, s, y, h)
    return solver.step(f, geometry, s, y, h)


def run_steps(
    solver: AbstractSolver,
    f: Callable,
    geometry: AbstractGeometry,
    y: PyTree[Array],
    substeps: int,
    dtype,
) -> PyTree[Array]:
    """`substeps` steps of a scheme over unit time."""
    h = jnp.asarray(1 / substeps, dtype)
    if substeps == 1:
        return one_step(solver, f, geometry, jnp.zeros_like(h), y, h)

    def body(z, s):
        return one_step(solver, f, geometry, s, z, h), None

    return lax.scan(body, y, jnp.arange(substeps, dtype=dtype) * h)[0]

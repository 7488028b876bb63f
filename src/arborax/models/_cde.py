"""Controlled differential equations through the samples of a path."""

from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._xla import scan
from ..geometry import Euclidean
from ..solvers import AbstractSolver


def fixed_step(
    field: Callable,
    solver: AbstractSolver,
    h: Float[Array, " hidden"],
    velocity: Callable,
) -> Float[Array, " hidden"]:
    """One solver step of `dh/ds = velocity(s) @ field(h)` over a sample interval."""

    def f(s, z):
        return velocity(s) @ field(z)

    one = jnp.ones((), h.dtype)
    return solver.step(f, Euclidean(h.shape[0]), jnp.zeros_like(one), h, one)


def fixed_solve(
    field: Callable,
    solver: AbstractSolver,
    h0: Float[Array, " hidden"],
    pieces: Any,
    velocity: Callable,
) -> Float[Array, "times hidden"]:
    """States at all samples, one solver step an interval; `velocity(s, piece)`."""

    @jax.checkpoint
    def body(h, piece):
        h = fixed_step(field, solver, h, lambda s: velocity(s, piece))
        return h, h

    _, rest = scan(body, h0, pieces)
    return jnp.concatenate([h0[None], rest])


def adaptive_solve(
    field: Callable,
    h0: Float[Array, " hidden"],
    derivative: Callable,
    steps: int,
    rtol: float,
    atol: float,
    max_steps: int,
) -> Float[Array, "times hidden"]:
    """States at `0, 1, .., steps` of `dh/ds = derivative(s) @ field(h)` by Diffrax,
    Tsit5 with a PID controller."""
    if steps == 0:
        return h0[None]
    grid = jnp.arange(steps + 1, dtype=h0.dtype)
    controller = diffrax.PIDController(
        rtol=rtol, atol=atol, dtmin=1e-4, force_dtmin=True
    )
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda s, h, args: derivative(s) @ field(h)),
        diffrax.Tsit5(),
        grid[0],
        grid[-1],
        None,
        h0,
        saveat=diffrax.SaveAt(ts=grid),
        stepsize_controller=controller,
        max_steps=max_steps,
        throw=False,
    )
    assert solution.ys is not None
    # A solve that ran out of steps is NaN, as any failure inside compiled code is.
    good = solution.result == diffrax.RESULTS.successful
    return jnp.where(good, solution.ys, jnp.full_like(solution.ys, jnp.nan))

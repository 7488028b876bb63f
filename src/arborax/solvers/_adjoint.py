"""Adjoints: how a solve is differentiated in reverse mode."""

import abc
import dataclasses
import functools as ft
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, PyTree

from .._inputs import as_kind
from .._xla import scan, sharded, vary_as
from ..lifts import WindowField
from ._base import AbstractSolver
from ._low_storage import CFEES25, CFEES27
from ._window import run, window_field, window_row


class AbstractAdjoint(eqx.Module):
    """How the windows of a solve are run, so that reverse mode finds what it needs."""

    @abc.abstractmethod
    def check(self, solver: AbstractSolver) -> None:
        """Refuse schemes that this adjoint cannot differentiate."""

    @abc.abstractmethod
    def run(
        self, field: WindowField, solver, substeps: int, y0, lams, knots, save: bool
    ) -> tuple[PyTree[Array], PyTree[Array] | None]:
        """The last state, and the states at the ends of all windows if `save`."""


class CheckpointedAdjoint(AbstractAdjoint):
    """Store one state per window and recompute the rest. The default.

    - Memory: one state per window; for `CFEES25` and `CFEES27` a state and a register
      per stage instead.
    - Exactness: gradients are those of the discrete solve, to rounding. Forward mode
      and higher derivatives work as well.
    - Schemes: all.

    Not `diffrax.RecursiveCheckpointAdjoint`, which belongs to `diffrax.diffeqsolve`
    and is refused here: a window is the natural place for a checkpoint.
    """

    def check(self, solver: AbstractSolver) -> None:
        del solver

    def run(self, field, solver, substeps, y0, lams, knots, save):
        wrap = ft.partial(jax.checkpoint, prevent_cse=False)
        if isinstance(solver, CFEES25 | CFEES27):  # their stages are recomputed already
            wrap = lambda body: body  # noqa: E731
        return run(field, solver, substeps, y0, lams, knots, save, wrap)


class ReversibleAdjoint(AbstractAdjoint):
    """Store the last state only, and step back from it with the same scheme.

    - Memory: does not grow with the number of windows.
    - Exactness: states are reproduced up to the round-trip defect of the scheme, of
      order 5 (`CFEES25`) or 7 (`CFEES27`) in the step, and gradients agree with those
      of [`arborax.CheckpointedAdjoint`][] to that order. Reverse mode of first order
      only.
    - Schemes: `CFEES25` and `CFEES27`, which are effectively symmetric.

    Unlike the algebraically reversible solvers of Diffrax it needs no second copy of
    the state. Adjoints of Diffrax are refused here.
    """

    def check(self, solver: AbstractSolver) -> None:
        if not solver.reversible:
            raise ValueError(
                "`ReversibleAdjoint` needs an effectively symmetric scheme (`CFEES25`, "
                f"`CFEES27`), got {type(solver).__name__}. Use `CheckpointedAdjoint()`."
            )

    def run(self, field, solver, substeps, y0, lams, knots, save):
        if sharded():  # what is hoisted is traced for a state that varies as it will
            value = jax.eval_shape(lambda y: field.fields(knots[0], y), y0)
            y0 = vary_as(y0, lams, value)
        field = dataclasses.replace(field, fields=field.fields.hoist(knots[0], y0))
        return reversible_run(
            (field, y0, lams, knots), solver=solver, substeps=substeps, save=save
        )


def check_adjoint(adjoint: Any, solver: AbstractSolver) -> None:
    """Refuse what is not an adjoint, and a scheme that it cannot differentiate."""
    must = "be `arborax.CheckpointedAdjoint()` or `arborax.ReversibleAdjoint()`"
    as_kind("adjoint", adjoint, AbstractAdjoint, must).check(solver)


@eqx.filter_custom_vjp
def reversible_run(vjp_arg, *, solver, substeps: int, save: bool):
    """As `run`, with `vjp_arg = (field, y0, lams, knots)`.

    The backward pass steps back from the final state with the same scheme and negative
    step, and differentiates each local step there. States are reproduced up to the
    round-trip defect of the scheme, of order 5 or 7 in the step, and so are gradients.
    """
    field, y0, lams, knots = vjp_arg
    return run(field, solver, substeps, y0, lams, knots, save, by_index=True)


@reversible_run.def_fwd
def _forward(perturbed, vjp_arg, *, solver, substeps, save):
    del perturbed
    field, y0, lams, knots = vjp_arg
    out = run(field, solver, substeps, y0, lams, knots, save, by_index=True)
    return out, out[0]


@reversible_run.def_bwd
def _backward(residual, grad_out, perturbed, vjp_arg, *, solver, substeps, save):
    field, y0, lams, knots = vjp_arg
    # Outputs that grow with the number of windows are made only if asked for.
    keep_lams = perturbed[2]
    keep_knots = perturbed[3] and field.time_dependent
    last_grad, saved_grad = grad_out
    dynamic, static = eqx.partition(field, eqx.is_inexact_array)
    h = jnp.asarray(1 / substeps, lams.dtype)

    def local(dynamic, y, row, s):
        f = window_field(eqx.combine(dynamic, static), *row)
        return solver.step(f, field.geometry, s, y, h)

    def substep(carry, s):
        y, grads, row = carry
        grad_field, grad_y, grad_row = grads
        back = window_field(field, *row)
        y = solver.step(back, field.geometry, s + h, y, -h)
        wanted = row if keep_knots else row[:1]
        _, pull = eqx.filter_vjp(
            lambda d, z, x: local(d, z, (*x, *row[len(x) :]), s), dynamic, y, wanted
        )
        more_field, grad_y, more_row = pull(grad_y)
        grad_field, grad_row = eqx.apply_updates(
            (grad_field, grad_row), (more_field, more_row)
        )
        return (y, (grad_field, grad_y, grad_row), row), None

    def window(carry, row):
        y, grad_field, grad_y = carry
        k, saved = row
        row = window_row(lams, knots, k)
        grad_y = eqx.apply_updates(grad_y, saved)
        grads = (grad_field, grad_y, zeros(row if keep_knots else row[:1]))
        steps = jnp.arange(substeps, dtype=lams.dtype) * h
        (y, grads, _), _ = scan(substep, (y, grads, row), steps, reverse=True)
        grad_field, grad_y, (grad_lam, *grad_times) = grads
        return (y, grad_field, grad_y), (grad_lam if keep_lams else None, grad_times)

    # Cotangents that are missing are zero.
    zeros = ft.partial(jtu.tree_map, jnp.zeros_like)
    last_grad = eqx.combine(last_grad, zeros(residual))
    if save:
        shape = (lams.shape[0],)
        stacked = jtu.tree_map(
            lambda leaf: jnp.zeros(shape + leaf.shape, leaf.dtype), residual
        )
        saved_grad = eqx.combine(saved_grad, stacked)
    start = (residual, zeros(dynamic), last_grad)
    rows = (jnp.arange(lams.shape[0]), saved_grad)
    (_, grad_field, grad_y), outputs = scan(window, start, rows, reverse=True)
    grad_lams, grad_times = outputs
    grad_knots = None
    if keep_knots:
        # A knot ends one window and starts the next.
        starts, stops = grad_times
        grad_knots = jnp.pad(starts, (0, 1)) + jnp.pad(stops, (1, 0))
    return grad_field, grad_y, grad_lams, grad_knots

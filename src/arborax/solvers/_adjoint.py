"""Reversible adjoint: memory that does not grow with the number of windows."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, PyTree

from .._xla import scan
from ..lifts import DrivingFields, WindowField
from ._base import AbstractSolver
from ._window import run, window_field, window_row


def hoist(field: WindowField, t, y: PyTree[Array]) -> WindowField:
    """Make arrays that plain functions close over visible to differentiation.

    Fields that are PyTrees (Equinox modules) are left as they are.
    """
    driving = field.fields

    def convert(function):
        if isinstance(function, eqx.Module | jtu.Partial):
            return function
        args = (t, y) if driving.time_dependent else (y,)
        return eqx.filter_closure_convert(function, *args)

    fields: Any
    if isinstance(driving.fields, tuple):
        fields = tuple(convert(function) for function in driving.fields)
    else:
        fields = convert(driving.fields)
    new = DrivingFields(fields, driving.number, driving.dim, driving.time_dependent)
    return WindowField(new, field.alg, field.geometry)


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
        grads = (_add(grad_field, more_field), grad_y, _add(grad_row, more_row))
        return (y, grads, row), None

    def window(carry, row):
        y, grad_field, grad_y = carry
        k, saved = row
        row = window_row(lams, knots, k)
        grad_y = _add(grad_y, saved)
        grads = (grad_field, grad_y, zeros(row if keep_knots else row[:1]))
        steps = jnp.arange(substeps, dtype=lams.dtype) * h
        (y, grads, _), _ = scan(substep, (y, grads, row), steps, reverse=True)
        grad_field, grad_y, (grad_lam, *grad_times) = grads
        return (y, grad_field, grad_y), (grad_lam if keep_lams else None, grad_times)

    zeros = lambda tree: jtu.tree_map(jnp.zeros_like, tree)  # noqa: E731
    last_grad = _fill(last_grad, residual)
    if save:
        stacked = jtu.tree_map(
            lambda leaf: jnp.zeros((lams.shape[0], *leaf.shape), leaf.dtype), residual
        )
        saved_grad = _fill(saved_grad, stacked)
    else:
        saved_grad = None
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


def _add(x: PyTree[Array], y: PyTree[Array] | None) -> PyTree[Array]:
    if y is None:
        return x
    return jtu.tree_map(
        lambda a, b: a if b is None else a + b, x, y, is_leaf=lambda b: b is None
    )


def _fill(grad: PyTree[Array], like: PyTree[Array]) -> PyTree[Array]:
    """Zeros where a cotangent is missing."""
    if grad is None:
        return jtu.tree_map(jnp.zeros_like, like)
    return jtu.tree_map(
        lambda g, leaf: jnp.zeros_like(leaf) if g is None else g,
        grad,
        like,
        is_leaf=lambda g: g is None,
    )


def supports(solver: AbstractSolver) -> None:
    """Refuse schemes without a useful step back."""
    if not solver.reversible:
        raise ValueError(
            f"the reversible adjoint needs an effectively symmetric scheme (`CFEES25`, "
            f"`CFEES27`), got {type(solver).__name__}. Use `adjoint='checkpointed'`."
        )

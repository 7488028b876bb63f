"""The same equations inside `diffrax.diffeqsolve`, through public names only."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import diffrax
import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, PyTree

from .._values import refuse
from ..geometry import AbstractGeometry
from ..lifts import lift, lifted_fields, WindowField
from ..signatures import RoughPath
from ._base import AbstractSolver
from ._checks import check_calculus, check_control, check_geometry
from ._low_storage import CFEES25
from ._runge_kutta import as_solver
from ._window import join_states, window_field


_CROSSES = (
    "A step crosses a knot of the control. Use `diffrax.StepTo(control.knots)` or "
    "`diffrax.ClipStepSizeController(.., step_ts=control.knots)`."
)


class RoughTerm(diffrax.AbstractTerm):
    r"""The term $\sum_i V_i(Y)\, dX^i$ of a rough differential equation, for Diffrax.

    Over a step the control is the log-signature of the driver, and the vector field the
    lifted fields of all primitives. Use it with [`arborax.LogODE`][] on any geometry,
    or in flat space directly with an explicit Diffrax solver.

    Steps must not cross a knot (the log-signature of a step is taken inside one
    window): step to the knots with `diffrax.StepTo(control.knots)`, or clip with
    `diffrax.ClipStepSizeController(controller, step_ts=control.knots)`. A step across
    a knot turns the solution into NaN, and is an error within
    [`arborax.debug_checks`][]. (`diffeqsolve` always runs compiled.)

    Itô equations need a solver of order 2 at least. [`arborax.LogODE`][] refuses
    others; a Diffrax solver used directly cannot be checked.

    **Arguments:**

    - `fields`: as in [`arborax.solve`][]; `fields(t, y, args)` receives the `args` of
        `diffrax.diffeqsolve`.
    - `control`: from [`arborax.rough_path`][].
    - `geometry`: where the state lives.
    """

    field: WindowField
    control: RoughPath

    def __init__(
        self,
        fields: Callable | Sequence[Callable],
        control: RoughPath,
        geometry: AbstractGeometry,
    ):
        check_geometry(geometry)
        check_control(control)
        check_calculus(control.calculus, geometry)
        self.field = lift(fields, control.alg, geometry)
        self.control = control

    @property
    def geometry(self) -> AbstractGeometry:
        """Where the state lives."""
        return self.field.geometry

    def bound(self, args: PyTree) -> WindowField:
        """The window field with these `args`, if its fields take any."""
        field = self.field
        if not field.time_dependent:
            return field
        return dataclasses.replace(field, fields=field.fields.bind(args))

    def vf(self, t, y, args) -> PyTree[Array]:
        """Ambient fields of all primitives; prefer `vf_prod`."""
        field = self.bound(args)
        evaluate = lifted_fields(field.fields, field.alg, field.geometry)
        rows = evaluate(t, y) if field.time_dependent else evaluate(y)
        return eqx.filter_vmap(field.geometry.frame, in_axes=(None, 0))(y, rows)

    def contr(self, t0, t1, **kwargs) -> Array:
        """Log-signature over the step."""
        del kwargs
        control = self.control
        window = control.window(t0)
        stop = control.knots[window + 1]
        slack = 1e-5 * (stop - control.knots[window])
        t1 = jnp.asarray(t1, control.knots.dtype)
        t1 = refuse(t1, t1 > stop + slack, _CROSSES)
        return control.log_signature(t0, jnp.minimum(t1, stop), window=window)

    def prod(self, vf: PyTree[Array], control: Array) -> PyTree[Array]:
        """Contract fields and log-signature."""
        return jtu.tree_map(lambda rows: jnp.tensordot(control, rows, axes=1), vf)

    def vf_prod(self, t, y, args, control: Array) -> PyTree[Array]:
        """The window field as an ambient vector, contracted before differentiating."""
        field = self.bound(args)
        u = field.evaluate(t, y, field.coefficients(control))
        return self.geometry.frame(y, u)

    def is_vf_expensive(self, t0, t1, y, args) -> bool:
        return True


class GeodesicInterpolation(diffrax.AbstractLocalInterpolation):
    """Between two states of a step, the geodesic of the geometry."""

    t0: Any
    t1: Any
    y0: Any
    y1: Any
    geometry: AbstractGeometry

    def evaluate(self, t0, t1=None, left: bool = True) -> PyTree[Array]:
        del left
        if t1 is not None:
            start, stop = self.evaluate(t0), self.evaluate(t1)
            return jtu.tree_map(jnp.subtract, stop, start)
        ends = (self.t0, self.y0), (self.t1, self.y1)
        return join_states(self.geometry, "geodesic", *ends, jnp.asarray(t0))


def _unwrap(terms) -> RoughTerm:
    """The term itself, which `diffeqsolve` wraps to know the direction of time."""
    return terms if isinstance(terms, RoughTerm) else terms.term


class LogODE(diffrax.AbstractAdaptiveSolver):
    """The log-ODE method as a Diffrax solver, for [`arborax.RoughTerm`][].

    One Diffrax step is one step of `base` along the window field of the log-signature
    over that step. With a fixed step at the knots the result is that of
    [`arborax.solve`][]. Adaptive controllers need a base with an embedded estimate:
    `CFEES25`, `RKMK` or a Diffrax Runge-Kutta solver. Between steps (`SaveAt(ts=..)`)
    the state follows a geodesic; add the times to the controller's `step_ts` for exact
    ones.

    **Arguments:**

    - `base`: an arborax scheme, or in flat space an explicit Diffrax Runge-Kutta
      solver.
    """

    base: AbstractSolver

    term_structure: ClassVar = RoughTerm
    interpolation_cls: ClassVar[Callable] = GeodesicInterpolation

    def __init__(self, base: AbstractSolver | diffrax.AbstractSolver | None = None):
        self.base = as_solver(CFEES25() if base is None else base)

    def order(self, terms) -> int:
        return self.base.order

    def init(self, terms, t0, t1, y0, args) -> None:
        term = _unwrap(terms)
        self.base.check(term.geometry, term.control.calculus)
        term.geometry.check_shape(y0)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        del solver_state, made_jump
        field = _unwrap(terms).bound(args)
        geometry = field.geometry
        dtype = jtu.tree_leaves(y0)[0].dtype
        lam = terms.contr(t0, t1).astype(dtype)
        start, stop = self._times(terms, t0, t1)
        f = window_field(field, lam, start, stop)
        zero, one = jnp.zeros((), dtype), jnp.ones((), dtype)
        y1, error = self.base.step_with_error(f, geometry, zero, y0, one)
        if error is not None:
            error = jtu.tree_map(jnp.abs, error)
        dense = {"y0": y0, "y1": y1, "geometry": geometry}
        return y1, error, dense, None, diffrax.RESULTS.successful

    def _times(self, terms, t0, t1):
        """Times of the control; backwards in time Diffrax counts negative ones."""
        direction = getattr(terms, "direction", 1)
        return t0 * direction, t1 * direction

    def func(self, terms, t0, y0, args) -> PyTree[Array]:
        """The window field at the start of the window of `t0`, per unit time."""
        term = _unwrap(terms)
        control = term.control
        time, _ = self._times(terms, t0, t0)
        window = control.window(time)
        span = control.knots[window + 1] - control.knots[window]
        lam = control.log_signatures[window] / span.astype(control.log_signatures.dtype)
        lam = lam.astype(jtu.tree_leaves(y0)[0].dtype)
        return term.vf_prod(time, y0, args, lam)

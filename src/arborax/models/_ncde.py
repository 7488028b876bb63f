"""Neural controlled differential equations: linear and Hermite controls."""

import abc
from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, PRNGKeyArray, PyTree

from .._xla import scan, vary_as
from ..geometry import AbstractGeometry, Euclidean
from ..paths import SampledPath
from ..solvers import AbstractSolver, as_solver
from ._base import AbstractCausalModel
from ._checks import as_output, as_sample, as_sizes, finite
from ._mlp import make_equation


class NCDEState(eqx.Module):
    """A neural CDE at a sample: the state, the sample, the step that led there, and
    whether there was one."""

    h: Float[Array, " hidden"]
    x: Float[Array, " channels"]
    step: Float[Array, " channels"]
    moved: Bool[Array, ""]


class AbstractNCDE(AbstractCausalModel):
    r"""The equation $dh = f_\theta(h)\, dX$ on the grid of sample numbers, on which the
    control runs through one step per unit of time.

    A subclass says how the control moves within a step (`velocity`).
    """

    output: AbstractGeometry = eqx.field(static=True)
    initial: Callable
    vector_field: Callable
    readout: eqx.nn.Linear
    solver: AbstractSolver
    channels: int = eqx.field(static=True)

    def __init__(
        self,
        channels: int,
        output: int | AbstractGeometry,
        *,
        hidden: int = 32,
        solver: AbstractSolver | diffrax.AbstractSolver | None = None,
        activation: Callable = jax.nn.softplus,
        final_activation: Callable = jnp.tanh,
        key: PRNGKeyArray,
        **options: Any,
    ):
        """**Arguments:**

        - `channels`: of the driver, time included.
        - `output`: number of outputs, or their manifold.
        - `hidden`: size of the state.
        - `solver`: fixed-step scheme, one step per sample; default Tsit5.
        - `activation`, `final_activation`: of the fields, default softplus and tanh.
        - `vector_field`, `initial`, `width`, `depth`, `initial_width`, `initial_depth`,
            `dtype`: as in [`arborax.models.BNRDE`][].
        - `key`: a JAX random key.
        """
        channels, hidden = as_sizes(channels=channels, hidden=hidden)
        space = Euclidean(hidden)
        self.output, self.channels = as_output(output), channels
        self.initial, self.vector_field, readout = make_equation(
            channels,
            channels,
            space,
            self.output,
            activation=activation,
            final_activation=final_activation,
            key=key,
            **options,
        )
        assert readout is not None
        self.readout = readout
        scheme = diffrax.Tsit5() if solver is None else solver
        self.solver = as_solver(scheme, space)

    @abc.abstractmethod
    def velocity(
        self, s: Float[Array, ""], piece: tuple[Array, Array]
    ) -> Float[Array, " channels"]:
        """The derivative of the control within a step, at `s` from 0 to 1; `piece` is
        the step before (at the first: itself) and the step."""

    def __call__(self, path: SampledPath) -> PyTree[Array]:
        path = self.check(path)
        steps = jnp.diff(path.xs, axis=0)
        pieces = jnp.concatenate([steps[:1], steps[:-1]]), steps
        return self.along(path.xs[0], pieces, self.velocity)

    def along(
        self,
        x0: Float[Array, " channels"],
        pieces: PyTree[Array],
        velocity: Callable[..., Float[Array, " channels"]],
    ) -> PyTree[Array]:
        """Outputs along any control that is smooth between samples.

        **Arguments:**

        - `x0`: the control at the first sample, from which the initial state is made.
        - `pieces`: arrays with one entry per sample interval on their first axis.
        - `velocity`: `velocity(s, piece)`, the derivative of the control along one
            interval, which `s` runs through from 0 to 1.

        **Returns:**

        Outputs at all samples, one more than there are intervals.
        """
        h0 = self.initial(x0)

        @jax.checkpoint
        def body(h, piece):
            h = self._step(h, piece, velocity)
            return h, h

        _, rest = scan(body, h0, pieces)
        return finite(jax.vmap(self._point)(jnp.concatenate([h0[None], rest])))

    def _point(self, h: Float[Array, " hidden"]) -> PyTree[Array]:
        return self.output.project_vector(self.readout(h))

    def _step(self, h, piece, velocity) -> Float[Array, " hidden"]:
        """One solver step over a sample interval."""

        def f(s, z):
            return velocity(s, piece) @ self.vector_field(z)

        one = jnp.ones((), h.dtype)
        return self.solver.step(f, Euclidean(h.shape[0]), jnp.zeros_like(one), h, one)

    def start(self, t: ArrayLike, x: Float[Array, " channels"]):
        x = as_sample("x", x, (self.channels,), self)
        h = self.initial(x)
        state = NCDEState(h, x, jnp.zeros_like(x), jnp.zeros((), bool))
        return vary_as(state, x), self._point(h)

    def update(self, state: NCDEState, t: ArrayLike, x: Array, bracket: Any = None):
        x = as_sample("x", x, (self.channels,), self)
        step = x - state.x
        before = jnp.where(state.moved, state.step, step)
        h = self._step(state.h, (before, step), self.velocity)
        return NCDEState(h, x, step, jnp.ones_like(state.moved)), self._point(h)


class NCDE(AbstractNCDE):
    r"""The neural controlled differential equation $dh = f_\theta(h)\, dX$ with $X$
    linear between samples.

    By default one Tsit5 step per sample; `solver=arborax.Heun()` is three times
    cheaper.

    ??? cite "Reference"

        P. Kidger, J. Morrill, J. Foster, T. Lyons, Neural controlled differential
        equations for irregular time series, NeurIPS 2020.
    """

    # Repeated for type checkers, which would give a subclass another one.
    __init__ = AbstractNCDE.__init__

    def velocity(self, s, piece):
        return piece[1]


class NCDEpp(AbstractNCDE):
    r"""The neural controlled differential equation with a cubic Hermite control.

    Slopes are backward differences, so the control before a sample depends on no later
    one; it is once continuously differentiable.

    ??? cite "Reference"

        J. Morrill, P. Kidger, L. Yang, T. Lyons, Neural controlled differential
        equations for online prediction tasks, arXiv:2106.11028.
    """

    __init__ = AbstractNCDE.__init__

    def velocity(self, s, piece):
        before, step = piece
        return before + (4 * s - 3 * s**2) * (step - before)

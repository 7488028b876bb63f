"""Neural controlled differential equations: linear and Hermite controls."""

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray, PyTree

from .._inputs import as_number
from .._values import shown
from ..geometry import AbstractGeometry, Euclidean
from ..paths import SampledPath
from ..solvers import AbstractSolver, as_solver
from ._base import AbstractCausalModel
from ._cde import adaptive_solve, fixed_solve, fixed_step
from ._checks import (
    as_output,
    as_sample,
    check_options,
    check_path,
    finite,
    promoted,
)
from ._mlp import MLP, VectorField


class Core(eqx.Module):
    """Initial state, fields, readout and how to solve: common to all neural CDEs."""

    output: AbstractGeometry = eqx.field(static=True)
    initial: MLP
    vector_field: VectorField
    readout: eqx.nn.Linear
    solver: AbstractSolver
    adaptive: tuple[float, float] | None = eqx.field(static=True)
    max_steps: int = eqx.field(static=True)

    def __init__(
        self,
        channels: int,
        output: int | AbstractGeometry,
        *,
        hidden: int = 32,
        width: int = 32,
        depth: int = 2,
        initial_width: int | None = None,
        initial_depth: int = 2,
        activation: Callable = jax.nn.softplus,
        final_activation: Callable = jnp.tanh,
        solver: AbstractSolver | diffrax.AbstractSolver | None = None,
        adaptive: tuple[float, float] | None = None,
        max_steps: int = 16384,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        check_options(
            key,
            dtype,
            (activation, final_activation),
            channels=channels,
            hidden=hidden,
            width=width,
            depth=depth,
            initial_width=initial_width,
            initial_depth=initial_depth,
            max_steps=max_steps,
        )
        first, second, third = jr.split(key, 3)
        self.output = as_output(output)
        self.initial = MLP(
            channels,
            hidden,
            initial_width or width,
            initial_depth,
            activation=activation,
            dtype=dtype,
            key=first,
        )
        mlp = MLP(
            hidden,
            channels * hidden,
            width,
            depth,
            activation=activation,
            final_activation=final_activation,
            dtype=dtype,
            key=second,
        )
        self.vector_field = VectorField(mlp, channels, hidden)
        size = self.output.vector_size
        self.readout = eqx.nn.Linear(hidden, size, dtype=dtype, key=third)
        solver = diffrax.Tsit5() if solver is None else solver
        self.solver = as_solver(solver, Euclidean(hidden))
        self.adaptive = _as_tolerances(adaptive)
        self.max_steps = int(max_steps)

    def point(self, h: Float[Array, " hidden"]) -> PyTree[Array]:
        return self.output.project_vector(self.readout(h))


def _as_tolerances(adaptive: Any) -> tuple[float, float] | None:
    if adaptive is None:
        return None
    if not isinstance(adaptive, tuple) or len(adaptive) != 2:
        raise TypeError(
            "`adaptive` must be None or tolerances `(rtol, atol)`, got "
            f"{shown(adaptive)}."
        )
    rtol, atol = (float(as_number("adaptive", value, 0)) for value in adaptive)
    if not rtol + atol > 0:
        raise ValueError("`adaptive` needs at least one positive tolerance.")
    return rtol, atol


def linear_velocity(s, piece: Float[Array, " channels"]) -> Float[Array, " channels"]:
    """Of the straight line over one step."""
    return piece


def hermite_velocity(s, piece: tuple[Array, Array]) -> Float[Array, " channels"]:
    """Of the cubic over one step that starts with the slope of the step before."""
    before, step = piece
    return before + (4 * s - 3 * s**2) * (step - before)


def hermite_pieces(steps: Float[Array, "steps channels"]) -> tuple[Array, Array]:
    """The step before (at the first: itself) and the step."""
    return jnp.concatenate([steps[:1], steps[:-1]]), steps


def solve_pieces(
    core: Core, x0: Float[Array, " channels"], pieces, velocity
) -> PyTree[Array]:
    """Outputs at all samples, from the first sample and what `velocity(s, piece)` needs
    of each interval."""
    h0 = core.initial(x0)
    if core.adaptive is None:
        hs = fixed_solve(core.vector_field, core.solver, h0, pieces, velocity)
    else:
        count = jax.tree.leaves(pieces)[0].shape[0]

        def derivative(s):
            k = jnp.clip(jnp.floor(s).astype(int), 0, count - 1)
            piece = jax.tree.map(lambda leaf: leaf[k], pieces)
            return velocity(s - k.astype(s.dtype), piece)

        hs = adaptive_solve(
            core.vector_field, h0, derivative, count, *core.adaptive, core.max_steps
        )
    return finite(jax.vmap(core.point)(hs))


def _refuse_adaptive(core: Core) -> None:
    if core.adaptive is not None:
        raise ValueError(
            "streams need one step a sample; build the model with `adaptive=None`."
        )


class NCDE(AbstractCausalModel):
    r"""The neural controlled differential equation $dh = f_\theta(h)\, dX$ with $X$
    linear between samples.

    Solved on the grid of sample numbers, so that the velocity of the control is the
    increment of a step. By default one Tsit5 step for each sample (a fixed cost, and
    causal); `solver=arborax.Heun()` is three times cheaper. With `adaptive` steps are
    chosen by Diffrax.

    ??? cite "Reference"

        P. Kidger, J. Morrill, J. Foster, T. Lyons, Neural controlled differential
        equations for irregular time series, NeurIPS 2020.
    """

    core: Core

    def __init__(
        self,
        channels: int,
        output: int | AbstractGeometry,
        *,
        key: PRNGKeyArray,
        **kwargs,
    ):
        """**Arguments:**

        - `channels`: of the driver, time included.
        - `output`: number of outputs, or their manifold.
        - `hidden`, `width`, `depth`, `initial_width`, `initial_depth`: sizes, by
            default 32 for states and layers, two hidden layers.
        - `activation`, `final_activation`: of the fields, default softplus and tanh.
        - `solver`: fixed-step scheme of arborax or Diffrax, default `diffrax.Tsit5()`.
        - `adaptive`: `None`, or tolerances `(rtol, atol)` of an adaptive solve;
            `max_steps` bounds its steps.
        - `dtype`: of the weights.
        - `key`: a JAX random key.
        """
        self.core = Core(channels, output, key=key, **kwargs)

    @property
    def channels(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Channels of the driver, time included."""
        return self.core.vector_field.channels

    @property
    def calculus(self) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Brackets are ignored."""
        return None

    def __call__(self, path: SampledPath) -> PyTree[Array]:
        path = promoted(check_path(path, self.channels), self)
        steps = jnp.diff(path.xs, axis=0)
        return solve_pieces(self.core, path.xs[0], steps, linear_velocity)

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
        return solve_pieces(self.core, x0, pieces, velocity)

    def start(
        self, t: ArrayLike, x: Float[Array, " channels"]
    ) -> tuple[PyTree, PyTree[Array]]:
        _refuse_adaptive(self.core)
        x = as_sample("x", x, (self.channels,), self)
        h = self.core.initial(x)
        return (h, x), self.core.point(h)

    def update(
        self,
        state: PyTree,
        t: ArrayLike,
        x: Float[Array, " channels"],
        bracket: Float[Array, "channels channels"] | None = None,
    ) -> tuple[PyTree, PyTree[Array]]:
        x = as_sample("x", x, (self.channels,), self)
        h, last = state
        core = self.core
        h = fixed_step(core.vector_field, core.solver, h, lambda s: x - last)
        return (h, x), core.point(h)


class NCDEpp(AbstractCausalModel):
    r"""The neural controlled differential equation with a cubic Hermite control.

    Slopes are backward differences, so the control before a sample depends on no later
    one; it is once continuously differentiable, which adaptive solvers like.

    ??? cite "Reference"

        J. Morrill, P. Kidger, L. Yang, T. Lyons, Neural controlled differential
        equations for online prediction tasks, arXiv:2106.11028.
    """

    core: Core

    def __init__(
        self,
        channels: int,
        output: int | AbstractGeometry,
        *,
        key: PRNGKeyArray,
        **kwargs,
    ):
        """**Arguments:** as [`arborax.models.NCDE`][]."""
        self.core = Core(channels, output, key=key, **kwargs)

    @property
    def channels(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Channels of the driver, time included."""
        return self.core.vector_field.channels

    @property
    def calculus(self) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Brackets are ignored."""
        return None

    def __call__(self, path: SampledPath) -> PyTree[Array]:
        path = promoted(check_path(path, self.channels), self)
        pieces = hermite_pieces(jnp.diff(path.xs, axis=0))
        return solve_pieces(self.core, path.xs[0], pieces, hermite_velocity)

    def start(
        self, t: ArrayLike, x: Float[Array, " channels"]
    ) -> tuple[PyTree, PyTree[Array]]:
        _refuse_adaptive(self.core)
        x = as_sample("x", x, (self.channels,), self)
        h = self.core.initial(x)
        state = (h, x, jnp.zeros_like(x), jnp.ones((), bool))
        return state, self.core.point(h)

    def update(
        self,
        state: PyTree,
        t: ArrayLike,
        x: Float[Array, " channels"],
        bracket: Float[Array, "channels channels"] | None = None,
    ) -> tuple[PyTree, PyTree[Array]]:
        x = as_sample("x", x, (self.channels,), self)
        h, last, before, fresh = state
        core = self.core
        step = x - last
        before = jnp.where(fresh, step, before)
        h = fixed_step(
            core.vector_field,
            core.solver,
            h,
            lambda s: hermite_velocity(s, (before, step)),
        )
        return (h, x, step, jnp.zeros((), bool)), core.point(h)

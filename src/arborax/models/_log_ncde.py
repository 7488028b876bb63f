"""Log neural controlled differential equations."""

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from .._inputs import as_count
from ..algebra import Shuffle
from ..geometry import AbstractGeometry, Euclidean
from ..solvers import AbstractSolver, check_solver, Heun, run_steps
from ._checks import as_output, check_options
from ._mlp import MLP, VectorField
from ._window_model import (
    AbstractWindowModel,
    check_window_options,
    second_order_expansion,
)


class LogNCDE(AbstractWindowModel):
    r"""The log-NCDE: the log-ODE with Lie brackets of neural fields.

    $L = \sum_i \lambda^i V_i + \sum_{i<j} \lambda^{ij} [V_i, V_j]$, the brackets by one
    Jacobian-vector product for each pair of channels. Depth 1 or 2; for more depth,
    other calculus or manifolds see [`arborax.models.BNRDE`][], which at the same
    weights in `Shuffle` on Euclidean space is the same model.

    Softplus inside, tanh on the fields, no basepoint: the initial state is a function
    of the first sample.

    ??? cite "Reference"

        B. Walker, A. D. McLeod, T. Qin, Y. Cheng, H. Li, T. Lyons, Log neural
        controlled differential equations: the Lie brackets make a difference, ICML
        2024.
    """

    alg: Shuffle = eqx.field(static=True)
    geometry: AbstractGeometry = eqx.field(static=True)
    output: AbstractGeometry = eqx.field(static=True)
    solver: AbstractSolver
    initial: MLP
    vector_field: VectorField
    readout: eqx.nn.Linear
    window: int = eqx.field(static=True)
    substeps: int = eqx.field(static=True)
    basepoint: bool = eqx.field(static=True)
    interpolation: str = eqx.field(static=True)

    def __init__(
        self,
        channels: int,
        output: int | AbstractGeometry,
        *,
        log_depth: int = 2,
        hidden: int = 32,
        window: int = 16,
        width: int = 32,
        depth: int = 2,
        initial_width: int | None = None,
        initial_depth: int = 2,
        activation: Callable = jax.nn.softplus,
        final_activation: Callable = jnp.tanh,
        solver: AbstractSolver | None = None,
        substeps: int = 1,
        basepoint: bool = False,
        interpolation: Literal["taylor", "log-ode", "linear"] | None = None,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:** as [`arborax.models.BNRDE`][], and

        - `channels`: of the driver, time included.
        - `log_depth`: depth of the log-signature, 1 or 2.
        """
        as_count("channels", channels)
        as_count("log_depth", log_depth)
        check_options(
            key,
            dtype,
            (activation, final_activation),
            hidden=hidden,
            window=window,
            width=width,
            depth=depth,
            initial_width=initial_width,
            initial_depth=initial_depth,
            substeps=substeps,
        )
        if log_depth not in (1, 2):
            raise ValueError(
                f"LogNCDE goes to depth 2, got {log_depth}. Use `BNRDE` with "
                f"`Shuffle({channels}, {log_depth})`."
            )
        self.alg = Shuffle(channels, log_depth)
        self.geometry = Euclidean(hidden)
        self.output = as_output(output)
        self.interpolation = check_window_options(
            self.alg, self.geometry, window, interpolation
        )
        self.solver = Heun() if solver is None else solver
        check_solver(self.solver, self.geometry, "stratonovich")
        self.window, self.substeps, self.basepoint = window, int(substeps), basepoint
        first, second, third = jr.split(key, 3)
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

    @property
    def channels(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Channels of the driver, time included."""
        return self.alg.dim

    @property
    def calculus(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Always `"stratonovich"`."""
        return "stratonovich"

    @property
    def brackets(self) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """A Stratonovich model has no use for brackets."""
        return None

    def initial_state(self, x: Float[Array, " channels"]) -> Float[Array, " hidden"]:
        return self.initial(x)

    def expansion(self, y, steps, brackets):
        return second_order_expansion(
            self.vector_field, self.geometry, y, steps, brackets
        )

    def advance(
        self, y: Float[Array, " hidden"], lam: Float[Array, " primitives"]
    ) -> Float[Array, " hidden"]:
        d = self.channels
        words = [word for word in self.alg.primitive_basis if len(word) == 2]
        first = jnp.asarray([word[0] for word in words], int)
        second = jnp.asarray([word[1] for word in words], int)

        def f(s, z):
            if not words:
                return lam @ self.vector_field(z)
            v, derivative = jax.linearize(self.vector_field, z)
            moved = jax.vmap(derivative)(v)  # moved[i, j] = D V_j [V_i]
            lie = moved[first, second] - moved[second, first]
            return lam[:d] @ v + lam[d:] @ lie

        return run_steps(self.solver, f, self.geometry, y, self.substeps, lam.dtype)

    def finish(self, raw):
        return self.output.project_vector(raw)

"""Neural rough differential equations."""

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from ..algebra import Shuffle
from ..geometry import AbstractGeometry, Euclidean
from ..solvers import AbstractSolver, check_solver, Heun, run_steps
from ._checks import as_output, check_options
from ._mlp import MLP, VectorField
from ._window_model import AbstractWindowModel, check_window_options
from ._windows import prefix_log_signatures


class NRDE(AbstractWindowModel):
    r"""The neural rough differential equation: one learned column for each coordinate
    of the log-signature, $dh = f_\theta(h)\, \lambda$, in place of brackets of fields.

    Softplus inside, tanh on the output (as printed in the paper; its code has the
    identity), no basepoint. Interpolation `"taylor"` is of first order here,
    $h_k + f_\theta(h_k) \lambda_{k,t}$.

    ??? cite "Reference"

        J. Morrill, C. Salvi, P. Kidger, J. Foster, T. Lyons, Neural rough differential
        equations for long time series, ICML 2021.
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
        """**Arguments:** as [`arborax.models.LogNCDE`][]; any `log_depth`."""
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
        self.alg = Shuffle(channels, log_depth)
        self.geometry = Euclidean(hidden)
        self.output = as_output(output)
        if interpolation is None:
            interpolation = "taylor"
        if interpolation != "taylor":
            check_window_options(self.alg, self.geometry, window, interpolation)
        self.interpolation = interpolation
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
            self.alg.primitive_size * hidden,
            width,
            depth,
            activation=activation,
            final_activation=final_activation,
            dtype=dtype,
            key=second,
        )
        self.vector_field = VectorField(mlp, self.alg.primitive_size, hidden)
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
        lams = prefix_log_signatures(self.alg, steps, brackets)
        return lams, self.vector_field(y)

    def advance(
        self, y: Float[Array, " hidden"], lam: Float[Array, " primitives"]
    ) -> Float[Array, " hidden"]:
        def f(s, z):
            return lam @ self.vector_field(z)

        return run_steps(self.solver, f, self.geometry, y, self.substeps, lam.dtype)

    def finish(self, raw):
        return self.output.project_vector(raw)

"""Branched neural rough differential equations."""

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from ..algebra import AbstractHopfAlgebra
from ..geometry import AbstractGeometry
from ..lifts import lift
from ..solvers import AbstractSolver, CFEES25, check_solver, Heun, run_steps
from ._checks import as_output, check_algebra, check_options
from ._mlp import lipswish, MLP, VectorField
from ._window_model import (
    AbstractWindowModel,
    check_window_options,
    resolve_calculus,
    second_order_expansion,
)


class BNRDE(AbstractWindowModel):
    r"""The branched neural rough differential equation
    $dY = \sum_i V^\theta_i(Y)\, dX^i$, any algebra on any geometry.

    The driver is summed up by its log-signature over windows of `window` samples; in
    each the state follows the window field ([`arborax.lift`][]) of neural fields
    $V^\theta$, a perceptron whose output is reshaped to `(channels, dim)`.

    * Without `geometry` the state is a vector of size `hidden` that is read out
      linearly, and projected to the manifold of the outputs if `output` is one (6D
      Gram-Schmidt for `SO(3)`, a floor under the eigenvalues for `SPD`).
    * With a `geometry` the state lives there and is the output. The initial state
      comes from a perceptron through the head of the geometry.

    Outputs are at all samples. Between knots they use the log-signature of the part of
    the window before the sample, so that they are as rough as the driver and depend on
    nothing later: `interpolation="taylor"` (default at depth 2) by the expansion of
    second order at the knot, which costs one derivative of the fields a window;
    `"log-ode"` by solving anew up to each sample, which costs a solver step a sample.
    `"geodesic"` and `"linear"` join the states at the knots: cheap, smooth, not causal,
    and wrong in quadratic variation; `"linear"` is what the paper's code does.

    With `basepoint` a zero sample is prepended, so that the level at which the path
    starts is seen as its first step, and the initial state is a learned constant;
    without, the initial state is a function of the first sample.

    ??? cite "Reference"

        Learning manifold and Itô dynamics with branched neural rough differential
        equations, arXiv:2606.05272 (2026).
    """

    alg: AbstractHopfAlgebra = eqx.field(static=True)
    geometry: AbstractGeometry = eqx.field(static=True)
    output: AbstractGeometry = eqx.field(static=True)
    solver: AbstractSolver
    initial: MLP
    vector_field: VectorField
    readout: eqx.nn.Linear | None
    calculus: str = eqx.field(static=True)
    window: int = eqx.field(static=True)
    substeps: int = eqx.field(static=True)
    basepoint: bool = eqx.field(static=True)
    interpolation: str = eqx.field(static=True)
    brackets: str | None = eqx.field(static=True)

    def __init__(
        self,
        alg: AbstractHopfAlgebra,
        output: int | AbstractGeometry | None = None,
        *,
        geometry: AbstractGeometry | None = None,
        hidden: int = 32,
        window: int = 16,
        width: int = 32,
        depth: int = 2,
        initial_width: int | None = None,
        initial_depth: int = 2,
        activation: Callable = lipswish,
        final_activation: Callable = jnp.tanh,
        solver: AbstractSolver | None = None,
        substeps: int = 1,
        basepoint: bool = True,
        interpolation: Literal["taylor", "log-ode", "geodesic", "linear"] | None = None,
        calculus: Literal["ito", "stratonovich"] | None = None,
        brackets: Literal["realised"] | None = None,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `alg`: the algebra, of as many channels as the driver has, time included.
        - `output`: number of outputs, or their manifold. Only without `geometry`.
        - `geometry`: the manifold of the state, which then is the output.
        - `hidden`: size of the state without `geometry`.
        - `window`: samples for each step of the solver.
        - `width`, `depth`: of the perceptron of the fields.
        - `initial_width`, `initial_depth`: of that of the initial state; width as
            `width` by default.
        - `activation`, `final_activation`: of the fields; the first also of the initial
            state, whose output is linear.
        - `solver`: by default `Heun` for vectors, `CFEES25` on a manifold.
        - `substeps`: solver steps a window.
        - `basepoint`, `interpolation`: see above.
        - `calculus`: fixed by `Shuffle` and `Ito`. The tree algebras default to Itô.
        - `brackets`: `"realised"`: where the path of an Itô model brings no brackets,
            use products of observed increments
            ([`arborax.SampledPath.realised_brackets`][]): time added by
            [`arborax.add_time`][] has none. `None`: refuse such a path.
        - `dtype`: of the weights.
        - `key`: a JAX random key.
        """
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
        check_algebra(alg)
        if (geometry is None) == (output is None):
            raise ValueError(
                "give either `output` (a vector state with a readout) or `geometry` "
                "(the state is the output)."
            )
        vectors = geometry is None
        self.geometry = as_output(hidden if geometry is None else geometry, "geometry")
        self.output = self.geometry if output is None else as_output(output)
        self.alg = alg
        self.calculus = resolve_calculus(alg, calculus)
        if brackets not in (None, "realised"):
            raise ValueError(f"`brackets` is None or 'realised', got {brackets!r}.")
        self.brackets = brackets
        self.interpolation = check_window_options(
            alg, self.geometry, window, interpolation
        )
        if solver is None:
            solver = Heun() if vectors else CFEES25()
        check_solver(solver, self.geometry, self.calculus)
        self.solver = solver
        self.window, self.substeps, self.basepoint = window, int(substeps), basepoint
        first, second, third = jr.split(key, 3)
        self.initial = MLP(
            alg.dim,
            self.geometry.vector_size,
            initial_width or width,
            initial_depth,
            activation=activation,
            dtype=dtype,
            key=first,
        )
        flat = _point_size(self.geometry.point_shape)
        mlp = MLP(
            flat,
            alg.dim * self.geometry.dim,
            width,
            depth,
            activation=activation,
            final_activation=final_activation,
            dtype=dtype,
            key=second,
        )
        self.vector_field = VectorField(mlp, alg.dim, self.geometry.dim)
        self.readout = None
        if vectors:
            size = self.output.vector_size
            self.readout = eqx.nn.Linear(hidden, size, dtype=dtype, key=third)
        lift(self.vector_field, alg, self.geometry)  # refuses what does not fit

    @property
    def channels(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Channels of the driver, time included."""
        return self.alg.dim

    def initial_state(self, x: Float[Array, " channels"]) -> PyTree[Array]:
        return self.geometry.point_from_vector(self.initial(x))

    def expansion(self, y, steps, brackets):
        return second_order_expansion(
            self.vector_field, self.geometry, y, steps, brackets
        )

    def advance(
        self, y: PyTree[Array], lam: Float[Array, " primitives"]
    ) -> PyTree[Array]:
        field = lift(self.vector_field, self.alg, self.geometry)
        coefficients = field.coefficients(lam)

        def f(s, z):
            return field.evaluate(None, z, coefficients)

        return run_steps(self.solver, f, self.geometry, y, self.substeps, lam.dtype)

    def finish(self, raw: PyTree[Array]) -> PyTree[Array]:
        return raw if self.readout is None else self.output.project_vector(raw)


def _point_size(shape) -> int:
    """Numbers in a point; shapes of products are nested."""
    if all(isinstance(n, int) for n in shape):
        size = 1
        for n in shape:
            size *= n
        return size
    return sum(_point_size(part) for part in shape)

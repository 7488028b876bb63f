"""Models that solve one differential equation over the windows of a control."""

import abc
from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int, PRNGKeyArray, PyTree

from .._inputs import as_choice, as_count, as_number
from .._xla import vary_as
from ..algebra import AbstractHopfAlgebra
from ..geometry import AbstractGeometry
from ..lifts import check_lift, lift, WindowField
from ..paths import SampledPath
from ..signatures import rough_path, RoughPath
from ..solvers import (
    AbstractSolver,
    as_solver,
    CFEES25,
    Heun,
    scan_windows,
    state_inside,
    step_window,
)
from ._checks import as_output, as_sample, finite
from ._control_model import AbstractControlModel, check_algebra, resolve_calculus
from ._mlp import lipswish, make_equation


class StreamState(eqx.Module):
    """A window model between two samples: state and time at the last knot, the last
    sample, and the steps since the knot."""

    y: PyTree[Array]
    t: Float[Array, ""]
    x: Float[Array, " channels"]
    steps: Float[Array, "window channels"]
    brackets: Float[Array, "window channels channels"] | None
    count: Int[Array, ""]
    finite_variation: tuple[int, ...] = eqx.field(static=True)


class AbstractWindowModel(AbstractControlModel):
    """Initial state, one solve per window, outputs at all samples.

    A subclass says in which algebra the fields are lifted (`lift_algebra`).
    """

    geometry: AbstractGeometry = eqx.field(static=True)
    output: AbstractGeometry = eqx.field(static=True)
    solver: AbstractSolver
    initial: Callable
    vector_field: Callable
    readout: eqx.nn.Linear | None
    substeps: int = eqx.field(static=True)
    interpolation: str = eqx.field(static=True)

    def __init__(
        self,
        alg: AbstractHopfAlgebra,
        output: int | AbstractGeometry | None = None,
        *,
        geometry: AbstractGeometry | None = None,
        vector_field: Callable | None = None,
        initial: Callable | None = None,
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
        key: PRNGKeyArray | None = None,
    ):
        """**Arguments:**

        - `alg`: the algebra, with one channel per channel of the driver, time included.
        - `output`: number of outputs, or their manifold. Only without `geometry`.
        - `geometry`: the manifold of the state, which is then the output.
        - `vector_field`: the fields: any Equinox module or function of `state` or
            `(t, state)` that returns frame coordinates `(channels, geometry.dim)`. By
            default an MLP, [`arborax.models.VectorField`][].
        - `initial`: the initial state: any module or function that maps the first value
            of the control to `geometry.vector_size` numbers, from which
            `geometry.point_from_vector` makes a point. By default an MLP.
        - `hidden`: size of the state without `geometry`.
        - `window`: samples per window.
        - `width`, `depth`: of the MLP of the fields.
        - `initial_width`, `initial_depth`: of the MLP of the initial state; the width
            is `width` by default.
        - `activation`: inside the MLPs of the fields and of the initial state.
        - `final_activation`: after the last layer of the fields. The initial state has
            none.
        - `solver`: by default `Heun` for vectors, `CFEES25` on a manifold.
        - `substeps`: solver steps per window.
        - `basepoint`: whether to prepend a zero sample.
        - `interpolation`: how to find outputs between knots.
        - `calculus`: fixed by `Shuffle` and `Ito`. The tree algebras default to Itô.
        - `brackets`: for Itô models, what to do with a path without brackets.
            `"realised"`: use products of observed increments
            ([`arborax.SampledPath.realised_brackets`][]), zero for time added by
            [`arborax.add_time`][]. `None`: raise an error.
        - `dtype`: of the weights.
        - `key`: a JAX random key. Needed unless every part is given.
        """
        check_algebra(alg)
        if (geometry is None) == (output is None):
            raise ValueError(
                "give either `output` (a vector state with a readout) or `geometry` "
                "(the state is the output)."
            )
        self.brackets = as_choice("brackets", brackets, (None, "realised"))
        self.alg, self.channels = alg, alg.dim
        self.geometry = as_output(hidden if geometry is None else geometry, "geometry")
        self.output = self.geometry if output is None else as_output(output)
        self.calculus = resolve_calculus(alg, calculus)
        self.window = as_count("window", window)
        self.substeps = as_count("substeps", substeps)
        self.basepoint = basepoint
        rows = self.lift_algebra
        self.interpolation = _resolve_interpolation(rows, self.geometry, interpolation)
        if solver is None:
            solver = Heun() if geometry is None else CFEES25()
        self.solver = as_solver(solver, self.geometry, self.calculus)
        self.initial, self.vector_field, self.readout = make_equation(
            alg.dim,
            rows.dim,
            self.geometry,
            self.output if geometry is None else None,
            vector_field=vector_field,
            initial=initial,
            width=width,
            depth=depth,
            initial_width=initial_width,
            initial_depth=initial_depth,
            activation=activation,
            final_activation=final_activation,
            dtype=dtype,
            key=key,
        )
        check = lambda x: check_lift(  # noqa: E731
            self.window_field, self.initial_state(x), x[0]
        )
        jax.eval_shape(check, jnp.zeros(alg.dim, dtype))

    @property
    @abc.abstractmethod
    def lift_algebra(self) -> AbstractHopfAlgebra:
        """The algebra of the lift: one field per channel, and the log-signatures of
        the control as its primitive coordinates."""

    @property
    def window_field(self) -> WindowField:
        """The fields, lifted."""
        return lift(self.vector_field, self.lift_algebra, self.geometry)

    def initial_state(self, x: Float[Array, " channels"]) -> PyTree[Array]:
        """The state at the start of a control, from its first value."""
        vector, size = self.initial(x), self.geometry.vector_size
        if vector.shape != (size,):
            raise ValueError(
                f"`initial` must return {size} numbers, from which {self.geometry} "
                f"makes a point; got shape {vector.shape}."
            )
        return self.geometry.point_from_vector(vector)

    def __call__(self, path: SampledPath | RoughPath) -> PyTree[Array]:
        """Outputs of one path or control.

        **Arguments:**

        - `path`: a [`arborax.SampledPath`][], or a control, from `prepare` or from
            [`arborax.rough_path`][]. Outputs are at the samples. Only a control that
            was cut by time (`knots=`) does not know which of its points are samples:
            outputs are then at its knots. The initial state is a function of the first
            value of a control, which is the basepoint if it has one; there is no
            output at a basepoint.
        """
        control = self._control(path)
        if control.num_steps is None:
            return self.at_knots(control)
        return self._solve(control, self._inside, control.num_steps + 1)

    def at_knots(self, path: SampledPath | RoughPath) -> PyTree[Array]:
        """Outputs at the knots of a control, without interpolation. Knots are every
        `window`-th point, a basepoint included, and the last one."""
        control = self._control(path)
        last = lambda y, z, window: _add_axis(self._read(z))  # noqa: E731
        return self._solve(control, last, None)

    def _solve(
        self, control: RoughPath, read: Callable, points: int | None
    ) -> PyTree[Array]:
        """Outputs from the readings of each window; `points` of them, or all."""
        y0 = self.initial_state(control.values[0, 0])
        rest = scan_windows(
            self.window_field, self.solver, self.substeps, y0, control, read
        )
        skip = 1 if control.basepoint and points is not None else 0

        def join(first, rest):
            return jnp.concatenate([first[None], rest.reshape(-1, *rest.shape[2:])])

        raw = jax.tree.map(join, self._read(y0), rest)
        raw = jax.tree.map(lambda leaf: leaf[skip:points], raw)
        return finite(jax.vmap(self._project)(raw))

    def _read(self, y: PyTree[Array]) -> PyTree[Array]:
        return y if self.readout is None else self.readout(y)

    def _project(self, raw: PyTree[Array]) -> PyTree[Array]:
        return raw if self.readout is None else self.output.project_vector(raw)

    def _inside(self, y, z, window: RoughPath) -> PyTree[Array]:
        """Read-out states at the samples of one window after its start, from the states
        at its ends."""
        last = _add_axis(self._read(z))
        times = window.times[0, 1:-1]
        if not times.shape[0]:
            return last
        field = self.window_field
        if self.interpolation == "taylor":
            sums, terms = expansion(field, y, window)
            inner = self._taylor(y, sums[:-1], terms)
        else:
            scheme = field, self.solver, self.substeps, window

            def at(t):
                z_t = state_inside(*scheme, 0, y, z, t, self.interpolation)
                return self._read(z_t)

            inner = jax.vmap(at)(times)
        return jax.tree.map(lambda a, b: jnp.concatenate([a, b]), inner, last)

    def _taylor(self, y, sums, terms) -> PyTree[Array]:
        """Read-out states from the result of `expansion`."""
        if self.readout is not None:
            return self.readout(y)[None] + sums @ (terms @ self.readout.weight.T)
        return jax.vmap(lambda u: self.geometry.exp(y, u))(sums @ terms)

    def start(
        self,
        t: ArrayLike,
        x: Float[Array, " channels"],
        *,
        finite_variation: tuple[int, ...] = (),
    ) -> tuple[StreamState, PyTree[Array]]:
        """The state after the first sample, and the output there.

        **Arguments:**

        - `finite_variation`: channels without a bracket, such as time, if brackets are
            realised; as in [`arborax.SampledPath`][]. Missing values are carried
            forward by the caller.
        """
        if self.interpolation in ("geodesic", "linear"):
            raise ValueError(
                f"interpolation={self.interpolation!r} waits for the end of a window; "
                "for streams use 'taylor' or 'log-ode'."
            )
        if self.basepoint and self.window_field.time_dependent:
            raise ValueError(
                "the time of a basepoint is not known when a stream starts, but the "
                "fields depend on time; build the model with `basepoint=False`."
            )
        x = as_sample("x", x, (self.channels,), self)
        d, t = self.channels, jnp.asarray(as_number("t", t))
        base = jnp.zeros_like(x) if self.basepoint else x
        brackets = jnp.zeros((self.window, d, d), x.dtype)
        state = StreamState(
            y=self.initial_state(base),
            t=t if jnp.issubdtype(t.dtype, jnp.floating) else t.astype(float),
            x=base,
            steps=jnp.zeros((self.window, d), x.dtype),
            brackets=brackets if self.calculus == "ito" else None,
            count=jnp.zeros((), jnp.int32),
            finite_variation=tuple(finite_variation),
        )
        state = vary_as(state, x)  # in a loop it will vary as samples do
        if self.basepoint:
            return self._push(state, state.t, x, jnp.zeros((d, d), x.dtype))
        return state, self._project(self._read(state.y))

    def update(self, state: StreamState, t: ArrayLike, x: Array, bracket: Any = None):
        x = as_sample("x", x, (self.channels,), self)
        bracket = self._step_bracket(state.x, x, bracket, state.finite_variation)
        t = jnp.asarray(as_number("t", t), state.t.dtype)
        return self._push(state, t, x, bracket)

    def _push(self, state: StreamState, t, x, bracket):
        place = state.count
        steps = state.steps.at[place].set(x - state.x)
        brackets = state.brackets
        if brackets is not None:
            brackets = brackets.at[place].set(bracket)
        # The steps so far as a control of one window; the steps to come are zero.
        ts = state.t + jnp.arange(self.window + 1, dtype=state.t.dtype)
        values = jnp.pad(jnp.cumsum(steps, axis=0), [(1, 0), (0, 0)])
        path = SampledPath(ts, values, brackets=brackets, check=False)
        window = rough_path(None, path, self.alg, window=self.window)
        field, lam = self.window_field, window.log_signatures[0]
        z = step_window(field, self.solver, self.substeps, state.y, lam, state.t, t)
        full = place + 1 == self.window
        raw = self._read(z)
        if self.interpolation == "taylor":
            sums, terms = expansion(field, state.y, window)
            inner = self._taylor(state.y, sums[-1:], terms)
            raw = jax.tree.map(lambda a, b: jnp.where(full, a, b[0]), raw, inner)
        # A full window ends: its last state is the next knot, and no steps are left.
        since = steps, brackets, place + 1
        ended = z, t, jax.tree.map(jnp.zeros_like, since)
        y, knot, (steps, brackets, count) = jax.tree.map(
            lambda a, b: jnp.where(full, a, b), ended, (state.y, state.t, since)
        )
        marks = state.finite_variation
        new = StreamState(y, knot, x, steps, brackets, count, marks)
        return new, self._project(raw)


def _add_axis(tree: PyTree[Array]) -> PyTree[Array]:
    return jax.tree.map(lambda leaf: leaf[None], tree)


def expansion(
    field: WindowField, y: PyTree[Array], window: RoughPath
) -> tuple[Float[Array, "samples terms"], Float[Array, "terms dim"]]:
    r"""Sums of the driver from the start of a window to each of its samples, and the
    fields at the start that belong to them: interpolation `"taylor"`.

    For a lift of depth 1 these are the log-signatures and the fields. Otherwise they
    are $X^i, \int X^i dX^j$ and $V_i, W_{ij}$: in the geodesic coordinates of the
    connection at `y` the solution over a short stretch is $\sum_i X^i V_i + \sum_{ij}
    \int X^i dX^j\, W_{ij}$ up to third order, with $W_{ij} = \frac12 [V_i, V_j] +
    \frac12 (\nabla_{V_i} V_j + \nabla_{V_j} V_i)$. With the Stratonovich integral this
    is the Stratonovich solution; with half the bracket taken off, it is the Itô
    solution with respect to the connection. Cost: one derivative of the fields per
    channel.
    """
    t0, geometry = window.knots[0], field.geometry
    fields = lambda z: field.fields(t0, z)  # noqa: E731
    if field.alg.depth == 1:
        up_to = lambda t: window.log_signature(t0, t, window=0)  # noqa: E731
        return jax.vmap(up_to)(window.times[0, 1:]), fields(y)
    v, derivative = jax.linearize(fields, y)
    w = jax.vmap(lambda u: derivative(geometry.frame(y, u)))(v)

    def extra(a, b):
        both = geometry.christoffel(y, a, b) + geometry.christoffel(y, b, a)
        return (geometry.bracket(y, a, b) + both) / 2

    if not geometry.flat:
        w = w + jax.vmap(jax.vmap(extra, (None, 0)), (0, None))(v, v)
    d = v.shape[0]
    steps = jnp.diff(window.values[0], axis=0)
    first = jnp.cumsum(steps, axis=0)
    second = (first - steps / 2)[:, :, None] * steps[:, None, :]
    if window.left_point:
        second = second - steps[:, :, None] * steps[:, None, :] / 2
    elif window.brackets is not None:
        second = second - window.brackets[0] / 2
    second = jnp.cumsum(second, axis=0)
    sums = jnp.concatenate([first, second.reshape(-1, d * d)], axis=1)
    return sums, jnp.concatenate([v, w.reshape(d * d, -1)])


def _resolve_interpolation(
    alg: AbstractHopfAlgebra, geometry: AbstractGeometry, interpolation: str | None
) -> str:
    """The interpolation, or its default for fields lifted in `alg`."""
    if interpolation is None:
        return "taylor" if alg.depth == 2 else "log-ode"
    kinds = ("taylor", "log-ode", "geodesic", "linear")
    as_choice("interpolation", interpolation, kinds)
    if interpolation == "taylor" and alg.depth > 2:
        raise ValueError(
            "interpolation='taylor' is of second order at most; for depth "
            f"{alg.depth} use 'log-ode'."
        )
    if interpolation == "linear" and not geometry.flat:
        raise ValueError(
            f"linear interpolation leaves {geometry}. Use 'taylor', 'log-ode' or "
            "'geodesic'."
        )
    return interpolation

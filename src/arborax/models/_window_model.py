"""Models that take one solver step for each window of a path."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int, PyTree

from ..algebra import AbstractHopfAlgebra, Ito, Shuffle
from ..geometry import AbstractGeometry
from ..paths import add_basepoint, SampledPath
from ..signatures import log_signature, RoughPath
from ._base import AbstractCausalModel
from ._checks import as_sample, check_path, finite, promoted
from ._windows import (
    cut,
    prefix_log_signatures,
    scan_windows,
    second_order_sums,
    Windows,
)


INTERPOLATIONS = ("taylor", "log-ode", "geodesic", "linear")


class StreamState(eqx.Module):
    """A window model between two samples: the state at the last knot, the last sample,
    and the steps since the knot."""

    y: PyTree[Array]
    x: Float[Array, " channels"]
    steps: Float[Array, "window channels"]
    brackets: Float[Array, "window channels channels"] | None
    count: Int[Array, ""]
    finite_variation: tuple[int, ...] = eqx.field(static=True)


class AbstractWindowModel(AbstractCausalModel):
    """Initial state, one step for each log-signature, outputs between knots.

    A subclass says what a step is (`advance`); this class cuts paths, runs the windows
    and finds the outputs at all samples.
    """

    alg: eqx.AbstractVar[AbstractHopfAlgebra]
    geometry: eqx.AbstractVar[AbstractGeometry]
    readout: eqx.AbstractVar[eqx.nn.Linear | None]
    window: eqx.AbstractVar[int]
    basepoint: eqx.AbstractVar[bool]
    interpolation: eqx.AbstractVar[str]
    brackets: eqx.AbstractVar[str | None]

    @abc.abstractmethod
    def initial_state(self, x: Float[Array, " channels"]) -> PyTree[Array]:
        """The state at the start of the path, from its first value."""

    @abc.abstractmethod
    def advance(
        self, y: PyTree[Array], lam: Float[Array, " primitives"]
    ) -> PyTree[Array]:
        """The state after a stretch of path with the log-signature `lam`."""

    @abc.abstractmethod
    def expansion(
        self,
        y: PyTree[Array],
        steps: Float[Array, "samples channels"],
        brackets: Float[Array, "samples channels channels"] | None,
    ) -> tuple[Float[Array, "samples terms"], Float[Array, "terms dim"]]:
        """The solution over the samples of a window as a linear combination of frame
        coordinates at its start: sums of the driver, and fields. Interpolation
        `"taylor"` uses it."""

    @abc.abstractmethod
    def finish(self, raw: PyTree[Array]) -> PyTree[Array]:
        """The output of a state once read out: the projection to the manifold of the
        data."""

    def prepare(self, path: SampledPath) -> Windows:
        """The windows of a path, to be computed once where the driver is data.

        `model(model.prepare(path))` is `model(path)`.
        """
        path = promoted(check_path(path, self.channels), self)
        path = self._check_calculus(path)
        if self.basepoint:
            path = add_basepoint(path)
        brackets = path.brackets
        if self.calculus == "ito" and brackets is None:
            brackets = path.realised_brackets()
        return cut(path, self.alg, self.window, brackets)

    def _check_calculus(self, path: SampledPath) -> SampledPath:
        if self.calculus == "stratonovich" and path.brackets is not None:
            raise ValueError(
                f"the path carries brackets, so its calculus is Itô's, but the model "
                f"({self.alg}) is a Stratonovich model. Build it with `Ito`, "
                "`GrossmanLarson` or `MuntheKaasWright`, or leave the brackets out."
            )
        if self.calculus == "ito" and path.brackets is None and self.brackets is None:
            raise ValueError(
                f"the model ({self.alg}) is an Itô model and needs brackets, but the "
                "path has none. Supply them in the `SampledPath`, build the model with "
                "`brackets='realised'`, or use a Stratonovich model (`Shuffle`)."
            )
        return path

    def knots(self, control: RoughPath | Windows) -> PyTree[Array]:
        """States at the knots, the first one included."""
        if control.alg != self.alg:
            raise ValueError(
                f"the control is in {control.alg}, the model was built for {self.alg}."
            )
        if control.calculus != self.calculus:
            raise ValueError(
                f"the calculus of the control is {control.calculus!r}, that of the "
                f"model ({self.alg}) is {self.calculus!r}. Build the control with "
                "brackets for an Itô model, without for a Stratonovich model, or "
                "choose the algebra that fits."
            )
        first = (
            control.values[0, 0] if isinstance(control, RoughPath) else control.first
        )
        y0, lams = self.initial_state(first), control.log_signatures
        wide = jnp.result_type(lams.dtype, *[y.dtype for y in jax.tree.leaves(y0)])
        return scan_windows(self.advance, y0, lams.astype(wide))

    def __call__(self, path: SampledPath | RoughPath | Windows) -> PyTree[Array]:
        """Outputs of one path.

        **Arguments:**

        - `path`: a [`arborax.SampledPath`][], or what `prepare` made of it: outputs are
            at all samples. Or a control from [`arborax.rough_path`][]: outputs are at
            its knots, and the basepoint is left to whoever made it.
        """
        if isinstance(path, RoughPath):
            return jax.vmap(lambda y: self.finish(self._read(y)))(self.knots(path))
        windows = path if isinstance(path, Windows) else self.prepare(path)
        states = self.knots(windows)
        begin = jax.tree.map(lambda leaf: leaf[:-1], states)
        end = jax.tree.map(lambda leaf: leaf[1:], states)
        start = jax.tree.map(lambda leaf: leaf[None], self._read(_at(states, 0)))

        # A loop over windows, not a vmap: with a batch outside, the intermediate values
        # of one window stay in the cache, and gradients take two thirds of the time.
        @jax.checkpoint
        def between(window):
            return self._between(*window)

        raw = jax.lax.map(between, (begin, end, windows.steps, windows.brackets))
        raw = jax.tree.map(
            lambda s, r: jnp.concatenate([s, r.reshape(-1, *r.shape[2:])]), start, raw
        )
        first = 1 if self.basepoint else 0
        raw = jax.tree.map(lambda leaf: leaf[first : windows.num_steps + 1], raw)
        return finite(jax.vmap(self.finish)(raw))

    def _read(self, y: PyTree[Array]) -> PyTree[Array]:
        return y if self.readout is None else self.readout(y)

    def _between(self, y, z, steps, brackets) -> PyTree[Array]:
        """Read-out states at the samples of one window, from those at its ends."""
        size = self.window
        last = jax.tree.map(lambda leaf: leaf[None], self._read(z))
        if size == 1:
            return last
        if self.interpolation == "taylor":
            inner = self._taylor(y, *self.expansion(y, steps[:-1], _head(brackets)))
        elif self.interpolation == "log-ode":
            lams = prefix_log_signatures(self.alg, steps, brackets)[:-1]
            inner = jax.vmap(lambda lam: self._read(self.advance(y, lam)))(lams)
        else:
            theta = jnp.arange(1, size, dtype=steps.dtype) / size
            inner = jax.vmap(lambda a: self._read(self._mix(y, z, a)))(theta)
        return jax.tree.map(lambda a, b: jnp.concatenate([a, b]), inner, last)

    def _mix(self, y, z, theta):
        if self.interpolation == "geodesic":
            return self.geometry.exp(y, theta * self.geometry.log(y, z))
        return jax.tree.map(lambda a, b: a + theta * (b - a), y, z)

    def _taylor(self, y, sums, fields) -> PyTree[Array]:
        """Read-out states from the result of `expansion`."""
        if self.readout is not None:
            moves = sums @ (fields @ self.readout.weight.T)
            return self.readout(y)[None] + moves
        return jax.vmap(lambda u: self.geometry.exp(y, u))(sums @ fields)

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
            realised; as in [`arborax.SampledPath`][]. A missing value is carried
            forward by whoever feeds the stream.
        """
        self._check_causal()
        x = as_sample("x", x, (self.channels,), self)
        d, size = self.channels, self.window
        brackets = None
        if self.calculus == "ito":
            brackets = jnp.zeros((size, d, d), x.dtype)
        base = jnp.zeros_like(x) if self.basepoint else x
        y = self.initial_state(base)
        count = jnp.zeros((), jnp.int32)
        steps, marks = jnp.zeros((size, d), x.dtype), tuple(finite_variation)
        state = StreamState(y, base, steps, brackets, count, marks)
        if self.basepoint:
            return self._push(state, x, jnp.zeros((d, d), x.dtype))
        return state, self.finish(self._read(y))

    def update(
        self,
        state: StreamState,
        t: ArrayLike,
        x: Float[Array, " channels"],
        bracket: Float[Array, "channels channels"] | None = None,
    ) -> tuple[StreamState, PyTree[Array]]:
        """The state after one more sample, and the output there."""
        x = as_sample("x", x, (self.channels,), self)
        if bracket is not None:
            shape = (self.channels, self.channels)
            bracket = as_sample("bracket", bracket, shape, self)
        if self.calculus == "ito" and bracket is None:
            if self.brackets is None:
                raise ValueError(
                    "an Itô model needs the `bracket` of the step, or is built with "
                    "`brackets='realised'`."
                )
            pair = SampledPath(
                jnp.arange(2, dtype=x.dtype),
                jnp.stack([state.x, x]),
                finite_variation=state.finite_variation,
                check=False,
            )
            bracket = pair.realised_brackets()[0]
        if self.calculus == "stratonovich" and bracket is not None:
            raise ValueError("a Stratonovich model takes no `bracket`.")
        return self._push(state, x, bracket)

    def _check_causal(self) -> None:
        if self.interpolation in ("geodesic", "linear"):
            raise ValueError(
                f"interpolation={self.interpolation!r} waits for the end of a window; "
                "for streams use 'taylor' or 'log-ode'."
            )

    def _push(self, state, x, bracket):
        place = state.count
        steps = state.steps.at[place].set(x - state.x)
        brackets = state.brackets
        if brackets is not None:
            brackets = brackets.at[place].set(bracket)
        ts = jnp.arange(self.window + 1, dtype=x.dtype)
        values = jnp.pad(jnp.cumsum(steps, axis=0), [(1, 0), (0, 0)])
        path = SampledPath(ts, values, brackets=brackets, check=False)
        z = self.advance(state.y, log_signature(path, self.alg))
        full = place + 1 == self.window
        raw = self._read(z)
        if self.interpolation == "taylor":
            sums, fields = self.expansion(state.y, steps, brackets)
            inner = self._taylor(state.y, sums[-1:], fields)
            raw = jax.tree.map(lambda a, b: jnp.where(full, a, b[0]), raw, inner)
        keep = lambda a, b: jnp.where(full, a, b)  # noqa: E731
        y = jax.tree.map(keep, z, state.y)
        steps, brackets = jax.tree.map(
            lambda leaf: jnp.where(full, jnp.zeros_like(leaf), leaf), (steps, brackets)
        )
        count = jnp.where(full, 0, place + 1)
        marks = state.finite_variation
        return StreamState(y, x, steps, brackets, count, marks), self.finish(raw)


def _at(tree: PyTree[Array], k: int) -> PyTree[Array]:
    return jax.tree.map(lambda leaf: leaf[k], tree)


def _head(brackets: Array | None) -> Array | None:
    return None if brackets is None else brackets[:-1]


def second_order_expansion(
    fields, geometry: AbstractGeometry, y: PyTree[Array], steps, brackets
) -> tuple[Float[Array, "samples terms"], Float[Array, "terms dim"]]:
    r"""$X^i, \int X^i dX^j$ over a window, and $V_i, V_i V_j \varphi$ at its start.

    In the geodesic coordinates $\varphi$ of the connection at `y` the solution over a
    short stretch is $\sum_i X^i V_i + \sum_{ij} \int X^i dX^j\, W_{ij}$ up to third
    order, with $W_{ij} = \frac12 [V_i, V_j] + \frac12 (\nabla_{V_i} V_j + \nabla_{V_j}
    V_i)$. With half the bracket taken off the integral this is the Itô solution with
    respect to the connection. Cost: one derivative of the fields for each channel.
    """
    v, derivative = jax.linearize(fields, y)
    w = jax.vmap(lambda u: derivative(geometry.frame(y, u)))(v)

    def extra(a, b):
        both = geometry.christoffel(y, a, b) + geometry.christoffel(y, b, a)
        return (geometry.bracket(y, a, b) + both) / 2

    if not geometry.flat:
        w = w + jax.vmap(jax.vmap(extra, (None, 0)), (0, None))(v, v)
    d = v.shape[0]
    first, second = second_order_sums(steps, brackets)
    sums = jnp.concatenate([first, second.reshape(-1, d * d)], axis=1)
    return sums, jnp.concatenate([v, w.reshape(d * d, -1)])


def check_window_options(
    alg: AbstractHopfAlgebra,
    geometry: AbstractGeometry,
    window: Any,
    interpolation: str | None,
    allowed: tuple[str, ...] = INTERPOLATIONS,
) -> str:
    """Refuse options that cannot work; the interpolation, or its default."""
    if isinstance(window, bool) or not isinstance(window, int) or window < 1:
        raise ValueError(
            f"`window` must be a positive number of steps, got {window!r}."
        )
    if interpolation is None:
        interpolation = (
            "taylor" if alg.depth == 2 and "taylor" in allowed else "log-ode"
        )
    if interpolation not in allowed:
        raise ValueError(
            f"`interpolation` must be one of {allowed}, got {interpolation!r}."
        )
    if interpolation == "taylor" and alg.depth != 2:
        raise ValueError(
            "interpolation='taylor' is of second order and fits depth 2; for depth "
            f"{alg.depth} use 'log-ode'."
        )
    if interpolation == "linear" and not geometry.flat:
        raise ValueError(
            f"linear interpolation leaves {geometry}. Use 'taylor', 'log-ode' or "
            "'geodesic'."
        )
    return interpolation


def resolve_calculus(alg: AbstractHopfAlgebra, calculus: str | None) -> str:
    """The calculus of a model; only the tree algebras leave a choice."""
    fixed = {Shuffle: "stratonovich", Ito: "ito"}.get(type(alg))
    if calculus is None:
        return fixed or "ito"
    if calculus not in ("ito", "stratonovich"):
        raise ValueError(f"`calculus` is 'ito' or 'stratonovich', got {calculus!r}.")
    if fixed is not None and calculus != fixed:
        raise ValueError(
            f"{alg} is the algebra of {fixed} calculus, got calculus={calculus!r}. Use "
            "`Shuffle` for Stratonovich; `Ito`, `GrossmanLarson` or `MuntheKaasWright` "
            "for Itô."
        )
    return calculus

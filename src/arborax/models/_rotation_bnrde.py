"""Forecasts of rotations by a branched neural rough differential equation on SO(3)."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from ..algebra import Shuffle
from ..geometry import AbstractGeometry, Euclidean, Product, SO
from ..lifts import lift
from ..paths import SampledPath
from ..solvers import AbstractSolver, CFEES25, run_steps
from ._extrapolators import (
    AbstractExtrapolator,
    ConstantVelocity,
    Hold,
)
from ._mlp import MLP
from ._rotation_statistics import rotation_statistics, STATISTICS
from ._savitzky_golay import orthonormal, powers, RotationChart
from ._window_model import (
    AbstractWindowModel,
    check_window_options,
    second_order_expansion,
)


STATE = Product(SO(3), Euclidean(1))


class DriverBank(eqx.Module):
    """Several extrapolated paths at once: constant velocity and Savitzky-Golay
    polynomials of some orders, each with its memory.

    The same as the extrapolators one by one; fits share the code of one, which compiles
    and runs faster.
    """

    orders: tuple[int, ...] = eqx.field(static=True, default=(1, 1, 2, 2, 3))
    memories: tuple[float | None, ...] = eqx.field(
        static=True, default=(None, 0.25, None, 0.4, None)
    )

    @property
    def prior(self) -> tuple[float, ...]:
        """Logits of the gains to begin with: mostly the first polynomial."""
        return (0.0, 2.0, *[0.0] * (len(self.orders) - 1))

    def __call__(self, ts, rotations, times, mask=None) -> Float[Array, "paths _ 3 3"]:
        chart = RotationChart(ts, rotations, mask)
        dtype = rotations.dtype
        top = max(self.orders) + 1
        age = ((ts[-1] - ts) / (ts[-1] - ts[0])).astype(dtype)
        decay = jnp.asarray([0.0 if m is None else 1 / m for m in self.memories], dtype)
        keep = jnp.asarray([[k <= n for k in range(top)] for n in self.orders], dtype)
        here = ((times - chart.origin) / chart.span).astype(dtype)

        def fit(decay, keep):
            root = jnp.where(chart.mask, jnp.exp(-decay * age / 2), 0)[:, None]
            q, inverse = orthonormal(root * powers(chart.place, top))
            # Fits of lower order leave out the last orthogonal polynomials.
            parts = keep[:, None] * (q.T @ (root * chart.vectors))
            vectors = powers(here, top) @ (inverse @ parts)
            eye = jnp.eye(3, dtype=dtype)
            turns = jax.vmap(lambda u: SO(3).exp(eye, u))(vectors)
            return jnp.matmul(turns, chart.centre[None])

        smooth = jax.vmap(fit)(decay, keep)
        moving = ConstantVelocity()(ts, rotations, times, mask)
        return jnp.concatenate([moving[None], smooth])


class Drivers(eqx.Module):
    """Paths of any extrapolators, stacked."""

    extrapolators: tuple[AbstractExtrapolator, ...]

    @property
    def prior(self) -> tuple[float, ...]:
        """Logits of the gains to begin with: all equal, and above holding."""
        return (2.0,) * len(self.extrapolators)

    def __call__(self, ts, rotations, times, mask=None) -> Float[Array, "paths _ 3 3"]:
        return jnp.stack([e(ts, rotations, times, mask) for e in self.extrapolators])


def as_drivers(
    drivers: Sequence[AbstractExtrapolator] | DriverBank | None,
) -> DriverBank | Drivers:
    """The default bank, or the given extrapolators."""
    if drivers is None:
        return DriverBank()
    if isinstance(drivers, DriverBank):
        return drivers
    if len(drivers) == 0:
        raise ValueError("`drivers` needs one extrapolator or more.")
    return Drivers(tuple(drivers))


class Gains(eqx.Module):
    """Driving fields on `SO(3)` times a clock: the canonical frame, scaled.

    Channel 0 is time and moves the clock. Channels `3 p + 1 .. 3 p + 3` turn the state
    about its own axes, times a gain `p` that depends on the clock and on the context.
    Gains are positive and sum to one together with that of staying where one is.
    """

    mlp: MLP
    prior: Float[Array, " drivers"]
    context: Float[Array, " statistics"]

    def gains(self, clock: Float[Array, " 1"]) -> Float[Array, " drivers"]:
        entries = jnp.concatenate([self.context, 2 * clock - 1])
        return _shares(self.prior + self.mlp(entries))

    def __call__(self, y) -> Float[Array, "channels 4"]:
        _, clock = y
        gains = self.gains(clock)
        eye = jnp.eye(3, dtype=gains.dtype)
        turns = (gains[:, None, None] * eye[None]).reshape(-1, 3)
        turns = jnp.pad(turns, [(0, 0), (0, 1)])
        time = jnp.asarray([[0, 0, 0, 1]], gains.dtype)
        return jnp.concatenate([time, turns])


class _Flow(AbstractWindowModel):
    """The equation of one window of rotations, from a start that is known."""

    alg: Shuffle = eqx.field(static=True)
    solver: AbstractSolver
    fields: Gains
    start_point: Float[Array, "3 3"]
    window: int = eqx.field(static=True)
    substeps: int = eqx.field(static=True)
    interpolation: str = eqx.field(static=True)

    def __init__(self, owner: "RotationBNRDE", alg, context, start_point):
        self.alg = alg
        self.solver = owner.solver
        self.fields = Gains(owner.mlp, owner.prior, context)
        self.start_point = start_point
        self.window, self.substeps = owner.window, owner.substeps
        self.interpolation = owner.interpolation

    @property
    def geometry(self) -> AbstractGeometry:
        return STATE

    @property
    def readout(self) -> None:
        return None

    @property
    def brackets(self) -> None:
        return None

    @property
    def basepoint(self) -> bool:
        return False

    @property
    def calculus(self) -> str:
        return "stratonovich"

    @property
    def channels(self) -> int:
        return self.alg.dim

    def initial_state(self, x):
        return self.start_point, x[:1]

    def expansion(self, y, steps, brackets):
        return second_order_expansion(self.fields, STATE, y, steps, brackets)

    def advance(self, y, lam):
        field = lift(self.fields, self.alg, STATE)
        coefficients = field.coefficients(lam)

        def f(s, z):
            return field.evaluate(None, z, coefficients)

        return run_steps(self.solver, f, STATE, y, self.substeps, lam.dtype)

    def finish(self, raw):
        return raw[0]


class RotationBNRDE(AbstractExtrapolator):
    r"""A learned extrapolator: a rough differential equation on $SO(3)$, driven by
    extrapolated paths.

    With $B$ the observations held at the last one and $R^p$ the path of driver $p$, the
    correction $Z^p = B^\top R^p$ moves by increments $\log(Z^{p\top}_k Z^p_{k+1})$ in
    its own frame. These, with time, are the control; the state is $(Z, t) \in
    SO(3) \times \mathbb{R}$ and

    $$dZ = Z \sum_p g_p(t, c)\, \widehat{dX^p}, \qquad R = B Z .$$

    The gains $g_p$ are a perceptron of time and of statistics $c$ of the observations
    ([`arborax.models.rotation_statistics`][]), positive and of sum at most one. The
    equation begins in the middle of the times, where $Z$ is a mean of the $Z^p$ with
    weights learned in the same way, and runs forward and backward from there. All gains
    zero hold the last observation, a single gain of one gives back that driver up to
    the error of the solver, and what lies between is learned.

    The control is summed up by its log-signature of depth 2 over windows of `window`
    samples and solved by CF-EES(2,5), one step a window: 21 points at `window=10` take
    two steps, one to each side. Brackets are those of $SO(3)$. A rotation of space
    turns the output with it, and so does one of the body.
    """

    drivers: DriverBank | Drivers
    mlp: MLP
    start_mlp: MLP
    prior: Float[Array, " drivers"]
    solver: AbstractSolver
    window: int = eqx.field(static=True)
    substeps: int = eqx.field(static=True)
    interpolation: str = eqx.field(static=True)

    def __init__(
        self,
        drivers: Sequence[AbstractExtrapolator] | DriverBank | None = None,
        *,
        window: int = 10,
        width: int = 32,
        depth: int = 2,
        solver: AbstractSolver | None = None,
        substeps: int = 1,
        interpolation: str | None = None,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `drivers`: extrapolators whose paths drive the equation; by default constant
            velocity and five Savitzky-Golay polynomials.
        - `window`: samples for each step of the solver.
        - `width`, `depth`: of the perceptrons.
        - `solver`, `substeps`: default `CFEES25`, one step a window.
        - `interpolation`: outputs inside windows, as [`arborax.models.BNRDE`][].
        - `dtype`: of the weights.
        - `key`: a JAX random key.
        """
        self.drivers = as_drivers(drivers)
        count = len(self.drivers.prior)
        self.solver = CFEES25() if solver is None else solver
        self.solver.check(STATE)
        self.interpolation = check_window_options(
            Shuffle(1 + 3 * count, 2), STATE, window, interpolation
        )
        self.window, self.substeps = window, substeps
        dtype = jnp.result_type(float) if dtype is None else dtype
        first, second = jr.split(key)
        options = dict(activation=jax.nn.silu, dtype=dtype)
        self.mlp = _quiet(
            MLP(STATISTICS + 1, count, width, depth, **options, key=first)
        )
        self.start_mlp = _quiet(
            MLP(STATISTICS, count, width, depth, **options, key=second)
        )
        self.prior = jnp.asarray(self.drivers.prior, dtype)

    def __call__(self, ts, rotations, times, mask=None):
        held = Hold()(ts, rotations, times, mask)
        context = rotation_statistics(ts, rotations, mask)
        eye = jnp.eye(3, dtype=rotations.dtype)
        paths = self.drivers(ts, rotations, times, mask)
        z = jnp.einsum("kji,pkjl->kpil", held, paths)
        steps = jax.vmap(jax.vmap(SO(3).log))(z[:-1], z[1:])
        middle = (times.shape[0] - 1) // 2
        starts = jax.vmap(lambda r: SO(3).log(eye, r))(z[middle])
        increments = steps.reshape(steps.shape[0], -1)
        clock = ((times - times[0]) / (times[-1] - times[0])).astype(increments.dtype)
        values = jnp.pad(jnp.cumsum(increments, axis=0), [(1, 0), (0, 0)])
        values = jnp.concatenate([clock[:, None], values], axis=1)
        weights = _shares(self.prior + self.start_mlp(context))
        start = SO(3).exp(eye, weights @ starts)
        flow = _Flow(self, Shuffle(values.shape[1], 2), context, start)
        # Both directions have the same length; the shorter one stays at its end.
        later, earlier = values[middle:], values[middle::-1]
        size = max(later.shape[0], earlier.shape[0])
        later, earlier = (
            jnp.pad(part, [(0, size - part.shape[0]), (0, 0)], mode="edge")
            for part in (later, earlier)
        )
        index = jnp.arange(later.shape[0], dtype=values.dtype)
        after, before = jax.vmap(lambda xs: flow(SampledPath(index, xs, check=False)))(
            jnp.stack([later, earlier])
        )
        count = times.shape[0]
        z = jnp.concatenate([before[middle:0:-1], after[: count - middle]])
        return jnp.einsum("kij,kjl->kil", held, z)


class RotationMixture(AbstractExtrapolator):
    r"""The same drivers and gains without an equation:
    $R = B \exp(\sum_p g_p(t, c) \log Z^p_t)$. What an equation has to beat."""

    drivers: DriverBank | Drivers
    mlp: MLP
    prior: Float[Array, " drivers"]

    def __init__(
        self,
        drivers: Sequence[AbstractExtrapolator] | DriverBank | None = None,
        *,
        width: int = 32,
        depth: int = 2,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:** as [`arborax.models.RotationBNRDE`][]."""
        self.drivers = as_drivers(drivers)
        count = len(self.drivers.prior)
        dtype = jnp.result_type(float) if dtype is None else dtype
        options = dict(activation=jax.nn.silu, dtype=dtype)
        self.mlp = _quiet(MLP(STATISTICS + 1, count, width, depth, **options, key=key))
        self.prior = jnp.asarray(self.drivers.prior, dtype)

    def __call__(self, ts, rotations, times, mask=None):
        held = Hold()(ts, rotations, times, mask)
        context = rotation_statistics(ts, rotations, mask)
        clock = ((times - times[0]) / (times[-1] - times[0])).astype(rotations.dtype)
        fields = Gains(self.mlp, self.prior, context)
        gains = jax.vmap(lambda t: fields.gains(t[None]))(clock)
        eye = jnp.eye(3, dtype=rotations.dtype)
        paths = self.drivers(ts, rotations, times, mask)
        z = jnp.einsum("kji,pkjl->kpil", held, paths)
        vectors = jax.vmap(jax.vmap(lambda r: SO(3).log(eye, r)))(z)
        total = jnp.einsum("kp,kpi->ki", gains, vectors)
        turns = jax.vmap(lambda u: SO(3).exp(eye, u))(total)
        return jnp.einsum("kij,kjl->kil", held, turns)


def _shares(logits: Float[Array, " drivers"]) -> Float[Array, " drivers"]:
    """Softmax with one further logit, zero, that is left out."""
    all_of_them = jnp.pad(logits, (1, 0))
    return jax.nn.softmax(all_of_them)[1:]


def _quiet(mlp: MLP) -> MLP:
    """The same perceptron with a last layer ten times smaller."""
    where = lambda m: (m.layers[-1].weight, m.layers[-1].bias)  # noqa: E731
    last = mlp.layers[-1]
    assert last.bias is not None
    return eqx.tree_at(where, mlp, (last.weight / 10, last.bias / 10))

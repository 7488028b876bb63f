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
from ._extrapolators import AbstractExtrapolator, log_step
from ._mlp import MLP
from ._rotation_bank import as_bank, Bank, Bundle, Developed
from ._rotation_fields import COEFFICIENTS, Correction, Torque
from ._rotation_statistics import rotation_statistics, STATISTICS
from ._window_model import (
    AbstractWindowModel,
    check_window_options,
    second_order_expansion,
)


STATE = Product(SO(3), Euclidean(1))
ALGEBRA = Shuffle(4, 2)


class RotationMixture(AbstractExtrapolator):
    r"""The development of a learned mean of candidate paths.

    The bank gives paths $x^p$ in $\mathbb{R}^3$ and logits
    ([`arborax.models.MotionBank`][]); the forecast is the development of $X_t =
    \sum_p g_p(t, c)\, x^p_t$, with gains that are positive, of sum one, and begin at
    the softmax of the logits. A perceptron of time and context $c$ corrects them; the
    context is what [`arborax.models.rotation_statistics`][] and the bank say of the
    observations, and with `seconds` the logarithm of the mean step. A rotation of space
    turns the output with it; so does one of the body if the bank has no bodies.
    """

    bank: Bank
    mlp: MLP
    trust: Float[Array, ""]
    seconds: bool = eqx.field(static=True)

    def __init__(
        self,
        drivers: Sequence[AbstractExtrapolator] | Bank | None = None,
        *,
        width: int = 32,
        depth: int = 2,
        seconds: bool = False,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `drivers`: a bank, or extrapolators whose paths are taken; default
            `MotionBank()`.
        - `width`, `depth`: of the perceptron.
        - `seconds`: times are in seconds, and that matters.
        - `dtype`: of the weights.
        - `key`: a JAX random key.
        """
        self.bank, self.seconds = as_bank(drivers), seconds
        dtype = jnp.result_type(float) if dtype is None else dtype
        size = self.context_size + 1
        options = dict(activation=jax.nn.silu, dtype=dtype)
        self.mlp = _quiet(MLP(size, self.bank.count, width, depth, **options, key=key))
        self.trust = jnp.ones((), dtype)

    @property
    def context_size(self) -> int:
        """Length of the context."""
        return STATISTICS + self.bank.num_features + self.seconds

    def mean(
        self, ts, rotations, times, mask=None
    ) -> tuple[Bundle, Float[Array, " context"], Float[Array, "times 3"]]:
        """The bundle, the context and the weighted path."""
        bundle = self.bank(ts, rotations, times, mask)
        statistics = rotation_statistics(ts, rotations, mask)
        context = jnp.concatenate([statistics, bundle.features])
        if self.seconds:
            context = jnp.append(context, log_step(ts, context.dtype))
        logits = self.trust * bundle.logits

        def gains(t):
            entries = jnp.append(context, 2 * t - 1)
            return jax.nn.softmax(logits + self.mlp(entries))

        weights = jax.vmap(gains)(_clock(times, context.dtype))
        return bundle, context, jnp.einsum("tp,ptc->tc", weights, bundle.paths)

    def __call__(self, ts, rotations, times, mask=None):
        bundle, _, path = self.mean(ts, rotations, times, mask)
        return bundle.rotations(path, times)


class _Flow(AbstractWindowModel):
    """The equation of one window of rotations, from the identity."""

    alg: Shuffle = eqx.field(static=True)
    solver: AbstractSolver
    fields: Correction
    window: int = eqx.field(static=True)
    substeps: int = eqx.field(static=True)
    interpolation: str = eqx.field(static=True)

    def __init__(self, owner: "RotationBNRDE", fields: Correction):
        self.alg = ALGEBRA
        self.solver = owner.solver
        self.fields = fields
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
        return jnp.eye(3, dtype=x.dtype), x[:1]

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
    r"""A learned extrapolator: a rough differential equation on $SO(3)$, driven by the
    path that a bank of smoothers and learned gains make of the observations.

    The control is time and the path $X$ of a [`arborax.models.RotationMixture`][]. With
    $M$ the development of $X$, the output is $R = M Z$,

    $$dM = M\,\widehat{dX}, \qquad dZ = Z \sum_i \widehat{V_i(Z, t, c)}\, d(t, X)^i,$$

    which is $dR = R\,(\mathrm{Ad}_{Z^{-1}} \widehat{dX} + \hat V d(t, X))$ in the
    moving frame of $M$: exact where the learned fields $V$
    ([`arborax.models.Correction`][]) vanish, as they do before training, so that the
    model contains the mixture. The equation begins in the middle of the times and runs
    forward and backward from there.

    The control is summed up by its log-signature of depth 2 over windows of `window`
    samples and solved by CF-EES(2,5), one step a window: 21 points at `window=10` take
    two steps, one to each side. Brackets are those of $SO(3)$. A rotation of space
    turns the output with it.
    """

    mixture: RotationMixture
    mlp: MLP
    solver: AbstractSolver
    window: int = eqx.field(static=True)
    substeps: int = eqx.field(static=True)
    interpolation: str = eqx.field(static=True)
    inertia: bool = eqx.field(static=True)

    def __init__(
        self,
        drivers: Sequence[AbstractExtrapolator] | Bank | None = None,
        *,
        window: int = 10,
        width: int = 32,
        depth: int = 2,
        solver: AbstractSolver | None = None,
        substeps: int = 1,
        interpolation: str | None = None,
        inertia: bool = False,
        seconds: bool = False,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `drivers`, `width`, `depth`, `seconds`, `dtype`: as
            [`arborax.models.RotationMixture`][].
        - `inertia`: whether the fields have a torque about the axes of the body
            ([`arborax.models.Torque`][]), from which they can learn Euler's equations.
        - `window`: samples for each step of the solver.
        - `solver`, `substeps`: default `CFEES25`, one step a window.
        - `interpolation`: outputs inside windows, as [`arborax.models.BNRDE`][].
        - `key`: a JAX random key.
        """
        first, second = jr.split(key)
        options = dict(width=width, depth=depth, dtype=dtype)
        self.mixture = RotationMixture(drivers, seconds=seconds, **options, key=first)
        self.solver = CFEES25() if solver is None else solver
        self.solver.check(STATE)
        self.interpolation = check_window_options(ALGEBRA, STATE, window, interpolation)
        self.window, self.substeps = window, substeps
        self.inertia = inertia
        size = self.mixture.context_size + 2 + inertia * Torque.INPUTS
        count = COEFFICIENTS + inertia * 3
        dtype = jnp.result_type(float) if dtype is None else dtype
        options = dict(activation=jax.nn.silu, dtype=dtype)
        self.mlp = _quiet(MLP(size, count, width, depth, **options, key=second), 0.0)

    def __call__(self, ts, rotations, times, mask=None):
        bundle, context, path = self.mixture.mean(ts, rotations, times, mask)
        frame = bundle.rotations(path, times)
        clock = _clock(times, path.dtype)
        values = jnp.concatenate([clock[:, None], path], axis=1)
        velocity = path[-1] - path[0]
        torque = None
        if self.inertia:
            torque = Torque(Developed(ts, rotations, mask), ts, times)
        flow = _Flow(self, Correction(self.mlp, context, velocity, torque))
        count = times.shape[0]
        middle = (count - 1) // 2
        # Both directions have the same length; the shorter one stays at its end.
        later, earlier = values[middle:], values[middle::-1]
        size = max(later.shape[0], earlier.shape[0])
        later, earlier = (
            jnp.pad(part, [(0, size - part.shape[0]), (0, 0)], mode="edge")
            for part in (later, earlier)
        )
        index = jnp.arange(size, dtype=values.dtype)
        after, before = jax.vmap(lambda xs: flow(SampledPath(index, xs, check=False)))(
            jnp.stack([later, earlier])
        )
        z = jnp.concatenate([before[middle:0:-1], after[: count - middle]])
        return jnp.einsum("kij,kjl->kil", frame, z)


def _clock(times: Float[Array, " times"], dtype: Any) -> Float[Array, " times"]:
    return ((times - times[0]) / (times[-1] - times[0])).astype(dtype)


def _quiet(mlp: MLP, factor: float = 0.1) -> MLP:
    """The same perceptron with a smaller last layer."""
    where = lambda m: (m.layers[-1].weight, m.layers[-1].bias)  # noqa: E731
    last = mlp.layers[-1]
    assert last.bias is not None
    return eqx.tree_at(where, mlp, (factor * last.weight, factor * last.bias))

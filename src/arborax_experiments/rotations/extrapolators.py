"""Rotations continued beyond their observations: references, and fronts of models."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ..geometry import SO
from ._mlp import MLP
from ._savitzky_golay import SavitzkyGolayRotation


Rotations = Float[Array, "samples 3 3"]


class AbstractExtrapolator(eqx.Module):
    """Rotations at any times from a few observed ones.

    `extrapolator(ts, rotations, times, mask)`: see `__call__`. All of them commute with
    a rotation of space (`Hermite(relative=False)` excepted), take irregular times and
    leave missing samples unseen. The unit of time does not matter to them, but to
    learned ones with `seconds=True`: these may learn how fast things happen. Batch with
    `jax.vmap`.
    """

    @abc.abstractmethod
    def __call__(
        self,
        ts: Float[Array, " samples"],
        rotations: Rotations,
        times: Float[Array, " times"],
        mask: Bool[Array, " samples"] | None = None,
    ) -> Float[Array, "times 3 3"]:
        """Rotations at `times`.

        **Arguments:**

        - `ts`: increasing times of the observations, at least two.
        - `rotations`: the observations.
        - `times`: where to evaluate, within the observations or later, in the same
            unit.
        - `mask`: which observations are there, at least two; all by default.
        """


class Hold(AbstractExtrapolator):
    """Geodesics between observations, then the last of them for ever."""

    def __call__(self, ts, rotations, times, mask=None):
        pieces = Pieces(ts, rotations, mask)
        return jax.vmap(lambda t: pieces.geodesic(t, hold=True))(times)


class ConstantVelocity(AbstractExtrapolator):
    """Geodesics between observations, the last one continued."""

    def __call__(self, ts, rotations, times, mask=None):
        pieces = Pieces(ts, rotations, mask)
        return jax.vmap(pieces.geodesic)(times)


class Linear(AbstractExtrapolator):
    r"""Straight lines in the chart $\log(R_0^\top R)$ about the first observation, the
    last slope continued."""

    def __call__(self, ts, rotations, times, mask=None):
        pieces = Pieces(ts, rotations, mask)
        first = pieces.rotations[0]
        values = jax.vmap(lambda r: SO(3).log(first, r))(pieces.rotations)

        def at(t):
            k, part = pieces.find(t)
            return SO(3).exp(first, values[k] + part * (values[k + 1] - values[k]))

        return jax.vmap(at)(times)


class Hermite(AbstractExtrapolator):
    """Cubics with backward differences as slopes, the last cubic continued.

    The chart is the logarithm about the first observation, or with `relative=False`
    about the identity, as published: it then jumps where the angle passes pi, and it
    diverges faster.
    """

    relative: bool = eqx.field(static=True, default=True)

    def __call__(self, ts, rotations, times, mask=None):
        pieces = Pieces(ts, rotations, mask)
        eye = jnp.eye(3, dtype=rotations.dtype)
        first = pieces.rotations[0] if self.relative else eye
        values = jax.vmap(lambda r: SO(3).log(first, r))(pieces.rotations)

        def at(t):
            k, s = pieces.find(t)
            step = values[k + 1] - values[k]
            j = jnp.maximum(k - 1, 0)
            ratio = (pieces.ts[k + 1] - pieces.ts[k]) / (
                pieces.ts[j + 1] - pieces.ts[j]
            )
            before = ratio.astype(step.dtype) * (values[j + 1] - values[j])
            bend = (2 * s**2 - s**3) * (step - before)
            return SO(3).exp(first, values[k] + s * before + bend)

        return jax.vmap(at)(times)


class SavitzkyGolay(AbstractExtrapolator):
    """The polynomial of [`arborax.models.SavitzkyGolayRotation`][] at all times.

    With `knots` the weights of the samples are trained: the softplus of a table over
    the observed span, linear in between, so that they fit any number of samples at any
    times. With `memory` they fall exponentially into the past.
    """

    raw_weights: Float[Array, " knots"] | None
    order: int = eqx.field(static=True)
    memory: float | None = eqx.field(static=True)

    def __init__(
        self,
        order: int = 2,
        *,
        memory: float | None = None,
        knots: int | None = None,
        dtype: Any = None,
        key: PRNGKeyArray | None = None,
    ):
        """**Arguments:**

        - `order`: of the polynomial.
        - `memory`: weights fall by a factor e over this part of the observed span.
        - `knots`: size of the table of trained weights; `None`: equal weights.
        - `dtype`: of the table.
        - `key`: the table starts at 0.1 times standard normals; zeros without a key.
        """
        if order < 0 or (knots is not None and knots < 2):
            raise ValueError("`order` is at least 0, and `knots` at least 2 or None.")
        if memory is not None and memory <= 0:
            raise ValueError(f"`memory` must be positive, got {memory}.")
        self.order, self.memory = order, memory
        self.raw_weights = None
        if knots is not None:
            dtype = jnp.result_type(float) if dtype is None else dtype
            start = jnp.zeros((knots,), dtype)
            if key is not None:
                start = 0.1 * jr.normal(key, (knots,), dtype)
            self.raw_weights = start

    def fit(self, ts, rotations, mask=None) -> SavitzkyGolayRotation:
        """The polynomial, which has an exact derivative."""
        weights = None
        place = (ts - ts[0]) / (ts[-1] - ts[0])
        if self.memory is not None:
            weights = jnp.exp((place - 1) / self.memory).astype(rotations.dtype)
        if self.raw_weights is not None:
            count = self.raw_weights.shape[0]
            grid = jnp.linspace(0, 1, count, dtype=place.dtype)
            table = jax.nn.softplus(self.raw_weights)
            trained = jnp.interp(place, grid, table.astype(place.dtype))
            trained = trained.astype(rotations.dtype)
            weights = trained if weights is None else weights * trained
        return SavitzkyGolayRotation(ts, rotations, self.order, weights, mask)

    def __call__(self, ts, rotations, times, mask=None):
        return jax.vmap(self.fit(ts, rotations, mask).evaluate)(times)


class MLPExtrapolator(AbstractExtrapolator):
    r"""A perceptron reads the observations, another one continues them.

    Observations are put on `observed` equal steps by geodesics, in the chart
    $\log(R_c^\top R)$ about the last of them; the encoder makes a context of them, the
    decoder a rotation vector of time and context, shifted so that the path is
    continuous. The observed part is geodesic. With `seconds` the encoder is also told
    the mean step of the observations.
    """

    encoder: MLP
    decoder: MLP
    observed: int = eqx.field(static=True)
    seconds: bool = eqx.field(static=True)

    def __init__(
        self,
        observed: int = 12,
        *,
        context: int = 16,
        width: int = 32,
        depth: int = 2,
        activation: Callable = jax.nn.relu,
        seconds: bool = False,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `observed`: number of equal steps the observations are put on.
        - `context`: size of the context.
        - `width`, `depth`, `activation`: of both perceptrons.
        - `seconds`: times are in seconds, and that matters.
        - `dtype`: of the weights.
        - `key`: a JAX random key.
        """
        first, second = jr.split(key)
        options = dict(activation=activation, dtype=dtype)
        size = 3 * observed + seconds
        self.encoder = MLP(size, context, width, depth, **options, key=first)
        self.decoder = MLP(1 + context, 3, width, depth, **options, key=second)
        self.observed, self.seconds = observed, seconds

    def __call__(self, ts, rotations, times, mask=None):
        pieces = Pieces(ts, rotations, mask)
        end, last = pieces.last
        grid = jnp.linspace(ts[0], ts[-1], self.observed)
        even = jax.vmap(lambda t: pieces.geodesic(t, hold=True))(grid)
        vectors = jax.vmap(lambda r: SO(3).log(last, r))(even)
        entries = vectors.reshape(-1)
        if self.seconds:
            entries = jnp.append(entries, log_step(ts, entries.dtype))
        context = self.encoder(entries)

        def decode(t):
            place = ((t - ts[0]) / (ts[-1] - ts[0])).astype(context.dtype)
            return self.decoder(jnp.concatenate([place[None], context]))

        shift = decode(end)

        def at(t):
            later = SO(3).exp(last, decode(t) - shift)
            return jnp.where(t <= end, pieces.geodesic(t, hold=True), later)

        return jax.vmap(at)(times)


def log_step(ts: Float[Array, " samples"], dtype: Any) -> Float[Array, ""]:
    """The logarithm of the mean step in units of 0.1 s: what a model is told of the
    rate."""
    step = (ts[-1] - ts[0]) / (ts.shape[0] - 1)
    return jnp.log(10 * step).astype(dtype)


class Pieces(eqx.Module):
    """Observations that are there, in front, and the interval a time lies in."""

    ts: Float[Array, " samples"]
    rotations: Rotations
    count: Any

    def __init__(self, ts, rotations, mask):
        samples = rotations.shape[0]
        if samples < 2:
            raise ValueError(f"an extrapolator needs two observations, got {samples}.")
        self.ts, self.rotations = ts, rotations
        self.count = jnp.asarray(samples)
        if mask is not None:
            order = jnp.argsort(~mask, stable=True)
            self.count = jnp.sum(mask)
            there = jnp.arange(samples) < self.count
            # Times of what is missing lie beyond all that may be asked for.
            span = ts[-1] - ts[0]
            late = ts[-1] + 1e3 * span * (1 + jnp.arange(samples, dtype=ts.dtype))
            self.ts = jnp.where(there, ts[order], late)
            eye = jnp.eye(3, dtype=rotations.dtype)
            present = there[:, None, None]
            self.rotations = jnp.where(present, rotations[order], eye[None])

    @property
    def last(self) -> tuple[Array, Array]:
        """The last observation that is there."""
        return self.ts[self.count - 1], self.rotations[self.count - 1]

    def find(self, t):
        """The interval of a time, and the part of it that has passed: above one after
        the last observation."""
        k = jnp.clip(jnp.sum(self.ts <= t) - 1, 0, self.count - 2)
        part = (t - self.ts[k]) / (self.ts[k + 1] - self.ts[k])
        return k, part.astype(self.rotations.dtype)

    def geodesic(self, t, hold: bool = False):
        k, part = self.find(t)
        part = jnp.minimum(part, 1) if hold else part
        before, after = self.rotations[k], self.rotations[k + 1]
        return SO(3).exp(before, part * SO(3).log(before, after))

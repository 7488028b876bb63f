"""Extrapolators with weights: a polynomial, and an MLP."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from arborax.geometry import SO
from arborax.models import MLP

from .extrapolators import AbstractExtrapolator, Pieces
from .savitzky_golay import SavitzkyGolayRotation


class SavitzkyGolay(AbstractExtrapolator):
    """The polynomial of `SavitzkyGolayRotation` at all times.

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
    r"""An MLP reads the observations, another one continues them.

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
        - `width`, `depth`, `activation`: of both MLPs.
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

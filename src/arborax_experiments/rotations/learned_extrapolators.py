"""Extrapolators with trained weights: a polynomial and an MLP."""

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


CONTEXT = 16  # size of the context


class SavitzkyGolay(AbstractExtrapolator):
    """The polynomial of `SavitzkyGolayRotation` at all times.

    With `knots` the weights of the samples are trained: the softplus of a table over
    the observed span, linear in between, so that they fit any number of samples at any
    times.
    """

    raw_weights: Float[Array, " knots"] | None
    order: int = eqx.field(static=True)

    def __init__(
        self,
        order: int = 2,
        *,
        knots: int | None = None,
        dtype: Any = None,
        key: PRNGKeyArray | None = None,
    ):
        """**Arguments:**

        - `order`: of the polynomial.
        - `knots`: size of the table of trained weights; `None`: equal weights.
        - `dtype`: of the table.
        - `key`: the table starts at 0.1 times standard normals; zeros without a key.
        """
        if order < 0 or (knots is not None and knots < 2):
            raise ValueError("`order` is at least 0, and `knots` at least 2 or None.")
        self.order, self.raw_weights = order, None
        if knots is not None:
            dtype = jnp.result_type(float) if dtype is None else dtype
            start = jnp.zeros((knots,), dtype)
            if key is not None:
                start = 0.1 * jr.normal(key, (knots,), dtype)
            self.raw_weights = start

    def fit(self, ts, rotations, mask=None) -> SavitzkyGolayRotation:
        """The polynomial, which has an exact derivative."""
        weights = None
        if self.raw_weights is not None:
            place = (ts - ts[0]) / (ts[-1] - ts[0])
            count = self.raw_weights.shape[0]
            grid = jnp.linspace(0, 1, count, dtype=place.dtype)
            table = jax.nn.softplus(self.raw_weights)
            weights = jnp.interp(place, grid, table.astype(place.dtype))
            weights = weights.astype(rotations.dtype)
        return SavitzkyGolayRotation(ts, rotations, self.order, weights, mask)

    def __call__(self, ts, rotations, times, mask=None):
        return jax.vmap(self.fit(ts, rotations, mask).evaluate)(times)


class MLPExtrapolator(AbstractExtrapolator):
    r"""One MLP reads the observations, another continues them.

    Observations are put on `observed` equal steps by geodesics, in the chart
    $\log(R_c^\top R)$ about the last of them; the encoder turns them into a context,
    the decoder maps time and context to a rotation vector, shifted so that the path is
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
        seconds: bool = False,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `observed`: number of equal steps the observations are put on.
        - `seconds`: whether times are in seconds and the model is told the rate.
        - `dtype`: of the weights.
        - `key`: a JAX random key.
        """
        first, second = jr.split(key)
        options: Any = dict(width=32, depth=2, activation=jax.nn.relu, dtype=dtype)
        self.encoder = MLP(3 * observed + seconds, CONTEXT, **options, key=first)
        self.decoder = MLP(1 + CONTEXT, 3, **options, key=second)
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
    """The logarithm of the mean step in units of 0.1 s, from which a model knows the
    rate."""
    step = (ts[-1] - ts[0]) / (ts.shape[0] - 1)
    return jnp.log(10 * step).astype(dtype)

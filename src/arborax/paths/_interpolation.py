"""Samples with missing values, filled or interpolated: linear, rectilinear, cubic."""

import abc
from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._inputs import as_choice, as_floating, as_values
from .._values import is_concrete, refuse
from ._augment import rectilinear
from ._checks import valid_points
from ._missing import check_times, divide, fill, neighbours, observed_mask, take
from ._sampled import SampledPath


class AbstractInterpolation(eqx.Module):
    """A continuous path through samples, evaluated at any times.

    Outside the sampled interval the first or last segment is continued (a path with
    `lengths` is stopped: it is continued by its last value). A channel is constant
    before its first and after its last observation, and zero if it has none.
    """

    ts: Float[Array, "*#batch points"]
    tables: tuple[Float[Array, "*batch rows channels"], ...]

    def __init__(
        self,
        ts: ArrayLike,
        xs: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        check: bool = True,
    ):
        """**Arguments:**

        - `ts`: `(times,)` or `(..., times)`, strictly increasing.
        - `xs`: `(..., times, channels)`.
        - `mask`: boolean, True where observed, per time or per time and channel.
            `None`: NaN marks a missing value.
        - `check`: whether values are checked; see [`arborax.SampledPath`][].
        """
        given = ts, xs
        xs = as_values("xs", xs)
        ts = check_times(ts, xs)
        seen = observed_mask(xs, mask)
        if check:
            xs = SampledPath(*given, seen).xs
        if xs.shape[-2] == 1:  # a single point is held for one unit of time
            ts = jnp.concatenate([ts, ts + 1], axis=-1)
            xs = jnp.concatenate([xs, xs], axis=-2)
            seen = jnp.concatenate([seen, seen], axis=-2)
        self.ts, *tables = self._prepare(ts, xs, seen)
        self.tables = tuple(tables)

    def evaluate(self, t: ArrayLike) -> Float[Array, "..."]:
        """Values at the times `t` of any shape: `(*batch, *t.shape, channels)`."""
        return self._at(self._value, t)

    def derivative(self, t: ArrayLike) -> Float[Array, "..."]:
        """Time derivatives at `t`, from the right where the two sides differ (from the
        left at the last sample); shape as in `evaluate`."""
        return self._at(self._slope, t)

    @staticmethod
    @abc.abstractmethod
    def _prepare(ts: Array, xs: Array, seen: Array) -> tuple[Array, ...]:
        """Times of the segments, and tables `(..., rows, channels)`."""

    @staticmethod
    @abc.abstractmethod
    def _value(ts: Array, tables: tuple, k: Array, t: Array) -> Array:
        """Values at `t` in the segments `k` of times without batch axes."""

    @staticmethod
    @abc.abstractmethod
    def _slope(ts: Array, tables: tuple, k: Array, t: Array) -> Array:
        """Derivatives, as `_value`."""

    def _at(self, fn: Callable[..., Array], t: ArrayLike) -> Array:
        """`fn` mapped over the batch of times."""
        known, ts = is_concrete(t), self.ts
        query = as_floating("t", t).astype(ts.dtype)
        finite = np.isfinite(np.asarray(t)) if known else jnp.isfinite(query)
        t = refuse(query, ~finite, "`t` must be finite, got NaN or infinity.")

        def unbatched(ts, *tables):
            segment = jnp.searchsorted(ts, t, side="right") - 1
            return fn(ts, tables, jnp.clip(segment, 0, ts.shape[0] - 2), t)

        if ts.ndim > 1:
            batch = self.tables[0].shape[:-2]
            ts = jnp.broadcast_to(ts, (*batch, ts.shape[-1]))
            for _ in batch:
                unbatched = jax.vmap(unbatched)
        return unbatched(ts, *self.tables)


def _match(weight: Array, values: Array) -> Array:
    """Bring query-shaped weights to the rank of `(..., *query, channels)`."""
    lead = values.ndim - 1 - weight.ndim
    return weight.reshape((1,) * lead + weight.shape + (1,))


class LinearInterpolation(AbstractInterpolation):
    """Piecewise-linear interpolation; missing values are interpolated by channel."""

    @staticmethod
    def _prepare(ts, xs, seen):
        return ts, fill(ts, xs, seen, "linear")

    @staticmethod
    def _value(ts, tables, k, t):
        (xs,) = tables
        x0, x1 = xs[..., k, :], xs[..., k + 1, :]
        weight = _match(divide(t - ts[k], ts[k + 1] - ts[k]), x0).astype(xs.dtype)
        return (1 - weight) * x0 + weight * x1

    @staticmethod
    def _slope(ts, tables, k, t):
        (xs,) = tables
        rise = xs[..., k + 1, :] - xs[..., k, :]
        run = _match(ts[k + 1] - ts[k], rise).astype(xs.dtype)
        return divide(rise, jnp.broadcast_to(run, rise.shape))


class RectilinearInterpolation(AbstractInterpolation):
    """The rectilinear path of [`arborax.rectilinear`][], time as its first channel.

    The parameter agrees with time at the samples: over the first half of a step the
    time channel runs through the whole step with the values held, over the second half
    the values move. Values have `channels + 1` channels. Missing values are carried
    forward.
    """

    _value = staticmethod(LinearInterpolation._value)
    _slope = staticmethod(LinearInterpolation._slope)

    @staticmethod
    def _prepare(ts, xs, seen):
        path = rectilinear(SampledPath(ts, xs, seen, check=False))
        return path.ts, path.xs


class HermiteInterpolation(AbstractInterpolation):
    """Cubic Hermite interpolation with backward differences.

    The slope at an observation is the difference quotient to the observation before it
    (at the first one: to the one after it), so the value at `t` depends on no sample
    later than the first observation after `t`. Once continuously differentiable between
    a channel's first and last observation (Morrill et al., "Neural controlled
    differential equations for online prediction tasks", 2021). Times without an
    observation of a channel have no influence on it (unlike in
    `diffrax.backward_hermite_coefficients`, which starts a new piece there).
    """

    @staticmethod
    def _prepare(ts, xs, seen):
        times = jnp.broadcast_to(ts[..., None], xs.shape)
        xs = jnp.where(seen, xs, 0)
        before, after = neighbours(seen)
        # Observations around each segment, and the one before the left of them.
        i, j = before[..., :-1, :], after[..., 1:, :]
        earlier = jnp.take_along_axis(before, jnp.clip(i - 1, 0, None), axis=-2)
        h = jnp.where(i > 0, earlier, -1)
        xi, xj, xh = take(xs, i), take(xs, j), take(xs, h)
        ti, tj, th = take(times, i), take(times, j), take(times, h)
        run = (tj - ti).astype(xs.dtype)
        slope = divide(xj - xi, run)
        start = divide(xi - xh, (ti - th).astype(xs.dtype))
        start = jnp.where(h >= 0, start, slope)
        inside = (i >= 0) & (j < xs.shape[-2])
        held = jnp.where(i >= 0, xi, jnp.where(j < xs.shape[-2], xj, 0))
        bend = divide(slope - start, run)
        origins = jnp.where(inside, ti, times[..., :-1, :])
        pieces = start, 2 * bend, -divide(bend, run)
        coefficients = (jnp.where(inside, piece, 0) for piece in pieces)
        return ts, origins, jnp.where(inside, xi, held), *coefficients

    @staticmethod
    def _value(ts, tables, k, t):
        u, c0, c1, c2, c3 = _hermite_at(tables, k, t)
        return c0 + u * (c1 + u * (c2 + u * c3))

    @staticmethod
    def _slope(ts, tables, k, t):
        u, _, c1, c2, c3 = _hermite_at(tables, k, t)
        return c1 + u * (2 * c2 + 3 * u * c3)


def _hermite_at(tables, k, t):
    origin, *coefficients = (a[..., k, :] for a in tables)
    t = jnp.broadcast_to(_match(t, origin), origin.shape)
    return ((t - origin).astype(coefficients[0].dtype), *coefficients)


def fill_missing(
    ts: ArrayLike,
    xs: ArrayLike,
    mask: ArrayLike | None = None,
    method: Literal["linear", "forward"] = "linear",
) -> Float[Array, "*batch times channels"]:
    """Replace missing values, each channel on its own.

    Before its first observation a channel takes the value of that observation, and
    after its last one that of the last. A channel without observations is filled with
    zeros. Observed values are returned unchanged to the last bit, and whatever is
    stored at missing places (NaN included) affects neither values nor gradients. Cost:
    `O(times x channels)`.

    **Arguments:**

    - `ts`: `(times,)` or `(..., times)`, increasing.
    - `xs`: `(..., times, channels)`.
    - `mask`: boolean, True where observed, `(..., times)` or `(..., times, channels)`.
        `None`: NaN marks a missing value.
    - `method`: `"linear"` interpolates in time between observations (a point missing in
        all channels then changes neither the path nor its realised bracket);
        `"forward"` carries the last observation forward, which uses no future value.

    **Returns:**

    Array of the shape and dtype of `xs` without missing values.
    """
    seen = observed_mask(as_values("xs", xs), mask)
    return SampledPath(ts, xs, seen).filled(method).xs


_KINDS = {
    "linear": LinearInterpolation,
    "rectilinear": RectilinearInterpolation,
    "hermite": HermiteInterpolation,
}


def interpolate(
    path: SampledPath, kind: Literal["linear", "rectilinear", "hermite"] = "linear"
) -> AbstractInterpolation:
    """Interpolate a sampled path, honouring its mask and lengths: constant after the
    last valid point. See [`arborax.AbstractInterpolation`][] and its three kinds."""
    as_choice("kind", kind, tuple(_KINDS))
    seen = jnp.ones(path.xs.shape, bool)
    if path.mask is not None:
        seen = observed_mask(path.xs, path.mask)
    ts = path.ts
    if path.lengths is not None:
        ts = path.filled().ts
        valid = valid_points(jnp, path, path.lengths)
        seen = seen & jnp.broadcast_to(valid[..., None], seen.shape)
    return _KINDS[kind](ts, path.xs, seen, check=False)

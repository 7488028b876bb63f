"""Extrapolation of rotations: references, and the front ends of models."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from arborax.geometry import SO


Rotations = Float[Array, "samples 3 3"]


class AbstractExtrapolator(eqx.Module):
    """Rotations at any times from a few observed ones.

    `extrapolator(ts, rotations, times, mask)`: see `__call__`. All of them commute with
    a rotation of space (except `Hermite(relative=False)`), take irregular times and
    ignore missing samples. The unit of time matters only to learned ones with
    `seconds=True`, which may learn time scales. Batch with `jax.vmap`.
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
        - `mask`: which observations were made, at least two; all by default.
        """


class Hold(AbstractExtrapolator):
    """Geodesics between observations, then the last observation."""

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


class Pieces(eqx.Module):
    """The observations that were made, in front, and the interval of a time."""

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
            # Missing samples get times beyond all that may be asked for.
            span = ts[-1] - ts[0]
            late = ts[-1] + 1e3 * span * (1 + jnp.arange(samples, dtype=ts.dtype))
            self.ts = jnp.where(there, ts[order], late)
            eye = jnp.eye(3, dtype=rotations.dtype)
            present = there[:, None, None]
            self.rotations = jnp.where(present, rotations[order], eye[None])

    @property
    def last(self) -> tuple[Array, Array]:
        """The last observation that was made."""
        return self.ts[self.count - 1], self.rotations[self.count - 1]

    def find(self, t):
        """The interval of a time, and the fraction of it that has passed: above one
        after the last observation."""
        k = jnp.clip(jnp.sum(self.ts <= t) - 1, 0, self.count - 2)
        part = (t - self.ts[k]) / (self.ts[k + 1] - self.ts[k])
        return k, part.astype(self.rotations.dtype)

    def geodesic(self, t, hold: bool = False):
        k, part = self.find(t)
        part = jnp.minimum(part, 1) if hold else part
        before, after = self.rotations[k], self.rotations[k + 1]
        return SO(3).exp(before, part * SO(3).log(before, after))

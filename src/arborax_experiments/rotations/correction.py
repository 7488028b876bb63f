"""Driving fields of the rough differential equation on SO(3)."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from arborax.models import MLP

from .candidates import Developed
from .savitzky_golay import orthonormal, powers


COEFFICIENTS = 5
_FASTEST = 0.15  # radians per sample; a quadratic says nothing about a faster body


class Torque(eqx.Module):
    r"""What a few noisy orientations tell about a body's moments of inertia.

    Without torque $\dot\omega_i = c_i \omega_j \omega_k$ about the principal axes. A
    parabola through the developed observations gives $\omega$, $\dot\omega$ and the
    standard error $\sigma$ of the latter; with $p_i = \omega_j \omega_k$ the numbers
    $\dot\omega_i p_i / \sigma^2$ and $p_i^2 / \sigma^2$ are what the likelihood of the
    $c_i$ depends on. They do not change when two axes of the body are reversed.

    - `products`: $p$, in samples.
    - `inputs`: these numbers, squashed.
    - `start`, `length`: the clock at the origin, and samples for one turn of the clock.
    """

    INPUTS: ClassVar[int] = 6

    products: Float[Array, " 3"]
    inputs: Float[Array, " 6"]
    start: Float[Array, ""]
    length: Float[Array, ""]

    def __init__(
        self,
        seen: Developed,
        ts: Float[Array, " samples"],
        times: Float[Array, " times"],
    ):
        dtype = seen.values.dtype
        unit = (ts[-1] - ts[0]) / (ts.shape[0] - 1)
        place = ((ts - seen.origin) / unit).astype(dtype)
        there = seen.mask.astype(dtype)[:, None]
        # Scaled so that the three columns have about the same size.
        q, inverse = orthonormal(there * powers(place / 6, 3))
        found = q.T @ seen.values
        residual = jnp.sum((seen.values - q @ found) ** 2)
        degrees = 3 * jnp.maximum(jnp.sum(there) - 3, 1)
        _, velocity, bend = inverse @ found
        velocity, acceleration = velocity / 6, bend / 18
        size = jnp.sqrt(jnp.sum(velocity**2) + 1e-20)
        w = velocity * jnp.minimum(1, _FASTEST / size)
        variance = residual / degrees * (inverse[2, 2] / 18) ** 2 + 1e-12
        self.products = jnp.roll(w, -1) * jnp.roll(w, -2)
        evidence = jnp.concatenate([acceleration * self.products, self.products**2])
        self.inputs = jnp.arcsinh(evidence / variance) / 3
        span = times[-1] - times[0]
        self.start = ((seen.origin - times[0]) / span).astype(dtype)
        self.length = (span / unit).astype(dtype)

    def velocity(
        self, constants: Float[Array, " 3"], clock: Float[Array, ""]
    ) -> Float[Array, " 3"]:
        """The velocity that the torque has added, per unit of the clock."""
        passed = self.length * (clock - self.start)
        return self.length * passed * constants * self.products


class Correction(eqx.Module):
    r"""Driving fields on `SO(3)` times a clock.

    With $v$ the sine of the state's angle times its axis, and $w$ the mean velocity of
    the control, time moves the clock and turns the state by $a v + b w + c\, w \times
    v$, and the control turns it by $\alpha\, dX + \beta\, v \times dX$. The five
    coefficients are an MLP of clock, context and $|v|^2$. These fields turn with
    the body. With a `Torque`, time also turns the state by the velocity that Euler's
    equations add; three more coefficients are their constants.
    """

    mlp: MLP
    context: Float[Array, " context"]
    velocity: Float[Array, " 3"]
    torque: Torque | None = None

    def __call__(self, y) -> Float[Array, "4 4"]:
        z, clock = y
        skew = (z - z.T) / 2
        v = jnp.stack([skew[2, 1], skew[0, 2], skew[1, 0]])
        entries = [self.context, 2 * clock - 1, jnp.sum(v**2)[None]]
        if self.torque is not None:
            entries.append(self.torque.inputs)
        found = self.mlp(jnp.concatenate(entries))
        a, b, c, alpha, beta = found[:COEFFICIENTS]
        w = self.velocity
        drift = a * v + b * w + c * jnp.cross(w, v)
        if self.torque is not None:
            drift = drift + self.torque.velocity(found[COEFFICIENTS:], clock[0])
        # Row i is the image of the i-th basis vector, v x e_i: minus the matrix of v.
        turns = alpha * jnp.eye(3, dtype=v.dtype) - beta * skew
        time = jnp.append(drift, 1)
        return jnp.concatenate([time[None], jnp.pad(turns, [(0, 0), (0, 1)])])

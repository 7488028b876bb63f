"""The Ornstein-Uhlenbeck process."""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ._law import AbstractLaw


@dataclasses.dataclass(frozen=True)
class OrnsteinUhlenbeck(AbstractLaw):
    r"""$dX = \kappa (\mu - X) dt + \sigma\, dW$ from `start`, exact on the grid."""

    positive: ClassVar[tuple[str, ...]] = ("horizon", "kappa", "sigma")
    kappa: float = 4.0
    mean: float = 0.0
    sigma: float = 1.0
    start: float = 0.0

    def simulate(self, paths, *, key, dtype):
        dt = self.horizon / self.steps
        square = -np.expm1(-2 * self.kappa * dt) / (2 * self.kappa)
        noise = jr.normal(key, (paths, self.steps), dtype)
        kick = float(self.sigma * np.sqrt(square)) * noise
        # The share of the kick of a step that is left at the end of another.
        lag = np.arange(self.steps)[None, :] - np.arange(self.steps)[:, None]
        decay = np.triu(np.exp(-self.kappa * dt * np.maximum(lag, 0)))
        moved = jnp.pad(kick @ jnp.asarray(decay, dtype), [(0, 0), (1, 0)])
        drift = (self.start - self.mean) * np.exp(-self.kappa * self.times())
        values = moved + jnp.asarray(self.mean + drift, dtype)[None]
        return values, jnp.full_like(noise, self.sigma**2 * dt)

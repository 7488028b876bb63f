"""Ornstein-Uhlenbeck processes, Brownian and fractional."""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..paths import fractional_brownian
from ._law import AbstractLaw, decay_table


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
        decay = np.exp(-self.kappa * dt * np.arange(self.steps))
        moved = jnp.pad(kick @ jnp.asarray(decay_table(decay), dtype), [(0, 0), (1, 0)])
        values = moved + jnp.asarray(_drift(self), dtype)[None]
        return values, jnp.full_like(noise, self.sigma**2 * dt)


@dataclasses.dataclass(frozen=True)
class RoughOrnsteinUhlenbeck(AbstractLaw):
    r"""$dX = \kappa (\mu - X) dt + \sigma\, dB^H$ from `start`, fractional noise.

    The noise is exact on the grid and enters each step at its middle. For `H < 1/2`
    there is no quadratic variation, for `H > 1/2` it is zero, so `brackets` is `None`.
    """

    has_brackets: ClassVar[bool] = False
    positive: ClassVar[tuple[str, ...]] = ("horizon", "kappa", "sigma")
    hurst: float = 0.25
    kappa: float = 4.0
    mean: float = 0.0
    sigma: float = 1.0
    start: float = 0.0

    def simulate(self, paths, *, key, dtype):
        dt = self.horizon / self.steps
        noise = fractional_brownian(
            self.steps,
            self.hurst,
            horizon=self.horizon,
            shape=(paths,),
            dtype=dtype,
            key=key,
        )[..., 0]
        decay = self.sigma * np.exp(-self.kappa * dt * (np.arange(self.steps) + 0.5))
        table = jnp.asarray(decay_table(decay), dtype)
        moved = jnp.pad(jnp.diff(noise, axis=1) @ table, [(0, 0), (1, 0)])
        return moved + jnp.asarray(_drift(self), dtype)[None], None


def _drift(law: OrnsteinUhlenbeck | RoughOrnsteinUhlenbeck) -> np.ndarray:
    return law.mean + (law.start - law.mean) * np.exp(-law.kappa * law.times())

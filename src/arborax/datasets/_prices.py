"""Log-prices: Black-Scholes, one-factor Bergomi, rough Bergomi."""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ..paths import riemann_liouville
from ._law import AbstractLaw, decay_table


def _starting_at_zero(steps: Float[Array, "paths steps"]) -> Array:
    return jnp.pad(jnp.cumsum(steps, axis=1), [(0, 0), (1, 0)])


def _left_point_price(
    key: PRNGKeyArray,
    variance: Float[Array, "paths steps"],
    dw: Float[Array, "paths steps"],
    rho: float,
    dt: float,
) -> tuple[Float[Array, "paths times"], Float[Array, "paths steps"]]:
    """Log-price and `v dt`, from the variance at the start of each step."""
    other = dt**0.5 * jr.normal(key, dw.shape, dw.dtype)
    db = rho * dw + (1 - rho**2) ** 0.5 * other
    brackets = variance * dt
    return _starting_at_zero(jnp.sqrt(variance) * db - brackets / 2), brackets


@dataclasses.dataclass(frozen=True)
class BlackScholes(AbstractLaw):
    r"""$d \log S = -\frac12 \sigma^2 dt + \sigma\, dB$, exact on the grid."""

    positive: ClassVar[tuple[str, ...]] = ("horizon", "volatility")
    volatility: float = 0.2

    def simulate(self, paths, *, key, dtype):
        dt = self.horizon / self.steps
        noise = jr.normal(key, (paths, self.steps), dtype)
        brackets = jnp.full_like(noise, self.volatility**2 * dt)
        return _starting_at_zero(jnp.sqrt(brackets) * noise - brackets / 2), brackets


@dataclasses.dataclass(frozen=True)
class Bergomi(AbstractLaw):
    r"""One-factor Bergomi:
    $v_t = \xi \exp(\eta X_t - \frac12 \eta^2 \mathrm{Var} X_t)$,
    $dX = -\kappa X dt + dW$, $d\langle W, B \rangle = \rho\, dt$.

    The factor is exact on the grid, the log-price a left-point sum. `E v_t = xi`.
    """

    positive: ClassVar[tuple[str, ...]] = ("horizon", "xi", "kappa")
    xi: float = 0.04
    eta: float = 1.5
    kappa: float = 2.0
    rho: float = -0.7

    def simulate(self, paths, *, key, dtype):
        dt = self.horizon / self.steps
        first, second, third = jr.split(key, 3)
        dw = dt**0.5 * jr.normal(first, (paths, self.steps), dtype)
        # (dW, int exp(-kappa (dt - s)) dW) jointly; then the factor is a weighted sum.
        cross = -np.expm1(-self.kappa * dt) / self.kappa
        square = -np.expm1(-2 * self.kappa * dt) / (2 * self.kappa)
        rest = float(np.sqrt(max(square - cross**2 / dt, 0.0)))
        kick = float(cross / dt) * dw + rest * jr.normal(second, dw.shape, dtype)
        table = decay_table(np.exp(-self.kappa * dt * np.arange(self.steps)))
        factor = jnp.pad((kick @ jnp.asarray(table, dtype))[:, :-1], [(0, 0), (1, 0)])
        t = self.times()[:-1]
        compensator = self.eta**2 * -np.expm1(-2 * self.kappa * t) / (4 * self.kappa)
        variance = self.xi * jnp.exp(
            self.eta * factor - jnp.asarray(compensator, dtype)[None]
        )
        return _left_point_price(third, variance, dw, self.rho, dt)


@dataclasses.dataclass(frozen=True)
class RoughBergomi(AbstractLaw):
    r"""Rough Bergomi: $v_t = \xi \exp(\eta Y_t - \frac12 \eta^2 t^{2H})$,
    $Y_t = \sqrt{2H} \int_0^t (t-s)^{H-1/2} dW_s$, $d\langle W, B \rangle = \rho\, dt$,
    $d \log S = \sqrt{v}\, dB - \frac12 v\, dt$.

    The Volterra process by the hybrid scheme ([`arborax.riemann_liouville`][]), the
    log-price a left-point sum, so that `S` is a martingale and `E v_t = xi` on the
    grid. Defaults are those of the published experiment.

    ??? cite "Reference"

        Bayer, Friz, Gatheral, "Pricing under rough volatility", 2016; McCrickerd,
        Pakkanen, "Turbocharging Monte Carlo pricing for the rough Bergomi model", 2018.
    """

    positive: ClassVar[tuple[str, ...]] = ("horizon", "xi")
    hurst: float = 0.25
    xi: float = 0.04
    eta: float = 1.991
    rho: float = -0.848

    def simulate(self, paths, *, key, dtype):
        first, second = jr.split(key)
        dt = self.horizon / self.steps
        y, dw = riemann_liouville(
            self.steps,
            self.hurst,
            horizon=self.horizon,
            shape=(paths,),
            dtype=dtype,
            key=first,
        )
        t = self.times()[:-1]
        compensator = jnp.asarray(self.eta**2 / 2 * t ** (2 * self.hurst), dtype)
        variance = self.xi * jnp.exp(self.eta * y[:, :-1, 0] - compensator[None])
        return _left_point_price(second, variance, dw[..., 0], self.rho, dt)

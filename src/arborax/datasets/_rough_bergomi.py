"""Log-prices under rough volatility."""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
import jax.random as jr

from ..paths import riemann_liouville
from ._law import AbstractLaw


@dataclasses.dataclass(frozen=True)
class RoughBergomi(AbstractLaw):
    r"""Rough Bergomi: $v_t = \xi \exp(\eta Y_t - \frac12 \eta^2 t^{2H})$,
    $Y_t = \sqrt{2H} \int_0^t (t-s)^{H-1/2} dW_s$, $d\langle W, B \rangle = \rho\, dt$,
    $d \log S = \sqrt{v}\, dB - \frac12 v\, dt$.

    The Volterra process by the hybrid scheme ([`arborax.riemann_liouville`][]), the
    log-price a left-point sum, so that `S` is a martingale and `E v_t = xi` on the
    grid. Defaults are those of the published experiment. `eta=0` is the model of Black
    and Scholes with volatility $\sqrt{\xi}$, exact on the grid.

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
        other = dt**0.5 * jr.normal(second, variance.shape, dtype)
        db = self.rho * dw[..., 0] + (1 - self.rho**2) ** 0.5 * other
        brackets = variance * dt
        steps = jnp.sqrt(variance) * db - brackets / 2
        return jnp.pad(jnp.cumsum(steps, axis=1), [(0, 0), (1, 0)]), brackets

"""The square-root diffusion (CIR, Heston) as a driver."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from .._inputs import as_key, as_number, as_shape
from .._values import refuse
from .._xla import scan
from ._brownian import grid_steps


# Andersen's switch between his two laws; both match two moments between 1 and 2.
_SWITCH = 1.5


class SquareRootDriver(NamedTuple):
    """A square-root variance and the martingale it drives.

    - `variance`: $v$ at the times, `(*shape, times)`, not negative.
    - `values`: $Z = \\int \\sqrt{v}\\, dB$ at the times, `(*shape, times, 1)`.
    - `brackets`: $\\int v\\,dt$ over each step, `(*shape, times - 1, 1, 1)`.
    """

    variance: Float[Array, "*shape times"]
    values: Float[Array, "*shape times 1"]
    brackets: Float[Array, "*shape steps 1 1"]


def square_root_driver(
    ts: ArrayLike,
    v0: Any,
    *,
    kappa: Any,
    theta: Any,
    sigma: Any,
    rho: Any = 0.0,
    shape: tuple[int, ...] | int = (),
    key: PRNGKeyArray,
    dtype: Any = None,
) -> SquareRootDriver:
    r"""The variance $dv = \kappa (\theta - v)\,dt + \sigma \sqrt{v}\,dB^v$, and
    $dZ = \sqrt{v}\,dB$ with $d\langle B, B^v\rangle = \rho\,dt$: the driver of Heston.

    The square root is not smooth at zero, where no scheme for smooth coefficients keeps
    its order: values below zero appear, and the derivative of the root has no bound.
    Here the variance is drawn by Andersen's quadratic-exponential scheme: never
    negative, with exact conditional mean and variance for each step, whether or not
    $2\kappa\theta > \sigma^2$ (Feller). An equation driven by $Z$ then has smooth
    fields, and the square root stays in the driver: $dS = S\,dZ$ is the price of the
    Heston model, with the integrated variance as Itô bracket.

    !!! example

        ```python
        x = abx.square_root_driver(
            ts, 0.04, kappa=0.5, theta=0.04, sigma=1.0, rho=-0.9, key=key
        )
        control = abx.rough_path(ts, x.values, abx.Ito(1, 2), brackets=x.brackets)
        price = abx.solve(lambda y: y[None], jnp.array([100.0]), control)
        ```

    Over a step, $\int v\,dt$ is the mean of both ends times $h$, and
    $\int \sqrt v\,dB^v$ follows from the equation; the bias is of order $h^2$.
    Derivatives along fixed noise do not see the switch between the two laws of the
    scheme.

    **Arguments:**

    - `ts`: `(times,)`, strictly increasing.
    - `v0`, `kappa`, `theta`, `sigma`, `rho`: initial variance, rate and level of mean
        reversion, volatility of variance, correlation; numbers, traced or not.
    - `shape`: batch shape, or a number of paths.
    - `key`: a JAX random key.
    - `dtype`: floating dtype of the result. `None`: that of `ts`.

    **Returns:**

    A [`arborax.SquareRootDriver`][]. Cost per step: one normal and one uniform number.

    ??? cite "Reference"

        L. Andersen, Simple and efficient simulation of the Heston stochastic volatility
        model, Journal of Computational Finance 11 (2008).
    """
    key, shape = as_key(key), as_shape("shape", shape)
    steps = grid_steps(ts, dtype)
    dtype = steps.dtype

    def number(name, value, least=0.0, above=True):
        return jnp.asarray(as_number(name, value, least, above=above), dtype)

    v0, kappa = number("v0", v0, above=False), number("kappa", kappa)
    theta, sigma = number("theta", theta), number("sigma", sigma)
    rho = number("rho", rho, -math.inf, above=False)
    rho = refuse(rho, ~(abs(rho) <= 1), "`rho` must lie between -1 and 1.")
    first, second = jr.split(key)
    count = steps.shape[0]
    normal = jr.normal(first, (count, *shape), dtype)
    tiny = float(jnp.finfo(dtype).eps)
    uniform = jr.uniform(second, (count, *shape), dtype, tiny, 1.0)

    def body(v, row):
        h, u = row
        after = _quadratic_exponential(v, h, u, kappa, theta, sigma)
        return after, after

    start = jnp.broadcast_to(v0, shape)
    _, rest = scan(body, start, (steps, uniform))
    variance = jnp.concatenate([start[None], rest])
    h = steps.reshape(-1, *(1,) * len(shape))
    total = h * (variance[:-1] + variance[1:]) / 2
    along = (jnp.diff(variance, axis=0) - kappa * (theta * h - total)) / sigma
    # Where both ends are zero the derivative of the root would be infinite.
    root = jnp.sqrt(jnp.where(total > 0, total, jnp.ones_like(total)))
    root = jnp.where(total > 0, root, jnp.zeros_like(total))
    across = jnp.sqrt(1 - rho**2) * root * normal
    dz = jnp.moveaxis(rho * along + across, 0, -1)[..., None]
    start = jnp.zeros((*shape, 1, 1), dtype)
    values = jnp.concatenate([start, jnp.cumsum(dz, axis=-2)], axis=-2)
    brackets = jnp.moveaxis(total, 0, -1)[..., None, None]
    return SquareRootDriver(jnp.moveaxis(variance, 0, -1), values, brackets)


def _quadratic_exponential(v, h, u, kappa, theta, sigma) -> Array:
    """The variance after a step, from a uniform number: a scaled square of a shifted
    normal where the variance is large, a mass at zero with an exponential tail where it
    is small."""
    decay = jnp.exp(-kappa * h)
    mean = theta + (v - theta) * decay
    spread = sigma**2 / kappa * (1 - decay)
    second = spread * (v * decay + theta / 2 * (1 - decay))
    ratio = second / mean**2
    large = ratio <= _SWITCH
    # Each law sees only its own ratios, so that no derivative is infinite.
    one = jnp.where(large, ratio, jnp.ones_like(ratio))
    b2 = 2 / one - 1 + jnp.sqrt(2 / one * (2 / one - 1))
    z = jax.scipy.special.ndtri(jnp.where(large, u, jnp.full_like(u, 0.5)))
    quadratic = mean / (1 + b2) * (jnp.sqrt(b2) + z) ** 2
    other = jnp.where(large, jnp.full_like(ratio, 2.0), ratio)
    zero = (other - 1) / (other + 1)
    tail = jnp.log((1 - zero) / (1 - jnp.where(u > zero, u, zero)))
    exponential = mean * (1 + other) / 2 * tail
    return jnp.where(large, quadratic, exponential)

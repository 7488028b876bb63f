"""Brownian increments with their Lévy areas, drawn without a fine grid."""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from .._inputs import as_choice, as_count, as_key, as_shape
from .._xla import barrier
from ._brownian import grid_steps


# The rate of the exponentials in Foster's law, their shift, and the share of areas
# whose factor is uniform; the others take a sign.
_RATE = 15 / 8
_SHIFT = 1 / math.sqrt(3) - 1 / _RATE
_UNIFORM = 21130 / 25621


class BrownianSteps(NamedTuple):
    """Brownian motion over each step of a grid.

    - `increments`: $W$, shape `(*shape, steps, dim)`.
    - `space_time`: the space-time Lévy area $H = \\frac1h \\int (W_u - \\frac uh W)\\,
        du$, same shape.
    - `areas`: $A_{ij} = \\frac12 \\int W_i\\,dW_j - W_j\\,dW_i$ for the pairs `i < j`
        in the order of `np.triu_indices(dim, 1)`, shape
        `(*shape, steps, dim (dim - 1) / 2)`.
    """

    increments: Float[Array, "*shape steps dim"]
    space_time: Float[Array, "*shape steps dim"]
    areas: Float[Array, "*shape steps pairs"]


def brownian_areas(
    ts: ArrayLike,
    dim: int,
    shape: tuple[int, ...] | int = (),
    *,
    key: PRNGKeyArray,
    method: str | None = "foster",
    dtype: Any = None,
) -> BrownianSteps:
    r"""Increments and Lévy areas of Brownian motion over each step, without a fine
    grid.

    Over a step of length $h$, $A_{ij} = H_i W_j - W_i H_j + b_{ij}$, where $W$ and $H$
    are independent and Gaussian with variances $h$ and $h/12$, so they are drawn
    exactly. The bridge area $b$ has no simple law and is drawn from an approximation:

    - `"davie"`: Gaussian, independent, with the variance $h^2/12$ of $b_{ij}$. Second
      moments of $(W, H, A)$ are exact; $E A_{ij}^4$ is $0.867$ of its true value.
    - `"foster"`: $b_{ij} = 12 (K_i H_j - H_i K_j) + \xi_{ij} \sigma_{ij}$ with the
      Gaussian third coefficient $K$ of variance $h/720$, $\xi_{ij}$ of mean 0 and
      variance 1, and
      $\sigma_{ij}^2 = \frac{3}{28} h^2 (C_i + c)(C_j + c) + \frac{144}{28} h (K_i^2 +
      K_j^2)$, $C_i$ exponential. Conditional variances given $W, H, K$ are exact, and
      so are $E A_{ij}^4$ and $E A_{ij}^2 A_{ik}^2$.
    - `None`: only increments are drawn; `space_time` and `areas` are zero. This is
      enough for noise that commutes; otherwise strong order 1 is lost.

    `"davie"` and `"foster"` are approximations in law. Solutions have order 1 in the
    Wasserstein distance of Davie and Foster, and order 1 path by path with respect to a
    driver of that law. They do not follow a given Brownian path: for that, use
    [`arborax.rough_path`][] on its fine grid.

    **Arguments:**

    - `ts`: `(times,)`, strictly increasing; one step between successive times.
    - `dim`: number of independent components.
    - `shape`: batch shape, or a number of paths.
    - `key`: a JAX random key, e.g. `jax.random.key(0)`.
    - `method`: `"foster"`, `"davie"` or `None`.
    - `dtype`: floating dtype of the result. `None`: that of `ts`.

    **Returns:**

    A [`arborax.BrownianSteps`][]; [`arborax.rough_path_from_areas`][] turns it into a
    control. Cost per step: $3 d$ normal, $d$ exponential and $d(d-1)/2$ uniform numbers
    for `"foster"`, $2 d + d(d-1)/2$ normal ones for `"davie"`.

    ??? cite "Reference"

        A. M. Davie, KMT theory applied to approximations of SDE, in: Stochastic
        Analysis and Applications (2014). J. Foster, Numerical approximations for
        stochastic differential equations, PhD thesis, Oxford (2020), chapter 7. J.
        Foster, T. Lyons, H. Oberhauser, An optimal polynomial approximation of Brownian
        motion, SIAM Journal on Numerical Analysis 58 (2020).
    """
    key, shape, dim = as_key(key), as_shape("shape", shape), as_count("dim", dim)
    method = as_choice("method", method, ("foster", "davie", None))
    h = grid_steps(ts, dtype)
    h = h.reshape((1,) * len(shape) + (-1, 1))
    dtype, root = h.dtype, jnp.sqrt(h)
    pairs, steps = dim * (dim - 1) // 2, h.shape[-2]
    noise, rest = jr.split(key)
    count = 1 if method is None else 3 if method == "foster" and pairs else 2
    normal = jr.normal(noise, (count, *shape, steps, dim), dtype)
    if pairs and method:
        normal = barrier(normal)  # areas use each number several times
    w = normal[0]
    bridge = jnp.zeros_like(w) if method is None else normal[1] / math.sqrt(12)
    if not (pairs and method):
        areas = jnp.zeros((*shape, steps, pairs), dtype)
        return BrownianSteps(root * w, root * bridge, areas)
    areas = _wedge(bridge, w)
    if method == "davie":
        own = jr.normal(rest, (*shape, steps, pairs), dtype) / math.sqrt(12)
    else:
        own = _moment_matched(rest, bridge, normal[2] / math.sqrt(720))
    return BrownianSteps(root * w, root * bridge, h * (areas + own))


def _wedge(x: Array, y: Array) -> Array:
    """`x_i y_j - y_i x_j` for `i < j`."""
    i, j = np.triu_indices(x.shape[-1], 1)
    return x[..., i] * y[..., j] - y[..., i] * x[..., j]


def _moment_matched(key: PRNGKeyArray, bridge: Array, arch: Array) -> Array:
    """Foster's bridge areas over unit time, from $H$ and $K$."""
    i, j = np.triu_indices(bridge.shape[-1], 1)
    scales, factors = jr.split(key)
    c = jr.exponential(scales, bridge.shape, bridge.dtype) / _RATE + _SHIFT
    square = arch * arch
    variance = 3 / 28 * c[..., i] * c[..., j]
    variance = variance + 144 / 28 * (square[..., i] + square[..., j])
    u = jr.uniform(factors, variance.shape, bridge.dtype, -1.0, 1.0)
    uniform = math.sqrt(3) / _UNIFORM * u
    factor = jnp.where(jnp.abs(u) < _UNIFORM, uniform, jnp.sign(u))
    return 12 * _wedge(arch, bridge) + factor * jnp.sqrt(variance)

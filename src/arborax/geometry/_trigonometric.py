r"""Trigonometric functions of a *squared* angle, smooth through zero.

Closed-form exponentials need $\sin\theta/\theta$, $(1-\cos\theta)/\theta^2$ and so on.
As functions of $t = \theta^2$ they are entire, negative $t$ giving the hyperbolic ones,
so that no square root is differentiated at zero: derivatives of every order are finite.
"""

import dataclasses
import functools as ft
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._xla import barrier, Function


_SERIES_TERMS = 11
_SERIES_RADIUS = 1.0


def forward_only(f: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """`f`, a function of a few numbers, with derivatives that reverse mode reads off.

    The Jacobian is computed beside the value, in forward mode, so reverse mode neither
    runs through `f` backwards nor stores what happens inside, and `f` may hold loops of
    dynamic length. The Jacobian is such a function again: derivatives of every order.
    """
    return lambda x: _ForwardOnly(f)(x)[0]


@dataclasses.dataclass(frozen=True)
class _ForwardOnly(Function):
    f: Callable[[Array], Array]

    def value(self, x):
        return [barrier(self.f(x))]

    def jvp(self, primals, tangents):
        (x,), (dx,) = primals, tangents
        value, *partials = _ForwardOnly(_WithJacobian(self.f))(x)[0]
        tangent = ft.reduce(jnp.add, [d * dx[k] for k, d in enumerate(partials)])
        return [barrier(value)], [barrier(tangent)]


@dataclasses.dataclass(frozen=True)
class _WithJacobian:
    """The value of `f` and its partial derivatives, stacked."""

    f: Callable[[Array], Array]

    def __call__(self, x: Array) -> Array:
        tangents = jnp.eye(x.size, dtype=x.dtype)
        push = jax.vmap(lambda u: jax.jvp(self.f, (x,), (u,)), out_axes=(None, 0))
        value, partials = push(tangents)
        return jnp.concatenate([value[None], partials])


def _horner(coefficients: list[float], t: Array) -> Array:
    value = jnp.full_like(t, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        value = value * t + jnp.asarray(c, t.dtype)
    return value


def stumpff(t: Float[Array, ""]) -> tuple[Float[Array, ""], ...]:
    r"""Stumpff functions $c_k(t) = \sum_j (-t)^j / (k+2j)!$ for $k = 0, \dots, 4$.

    With $t = \theta^2$: $\cos\theta$, $\sin\theta/\theta$, $(1-\cos\theta)/\theta^2$,
    $(\theta-\sin\theta)/\theta^3$, $(\theta^2/2-1+\cos\theta)/\theta^4$; with
    $t = -\theta^2$ the hyperbolic ones. Series for $|t| < 1$, closed form
    elsewhere; unused functions cost nothing under `jit`.
    """
    small = jnp.abs(t) < _SERIES_RADIUS
    tiny = jnp.where(small, t, 0)
    large = jnp.where(small, 1, t)
    positive = large > 0
    theta = jnp.sqrt(jnp.abs(large))
    # Half angles: 1 - cos(theta) without cancellation, and cos**2 + sin**2 = 1 kept.
    half = theta / 2
    up = jnp.where(positive, 0, half)
    sine, cosine = jnp.sin(half), jnp.cos(half)
    sinh, cosh = jnp.sinh(up), jnp.cosh(up)
    c1 = jnp.where(positive, 2 * sine * cosine, 2 * sinh * cosh) / theta
    versine = jnp.where(positive, 2 * sine * sine, -2 * sinh * sinh)
    c2 = versine / large
    closed = [1 - versine, c1, c2, (1 - c1) / large, (0.5 - c2) / large]

    def series(k: int) -> Array:
        terms = range(_SERIES_TERMS)
        return _horner([(-1) ** j / math.factorial(k + 2 * j) for j in terms], tiny)

    return tuple(jnp.where(small, series(k), c) for k, c in enumerate(closed))


def angle_over_sine(s2: Float[Array, ""], c: Float[Array, ""]) -> Float[Array, ""]:
    r"""$\theta / s$ for the angle $\theta = \mathrm{atan2}(s, c) \in [0, \pi)$, $s =
    \sqrt{s_2}$.

    Smooth in `s2` through zero while $c > 0$; homogeneous, so `(s, c)` need not be
    normalised.
    """
    small = (s2 < 0.04 * c * c) & (c > 0)
    positive = jnp.where(small, c, 1)
    x = jnp.where(small, s2, 0) / (positive * positive)
    series = _horner([(-1) ** j / (2 * j + 1) for j in range(13)], x) / positive
    s = jnp.sqrt(jnp.where(small, 1, s2))
    return jnp.where(small, series, jnp.arctan2(s, c) / s)


def asinh_over_sinh(s2: Float[Array, ""]) -> Float[Array, ""]:
    r"""$\mathrm{asinh}(s)/s$ with $s = \sqrt{s_2}$, smooth in `s2` through zero."""
    small = s2 < 0.04
    tiny = jnp.where(small, s2, 0)
    coefficients = [
        (-1) ** j * math.comb(2 * j, j) / (4**j * (2 * j + 1)) for j in range(13)
    ]
    s = jnp.sqrt(jnp.where(small, 1, s2))
    return jnp.where(small, _horner(coefficients, tiny), jnp.arcsinh(s) / s)


def safe_norm(u: Float[Array, "..."]) -> Float[Array, ""]:
    """Euclidean norm of all entries, with the derivative zero (not NaN) at zero."""
    s2 = jnp.sum(u * u)
    zero = s2 == 0
    return jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, s2)))

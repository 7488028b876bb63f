"""Quadratic forms of rows of numbers, and their derivatives.

With symmetric coefficients, the value needs the products of the coefficients with the
rows on one side; twice these are the derivative along the rows. The derivative along
the coefficients takes each product of two rows once, not in both orders.
"""

import functools as ft

import jax.lax as lax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._barrier import barrier
from ._derivatives import custom_jvp
from ._einsum import scale, small_product
from ._switch import uses


_PACKED = 8  # rows up to which each product of two is taken once


def _pack(pairs: Float[Array, "p p channels"]) -> Float[Array, "squares channels"]:
    """Coefficients of the rows of `_squares`."""
    m = pairs.shape[0]
    if m > _PACKED:
        return pairs.reshape(m * m, -1)
    rows = lax.split(pairs.reshape(m * m, -1), (1,) * (m * m))
    packed = []
    for p in range(m):
        packed.append(rows[p * m + p])
        packed += [rows[p * m + q] + rows[q * m + p] for q in range(p + 1, m)]
    return jnp.concatenate(packed)


def _squares(a: Float[Array, "p width"]) -> Float[Array, "squares width"]:
    """All `a[p] a[q]`, of a few rows those with `p <= q`."""
    m = a.shape[0]
    if m > _PACKED:
        return (a[:, None] * a[None]).reshape(m * m, -1)
    return jnp.concatenate([a[p : p + 1] * a[p:] for p in range(m)])


def _half(pairs: Array, a: Array) -> Float[Array, "rows width"]:
    """The sum over `q` of `pairs[p, q, k] a[q]`, a row for each `p` and `k`."""
    m, _, d = pairs.shape
    pairs = barrier(pairs)
    return small_product(jnp.swapaxes(pairs, 1, 2).reshape(m * d, m), a)


def _close(a: Array, halves: Array) -> Float[Array, "channels width"]:
    """The sum over `p` of `a[p]` times row `p` and `k`."""
    m = a.shape[0]
    sizes = (halves.shape[0] // m,) * m
    parts = zip(lax.split(a, (1,) * m), lax.split(halves, sizes))
    return ft.reduce(jnp.add, [scale(one, other) for one, other in parts])


def quadratic(
    pairs: Float[Array, "p p channels"], a: Float[Array, "p width"]
) -> Float[Array, "channels width"]:
    """The sum over `p` and `q` of `pairs[p, q, k] a[p] a[q]`. It takes some `p^2 *
    channels * width` multiplications, its gradient half as many on top (as many for
    more than eight rows)."""
    if uses("quadratic"):
        return _quadratic(pairs, a)
    return jnp.einsum("pqk,pn,qn->kn", pairs, a, a)


@custom_jvp
def _quadratic(pairs, a):
    return _close(a, _half(pairs, a))


@_quadratic.defjvp
def _jvp(primals, tangents):
    (pairs, a), (dpairs, da) = primals, tangents
    twice = _half(pairs + jnp.swapaxes(pairs, 0, 1), a)
    change = small_product(barrier(_pack(dpairs)).T, _squares(a))
    return _close(a, twice) / 2, _close(da, twice) + change

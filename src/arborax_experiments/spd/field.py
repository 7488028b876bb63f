"""Vector fields on the cone that read their state in logarithmic coordinates."""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from arborax.geometry import cholesky
from arborax.models import activate, lipswish, MLP


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
    r"""Fields $a \tanh(u(z) / a)$ of the logarithmic coordinates $z$ of a point, as
    `(channels, dim)`, with $u = b + A z + \mathrm{MLP}(z)$ for the first channel, time,
    and $u = b + \mathrm{MLP}(z)$ for the others, noise.

    Training begins with a Brownian motion of the frame: the field of time is zero, each
    of the others half of one frame vector. A pull towards a point is linear in $z$ to
    first order, so that $A$ learns it fast. Noise that is linear in $z$ makes heavy
    tails fast, so it has no such part.

    With a `reach` $R$ the fields of the noise are divided by $1 + (|z| / R)^4$: noise
    fades far from the identity, the drift does not. A matrix whose condition number
    nears the inverse of the rounding unit (1e7 in single precision) has no Cholesky
    factor, and fields that grow with the point carry a few paths there.

    **Arguments:**

    - `channels`, `dim`: of the driver, time first, and of the frame.
    - `width`, `depth`: of the MLP.
    - `amplitude`: the bound $a$ of the fields.
    - `reach`: $R$; zero: noise does not fade.
    - `dtype`: of the weights.
    - `key`: a JAX random key.
    """

    mlp: MLP
    linear: Float[Array, "dim k"]
    amplitude: float = eqx.field(static=True)
    reach: float = eqx.field(static=True)

    def __init__(
        self,
        channels: int,
        dim: int,
        width: int,
        depth: int,
        *,
        amplitude: float = 1.0,
        reach: float = 0.0,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        self.amplitude = amplitude
        self.reach = reach
        mlp = MLP(
            dim,
            channels * dim,
            width,
            depth,
            activation=lipswish,
            dtype=dtype,
            key=key,
        )
        start = np.zeros((channels, dim))
        start[np.arange(1, channels), np.arange(channels - 1) % dim] = (
            amplitude * math.atanh(0.5 / amplitude)
        )
        last = mlp.layers[-1]
        self.mlp = eqx.tree_at(
            lambda m: (m.layers[-1].weight, m.layers[-1].bias),
            mlp,
            (jnp.zeros_like(last.weight), jnp.asarray(start.ravel(), dtype)),
        )
        self.linear = jnp.zeros((dim, dim), dtype)

    def __call__(self, y: Float[Array, "n n"]) -> Float[Array, "channels dim"]:
        z = log_cholesky(y)
        u = self.mlp.preactivation(z).reshape(-1, self.linear.shape[0])
        time = (jnp.arange(u.shape[0]) == 0)[:, None]
        u = jnp.where(time, (self.linear @ z)[None], 0) + u
        fields = self.amplitude * activate(jnp.tanh, u / self.amplitude)
        if not self.reach:
            return fields
        far = jnp.square(jnp.sum(jnp.square(z)) / self.reach**2)
        return fields * jnp.where(time, 1, 1 / (1 + far))

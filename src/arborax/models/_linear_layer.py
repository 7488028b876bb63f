"""One linear equation driven by log-signatures, with a gated output."""

import math
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from ..algebra import AbstractHopfAlgebra
from ..lifts import Blocks, lift_matrices, window_matrices
from ..solvers import run_flows


_SCALE = 0.1  # of the matrices at the start


class LinearLayer(eqx.Module):
    r"""$dY = \sum_i (A_i Y + b_i)\, dX^i$, and features of its states.

    The matrices begin as small infinitesimal rotations: in Stratonovich calculus their
    flows keep the length of a state, however many there are; if `damped`, those of Itô
    calculus shrink it. With a `rank` they are
    $D_i + L_i R_i^\top$; of `matrices` the first column is then the diagonal $D_i$, and
    offsets follow.
    """

    matrices: Float[Array, "channels size columns blocks"]
    factors: Float[Array, "2 channels size rank"] | None
    initial: eqx.nn.Linear
    norm: eqx.nn.RMSNorm | None
    gate: eqx.nn.Linear | None
    alg: AbstractHopfAlgebra = eqx.field(static=True)
    blocks: Blocks = eqx.field(static=True)
    contractive: bool = eqx.field(static=True)
    damped: bool = eqx.field(static=True)

    def __init__(
        self,
        alg: AbstractHopfAlgebra,
        blocks: Blocks,
        *,
        rank: int,
        normalise: bool,
        gated: bool,
        contractive: bool,
        damped: bool,
        dtype: Any,
        key: PRNGKeyArray,
    ):
        first, second, third, fourth = jr.split(key, 4)
        hidden = blocks.size * blocks.count
        self.alg, self.blocks = alg, blocks
        self.contractive, self.damped = contractive, damped
        self.factors = None
        if rank:
            scale = math.sqrt(_SCALE / (rank * hidden))
            shape = (2, alg.dim, hidden, rank)
            self.factors = scale * jr.normal(first, shape, dtype)
            matrices = jnp.zeros((alg.dim, hidden, 1, 1), dtype)
        else:
            matrices = _small_rotations(blocks, alg.dim, first, dtype)
        if blocks.affine:
            shape = (alg.dim, blocks.size, 1, blocks.count)
            offsets = jr.normal(second, shape, matrices.dtype) / math.sqrt(alg.dim)
            matrices = jnp.concatenate([matrices, offsets], axis=2)
        self.matrices = matrices
        self.initial = eqx.nn.Linear(alg.dim, hidden, dtype=dtype, key=third)
        self.norm = self.gate = None
        if normalise:
            self.norm = eqx.nn.RMSNorm(hidden, dtype=dtype)
        if gated:
            self.gate = eqx.nn.Linear(hidden, 2 * hidden, dtype=dtype, key=fourth)

    def full_matrices(self) -> Float[Array, "channels size columns blocks"]:
        """The matrices and offsets, as blocks store them."""
        if self.factors is None:
            return self.matrices
        left, right = self.factors
        low = jnp.einsum("dir,djr->dij", left, right)[..., None]
        eye = jnp.eye(low.shape[1], dtype=low.dtype)[None, :, :, None]
        diagonal = self.matrices[:, :, :1] * eye
        return jnp.concatenate([low + diagonal, self.matrices[:, :, 1:]], axis=2)

    def start(self, x: Float[Array, " channels"]) -> Float[Array, "size blocks"]:
        """The initial state, from the first value of the driver."""
        return self.initial(x).reshape(self.blocks.size, self.blocks.count)

    def flows(
        self, lams: Float[Array, "*batch primitives"]
    ) -> Float[Array, "*batch size columns blocks"]:
        """The flows of log-signatures."""
        lifted = lift_matrices(self.full_matrices(), self.alg, self.blocks, self.damped)
        omega = window_matrices(lams, lifted)
        if self.contractive:
            omega = self.blocks.contract(omega)
        return self.blocks.exponential(omega)

    def states(
        self,
        y0: Float[Array, "size blocks"],
        flows: Float[Array, "windows points size columns blocks"],
        mode: Literal["scan", "associative"] | None,
    ) -> Float[Array, "windows points size blocks"]:
        """States at the points of all windows, from the flows up to these."""
        knots = run_flows(self.blocks, flows[:, -1], y0, mode)
        if flows.shape[1] == 1:
            return knots[1:, None]
        inner = self.blocks.act(flows[:, :-1], knots[:-1, None])
        return jnp.concatenate([inner, knots[1:, None]], axis=1)

    def features(
        self, y: Float[Array, "*batch size blocks"]
    ) -> Float[Array, "*batch hidden"]:
        """Normalised and gated states."""
        lead = y.shape[:-2]
        y = y.reshape(math.prod(lead), self.blocks.size * self.blocks.count)
        if self.norm is not None:
            y = jax.vmap(self.norm)(y)
        if self.gate is not None:
            value, gate = jnp.split(jax.vmap(self.gate)(y), 2, axis=-1)
            y = value * jax.nn.sigmoid(gate)
        return y.reshape(*lead, -1)


def _small_rotations(
    blocks: Blocks, channels: int, key: PRNGKeyArray, dtype: Any
) -> Float[Array, "channels size columns blocks"]:
    """Skew matrices, of norm about `_SCALE`."""
    size, count = blocks.size, blocks.count
    scale = _SCALE / math.sqrt(max(size - 1, 1))
    if blocks.rotation:
        angles = scale * jr.normal(key, (channels, 1, 1, count), dtype)
        return jnp.concatenate([jnp.zeros_like(angles), angles], axis=1)
    if size == 1:
        return scale * jr.normal(key, (channels, 1, 1, count), dtype)
    full = jr.normal(key, (channels, size, size, count), dtype)
    return scale * math.sqrt(0.5) * (full - jnp.swapaxes(full, 1, 2))

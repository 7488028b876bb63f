"""xLSTM: one block or a stack of them."""

from typing import Any

import equinox as eqx
import jax
import jax.random as jr
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray, PyTree

from ..geometry import AbstractGeometry
from ..paths import SampledPath
from ._base import AbstractCausalModel
from ._checks import as_output, as_sample, as_sizes, check_options, finite
from ._xlstm_block import XLSTMBlock


class XLSTM(AbstractCausalModel):
    """xLSTM blocks with matrix memory (mLSTM) between linear maps.

    The memory is computed in chunks: linear in the length, parallel within a chunk.

    ??? cite "Reference"

        M. Beck, K. Pöppel, M. Spanring, A. Auer, O. Prudnikova, M. Kopp, G. Klambauer,
        J. Brandstetter, S. Hochreiter, xLSTM: extended long short-term memory, NeurIPS
        2024.
    """

    output: AbstractGeometry = eqx.field(static=True)
    embed: eqx.nn.Linear
    blocks: tuple[XLSTMBlock, ...]
    norm: eqx.nn.LayerNorm
    readout: eqx.nn.Linear
    channels: int = eqx.field(static=True)
    chunk: int = eqx.field(static=True)

    def __init__(
        self,
        channels: int,
        output: int | AbstractGeometry,
        *,
        layers: int = 1,
        size: int = 32,
        heads: int = 4,
        chunk: int = 64,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `channels`: of the driver, time included.
        - `output`: number of outputs, or their manifold.
        - `layers`: number of blocks, one after another; 4 in the published tables of
            the stacked model.
        - `size`: of the residual stream; the memory is twice as wide.
        - `heads`: number of memories per block.
        - `chunk`: length of a chunk.
        - `dtype`: of the weights.
        - `key`: a JAX random key.
        """
        check_options(key, dtype)
        channels, layers, size, heads, chunk = as_sizes(
            channels=channels, layers=layers, size=size, heads=heads, chunk=chunk
        )
        first, last, *keys = jr.split(key, layers + 2)
        self.output, self.channels, self.chunk = as_output(output), channels, chunk
        self.embed = eqx.nn.Linear(channels, size, dtype=dtype, key=first)
        self.blocks = tuple(
            XLSTMBlock(size, heads, layers, dtype=dtype, key=k) for k in keys
        )
        self.norm = eqx.nn.LayerNorm(size, dtype=dtype)
        self.readout = eqx.nn.Linear(
            size, self.output.vector_size, dtype=dtype, key=last
        )

    def _point(self, x: Float[Array, " size"]) -> PyTree[Array]:
        return self.output.project_vector(self.readout(self.norm(x)))

    def __call__(self, path: SampledPath) -> PyTree[Array]:
        xs = jax.vmap(self.embed)(self.check(path).xs)
        for block in self.blocks:
            xs = block(xs, self.chunk)
        return finite(jax.vmap(self._point)(xs))

    def start(self, t: ArrayLike, x: Float[Array, " channels"]):
        return self.update(tuple(block.start() for block in self.blocks), t, x)

    def update(self, state: PyTree, t: ArrayLike, x: Array, bracket: Any = None):
        x = self.embed(as_sample("x", x, (self.channels,), self))
        new = []
        for block, before in zip(self.blocks, state):
            after, x = block.update(before, x)
            new.append(after)
        return tuple(new), self._point(x)

"""xLSTM: one block, and a stack of four."""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.random as jr
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray, PyTree

from .._inputs import as_choice
from ..geometry import AbstractGeometry
from ..paths import SampledPath
from ._base import AbstractCausalModel
from ._checks import as_output, as_sample, as_sizes, check_options, finite
from ._xlstm_block import XLSTMBlock


_FORMS = ("chunkwise", "parallel", "recurrent")


class AbstractXLSTM(AbstractCausalModel):
    """Linear map, blocks, layer norm, linear map."""

    output: AbstractGeometry = eqx.field(static=True)
    embed: eqx.nn.Linear
    blocks: tuple[XLSTMBlock, ...]
    norm: eqx.nn.LayerNorm
    readout: eqx.nn.Linear
    channels: int = eqx.field(static=True)
    form: str = eqx.field(static=True)
    chunk: int = eqx.field(static=True)

    def __init__(
        self,
        channels: int,
        output: int | AbstractGeometry,
        layers: int,
        *,
        size: int = 32,
        heads: int = 4,
        form: Literal["chunkwise", "parallel", "recurrent"] = "chunkwise",
        chunk: int = 64,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        as_choice("form", form, _FORMS)
        check_options(key, dtype)
        channels, size, heads, layers, chunk = as_sizes(
            channels=channels, size=size, heads=heads, layers=layers, chunk=chunk
        )
        first, last, *keys = jr.split(key, layers + 2)
        self.output, self.channels = as_output(output), channels
        self.embed = eqx.nn.Linear(channels, size, dtype=dtype, key=first)
        self.blocks = tuple(
            XLSTMBlock(size, heads, layers, dtype=dtype, key=k) for k in keys
        )
        self.norm = eqx.nn.LayerNorm(size, dtype=dtype)
        self.readout = eqx.nn.Linear(
            size, self.output.vector_size, dtype=dtype, key=last
        )
        self.form, self.chunk = form, chunk

    def _point(self, x: Float[Array, " size"]) -> PyTree[Array]:
        return self.output.project_vector(self.readout(self.norm(x)))

    def __call__(self, path: SampledPath) -> PyTree[Array]:
        xs = jax.vmap(self.embed)(self.check(path).xs)
        for block in self.blocks:
            xs = block(xs, self.form, self.chunk)
        return finite(jax.vmap(self._point)(xs))

    def start(self, t: ArrayLike, x: Float[Array, " channels"]):
        return self.update(tuple(block.start() for block in self.blocks), t, x)

    def update(
        self,
        state: PyTree,
        t: ArrayLike,
        x: Float[Array, " channels"],
        bracket: Float[Array, "channels channels"] | None = None,
    ) -> tuple[PyTree, PyTree[Array]]:
        x = self.embed(as_sample("x", x, (self.channels,), self))
        new = []
        for block, before in zip(self.blocks, state):
            after, x = block.update(before, x)
            new.append(after)
        return tuple(new), self._point(x)


class XLSTM(AbstractXLSTM):
    """One xLSTM block with matrix memory (mLSTM) between linear maps.

    Three equal forms: `"chunkwise"` (default) is linear in the length and parallel
    within chunks, `"parallel"` has all pairs of samples in memory, `"recurrent"` runs
    sample by sample as a stream does.

    ??? cite "Reference"

        M. Beck, K. Pöppel, M. Spanring, A. Auer, O. Prudnikova, M. Kopp, G. Klambauer,
        J. Brandstetter, S. Hochreiter, xLSTM: extended long short-term memory, NeurIPS
        2024.
    """

    def __init__(self, channels: int, output: int | AbstractGeometry, **options: Any):
        """**Arguments:**

        - `channels`: of the driver, time included.
        - `output`: number of outputs, or their manifold.
        - `size`: of the residual stream, default 32; the memory is twice as wide.
        - `heads`: number of memories, default 4.
        - `form`, `chunk`: how the memory is computed, and the length of a chunk,
            default 64.
        - `dtype`: of the weights.
        - `key`: a JAX random key.
        """
        super().__init__(channels, output, 1, **options)


class StackedXLSTM(AbstractXLSTM):
    """Four (or more) blocks of [`arborax.models.XLSTM`][] one after another."""

    def __init__(
        self,
        channels: int,
        output: int | AbstractGeometry,
        *,
        layers: int = 4,
        **options: Any,
    ):
        """**Arguments:** as [`arborax.models.XLSTM`][], and `layers`, the number of
        blocks."""
        super().__init__(channels, output, layers, **options)

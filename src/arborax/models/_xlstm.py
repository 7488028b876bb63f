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
from ._checks import (
    as_output,
    as_sample,
    check_options,
    check_path,
    finite,
    promoted,
)
from ._xlstm_block import XLSTMBlock


_FORMS = ("chunkwise", "parallel", "recurrent")


class _Stack(eqx.Module):
    """Linear map, blocks, layer norm, linear map."""

    output: AbstractGeometry = eqx.field(static=True)
    embed: eqx.nn.Linear
    blocks: tuple[XLSTMBlock, ...]
    norm: eqx.nn.LayerNorm
    readout: eqx.nn.Linear
    form: str = eqx.field(static=True)
    chunk: int = eqx.field(static=True)

    def __init__(self, channels, output, size, heads, layers, form, chunk, dtype, key):
        as_choice("form", form, _FORMS)
        check_options(
            key,
            dtype,
            channels=channels,
            size=size,
            heads=heads,
            layers=layers,
            chunk=chunk,
        )
        channels, size, heads = int(channels), int(size), int(heads)
        first, last, *keys = jr.split(key, layers + 2)
        self.output = as_output(output)
        self.embed = eqx.nn.Linear(channels, size, dtype=dtype, key=first)
        self.blocks = tuple(
            XLSTMBlock(size, heads, layers, dtype=dtype, key=k) for k in keys
        )
        self.norm = eqx.nn.LayerNorm(size, dtype=dtype)
        self.readout = eqx.nn.Linear(
            size, self.output.vector_size, dtype=dtype, key=last
        )
        self.form, self.chunk = form, chunk

    def point(self, x: Float[Array, " size"]) -> PyTree[Array]:
        return self.output.project_vector(self.readout(self.norm(x)))

    def __call__(self, xs: Float[Array, "times channels"]) -> PyTree[Array]:
        xs = jax.vmap(self.embed)(xs)
        for block in self.blocks:
            xs = block(xs, self.form, self.chunk)
        return jax.vmap(self.point)(xs)

    def update(self, states, x: Float[Array, " channels"]):
        x = self.embed(x)
        new = []
        for block, state in zip(self.blocks, states):
            state, x = block.update(state, x)
            new.append(state)
        return tuple(new), self.point(x)

    def start(self, x: Float[Array, " channels"]):
        return self.update(tuple(block.start() for block in self.blocks), x)


class XLSTM(AbstractCausalModel):
    """One xLSTM block with matrix memory (mLSTM) between linear maps.

    Three equal forms: `"chunkwise"` (default) is linear in the length and parallel
    within chunks, `"parallel"` has all pairs of samples in memory, `"recurrent"` runs
    sample by sample as a stream does.

    ??? cite "Reference"

        M. Beck, K. Pöppel, M. Spanring, A. Auer, O. Prudnikova, M. Kopp, G. Klambauer,
        J. Brandstetter, S. Hochreiter, xLSTM: extended long short-term memory, NeurIPS
        2024.
    """

    stack: _Stack

    def __init__(
        self,
        channels: int,
        output: int | AbstractGeometry,
        *,
        size: int = 32,
        heads: int = 4,
        form: Literal["chunkwise", "parallel", "recurrent"] = "chunkwise",
        chunk: int = 64,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `channels`: of the driver, time included.
        - `output`: number of outputs, or their manifold.
        - `size`: of the residual stream; the memory is twice as wide.
        - `heads`: number of memories.
        - `form`, `chunk`: how the memory is computed, and the length of a chunk.
        - `dtype`: of the weights.
        - `key`: a JAX random key.
        """
        self.stack = _Stack(channels, output, size, heads, 1, form, chunk, dtype, key)

    @property
    def channels(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Channels of the driver, time included."""
        return self.stack.embed.weight.shape[1]

    @property
    def calculus(self) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Brackets are ignored."""
        return None

    def __call__(self, path: SampledPath) -> PyTree[Array]:
        path = promoted(check_path(path, self.channels), self)
        return finite(self.stack(path.xs))

    def start(self, t: ArrayLike, x: Float[Array, " channels"]):
        return self.stack.start(as_sample("x", x, (self.channels,), self))

    def update(
        self,
        state: PyTree,
        t: ArrayLike,
        x: Float[Array, " channels"],
        bracket: Float[Array, "channels channels"] | None = None,
    ) -> tuple[PyTree, PyTree[Array]]:
        return self.stack.update(state, as_sample("x", x, (self.channels,), self))


class StackedXLSTM(AbstractCausalModel):
    """Four (or more) blocks of [`arborax.models.XLSTM`][] one after another."""

    stack: _Stack

    def __init__(
        self,
        channels: int,
        output: int | AbstractGeometry,
        *,
        layers: int = 4,
        size: int = 32,
        heads: int = 4,
        form: Literal["chunkwise", "parallel", "recurrent"] = "chunkwise",
        chunk: int = 64,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:** as [`arborax.models.XLSTM`][], and `layers`, the number of
        blocks."""
        self.stack = _Stack(
            channels, output, size, heads, layers, form, chunk, dtype, key
        )

    @property
    def channels(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Channels of the driver, time included."""
        return self.stack.embed.weight.shape[1]

    @property
    def calculus(self) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Brackets are ignored."""
        return None

    def __call__(self, path: SampledPath) -> PyTree[Array]:
        path = promoted(check_path(path, self.channels), self)
        return finite(self.stack(path.xs))

    def start(self, t: ArrayLike, x: Float[Array, " channels"]):
        return self.stack.start(as_sample("x", x, (self.channels,), self))

    def update(
        self,
        state: PyTree,
        t: ArrayLike,
        x: Float[Array, " channels"],
        bracket: Float[Array, "channels channels"] | None = None,
    ) -> tuple[PyTree, PyTree[Array]]:
        return self.stack.update(state, as_sample("x", x, (self.channels,), self))

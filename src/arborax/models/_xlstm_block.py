"""The residual block of an xLSTM with matrix memory."""

import functools as ft
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from ._mlstm import chunk_step, chunkwise, empty_memory, Memory


_CONV = 4  # width of the causal convolution


def _small(key, shape, fan_in: int, dtype):
    return jr.normal(key, shape, dtype) * (2 / (5 * fan_in)) ** 0.5


def _wang(key, shape, fan_in: int, layers: int, dtype):
    return jr.normal(key, shape, dtype) * 2 / (layers * fan_in**0.5)


class HeadwiseLinear(eqx.Module):
    """An affine map for each head."""

    weight: Float[Array, "heads size size"]
    bias: Float[Array, "heads size"]

    def __call__(self, x: Float[Array, " width"]) -> Float[Array, " width"]:
        heads = x.reshape(self.bias.shape)
        return (jnp.einsum("hij,hj->hi", self.weight, heads) + self.bias).reshape(-1)


class BlockState(NamedTuple):
    """A block between two samples: the last inputs of its convolution, its memories."""

    inputs: Float[Array, "conv width"]
    memory: Memory


class XLSTMBlock(eqx.Module):
    """Pre-norm mLSTM layer and pre-norm gated feed-forward layer, both residual.

    Up-projection to twice `2 size` (one half gates the output); causal depthwise
    convolution of width 4 and SiLU for queries, keys and the skip; queries, keys and
    values by affine maps within each head; gates from all three; group norm by head;
    down-projection. The feed-forward layer is gated by GELU.
    """

    norm: eqx.nn.LayerNorm
    up: Float[Array, "double size"]
    kernel: Float[Array, "conv width"]
    kernel_bias: Float[Array, " width"]
    query: HeadwiseLinear
    key: HeadwiseLinear
    value: HeadwiseLinear
    input_gate: Float[Array, "heads inputs"]
    input_bias: Float[Array, " heads"]
    forget_gate: Float[Array, "heads inputs"]
    forget_bias: Float[Array, " heads"]
    scale: Float[Array, " width"]
    skip: Float[Array, " width"]
    down: Float[Array, "size width"]
    feed_norm: eqx.nn.LayerNorm
    feed_up: Float[Array, "double size"]
    feed_down: Float[Array, "size feed"]
    heads: int = eqx.field(static=True)

    def __init__(
        self,
        size: int,
        heads: int,
        layers: int,
        *,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        dtype = jnp.result_type(float) if dtype is None else dtype
        width = 2 * size
        if width % heads:
            raise ValueError(
                f"the width {width} = 2 * size must be a multiple of heads = {heads}."
            )
        per = width // heads
        feed = -(-(13 * size) // 640) * 64  # 1.3 size, up to a multiple of 64
        keys = jr.split(key, 8)
        self.heads = heads
        self.norm = eqx.nn.LayerNorm(size, use_bias=False, dtype=dtype)
        self.up = _small(keys[0], (2 * width, size), size, dtype)
        bound = _CONV**-0.5
        self.kernel = jr.uniform(keys[1], (_CONV, width), dtype, -bound, bound)
        self.kernel_bias = jnp.zeros((width,), dtype)

        def headwise(key):
            weight = _small(key, (heads, per, per), per, dtype)
            return HeadwiseLinear(weight, jnp.zeros((heads, per), dtype))

        self.query, self.key, self.value = (headwise(k) for k in keys[2:5])
        self.input_gate = jnp.zeros((heads, 3 * width), dtype)
        self.input_bias = jnp.linspace(0, 0.1, heads, dtype=dtype)
        self.forget_gate = jnp.zeros((heads, 3 * width), dtype)
        self.forget_bias = jnp.linspace(3, 6, heads, dtype=dtype)
        self.scale = jnp.ones((width,), dtype)
        self.skip = jnp.ones((width,), dtype)
        self.down = _wang(keys[5], (size, width), width, layers, dtype)
        self.feed_norm = eqx.nn.LayerNorm(size, use_bias=False, dtype=dtype)
        self.feed_up = _small(keys[6], (2 * feed, size), size, dtype)
        self.feed_down = _wang(keys[7], (size, feed), feed, layers, dtype)

    def _project(self, x: Float[Array, " size"]) -> tuple[Array, Array]:
        """The input of the memory, and the gate of its output."""
        inner, gate = jnp.split(self.up @ self.norm(x), 2)
        return inner, gate

    def _attend(self, inner, conv):
        """Queries, keys, values `(heads, per)` and gates `(heads,)` of one sample."""
        q, k, v = self.query(conv), self.key(conv), self.value(inner)
        joint = jnp.concatenate([q, k, v])
        i = self.input_gate @ joint + self.input_bias
        f = self.forget_gate @ joint + self.forget_bias
        shape = (self.heads, -1)
        return q.reshape(shape), k.reshape(shape), v.reshape(shape), i, f

    def _merge(self, x, h, conv, gate) -> Float[Array, " size"]:
        """Output of the block from that of the memory, `(heads, per)`."""
        mean = jnp.mean(h, axis=1, keepdims=True)
        spread = jnp.var(h, axis=1, keepdims=True)
        h = ((h - mean) / jnp.sqrt(spread + 1e-5)).reshape(-1) * self.scale
        x = x + self.down @ ((h + self.skip * conv) * jax.nn.silu(gate))
        g, u = jnp.split(self.feed_up @ self.feed_norm(x), 2)
        return x + self.feed_down @ (jax.nn.gelu(g) * u)

    def __call__(
        self, xs: Float[Array, "times size"], chunk: int
    ) -> Float[Array, "times size"]:
        """The block over a whole series."""
        times = xs.shape[0]
        inner, gate = jax.vmap(self._project)(xs)
        padded = jnp.pad(inner, [(_CONV - 1, 0), (0, 0)])
        taps = [self.kernel[j][None] * padded[j : j + times] for j in range(_CONV)]
        conv = jax.nn.silu(sum(taps) + self.kernel_bias[None])
        run = ft.partial(chunkwise, chunk=chunk)
        attended = jax.vmap(self._attend)(inner, conv)
        h = jax.vmap(run, in_axes=1, out_axes=1)(*attended)
        return jax.vmap(self._merge)(xs, h, conv, gate)

    def start(self) -> BlockState:
        """The state before the first sample."""
        width, dtype = self.scale.shape[0], self.scale.dtype
        memory = empty_memory(width // self.heads, dtype)
        memory = jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf, (self.heads, *leaf.shape)), memory
        )
        return BlockState(jnp.zeros((_CONV, width), dtype), memory)

    def update(
        self, state: BlockState, x: Float[Array, " size"]
    ) -> tuple[BlockState, Float[Array, " size"]]:
        """One sample of a stream."""
        inner, gate = self._project(x)
        inputs = jnp.concatenate([state.inputs[1:], inner[None]])
        conv = jax.nn.silu(jnp.sum(self.kernel * inputs, axis=0) + self.kernel_bias)
        attended = [leaf[:, None] for leaf in self._attend(inner, conv)]
        memory, h = jax.vmap(chunk_step)(state.memory, *attended)
        return BlockState(inputs, memory), self._merge(x, h[:, 0], conv, gate)

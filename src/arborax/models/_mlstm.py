r"""Matrix memory with exponential gates (mLSTM).

With $F_t = \sum_{s \le t} \log \sigma(f_s)$ the memory is the causal linear attention
$h_t \propto \sum_{s \le t} e^{F_t - F_s + i_s} (q_t \cdot k_s / \sqrt{n})\, v_s$,
divided by the larger of one and the modulus of the same sum without $v$. All
exponentials are scaled by the largest of their row, which cancels.

Reference: M. Beck et al., xLSTM: extended long short-term memory, NeurIPS 2024.
"""

from typing import NamedTuple

import jax
import jax.lax as lax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._xla import scan


_EPS = 1e-6
_LOWEST = -1e30  # stands for minus infinity without making NaN in derivatives


class Memory(NamedTuple):
    """The state of one head: matrix, normaliser, and the logarithm of their scale."""

    matrix: Float[Array, "key value"]
    normaliser: Float[Array, " key"]
    scale: Float[Array, ""]


def empty_memory(size: int, dtype) -> Memory:
    """Before the first sample."""
    return Memory(
        jnp.zeros((size, size), dtype),
        jnp.zeros((size,), dtype),
        jnp.asarray(_LOWEST, dtype),
    )


def chunk_step(
    memory: Memory,
    q: Float[Array, "chunk size"],
    k: Float[Array, "chunk size"],
    v: Float[Array, "chunk size"],
    i: Float[Array, " chunk"],
    f: Float[Array, " chunk"],
) -> tuple[Memory, Float[Array, "chunk size"]]:
    """A stretch of samples: attention inside it, the memory for what came before."""
    count = q.shape[0]
    k = k / jnp.sqrt(jnp.asarray(k.shape[-1], k.dtype))
    decay = jnp.cumsum(jax.nn.log_sigmoid(f))
    causal = jnp.tril(jnp.ones((count, count), bool))
    inside = jnp.where(causal, decay[:, None] - decay[None, :] + i[None, :], -jnp.inf)
    before = decay + memory.scale
    scale = lax.stop_gradient(jnp.maximum(jnp.max(inside, axis=1), before))
    weights = (q @ k.T) * jnp.exp(inside - scale[:, None])
    old = jnp.exp(before - scale)
    top = old[:, None] * (q @ memory.matrix) + weights @ v
    bottom = old * (q @ memory.normaliser) + jnp.sum(weights, axis=1)
    floor = jnp.maximum(jnp.abs(bottom), jnp.exp(-scale)) + _EPS
    out = top / floor[:, None]

    after = decay[-1] - decay + i
    last = decay[-1] + memory.scale
    scale = lax.stop_gradient(jnp.maximum(last, jnp.max(after)))
    kept = jnp.exp(last - scale)
    keys = jnp.exp(after - scale)[:, None] * k
    matrix = kept * memory.matrix + keys.T @ v
    normaliser = kept * memory.normaliser + jnp.sum(keys, axis=0)
    return Memory(matrix, normaliser, scale), out


def chunkwise(q, k, v, i, f, chunk: int) -> Float[Array, "times size"]:
    """A scan over chunks; linear in the length, each chunk recomputed backwards. Chunks
    of one sample are the recurrent form, one chunk for all the parallel form."""
    times = q.shape[0]
    count = -(-times // chunk)

    def cut(x):
        pad = [(0, count * chunk - times)] + [(0, 0)] * (x.ndim - 1)
        return jnp.pad(x, pad).reshape(count, chunk, *x.shape[1:])

    body = jax.checkpoint(lambda memory, piece: chunk_step(memory, *piece))
    start = empty_memory(q.shape[-1], q.dtype)
    _, out = scan(body, start, tuple(cut(x) for x in (q, k, v, i, f)))
    return out.reshape(count * chunk, -1)[:times]

"""Memory of gradients: streams of half the depth, not of the whole signature."""

import jax
import jax.numpy as jnp

import arborax as abx


def temporary_bytes(alg, length):
    path = jax.ShapeDtypeStruct((length, alg.dim), jnp.float64)
    loss = lambda x: jnp.sum(abx.signature(x, alg) ** 2)  # noqa: E731
    compiled = jax.jit(jax.grad(loss)).lower(path).compile()
    return compiled.memory_analysis().temp_size_in_bytes


def test_backward_memory_grows_slower_than_the_signature():
    """Streams of half the depth: 84 times more coordinates take less than half of 84
    times the memory, all of it less than one signature for each sample would."""
    small, large, length = abx.Shuffle(3, 3), abx.Shuffle(3, 7), 257
    few, many = (temporary_bytes(alg, length) for alg in (small, large))
    assert many < 0.5 * few * large.size / small.size
    assert many < 0.7 * length * large.size * 8

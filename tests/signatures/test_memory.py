"""Memory of gradients: one block and a few signatures, not `length * size`."""

import jax
import jax.numpy as jnp
import pytest

import arborax as abx


def temporary_bytes(alg, length, brackets=None):
    path = jax.ShapeDtypeStruct((length, alg.dim), jnp.float64)
    loss = lambda x: jnp.sum(abx.signature(x, alg, brackets) ** 2)  # noqa: E731
    compiled = jax.jit(jax.grad(loss)).lower(path).compile()
    return compiled.memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize(
    "alg, brackets",
    [
        (abx.Shuffle(3, 5), None),
        (abx.Ito(2, 4), "realised"),
        (abx.GrossmanLarson(2, 4), None),
        (abx.MuntheKaasWright(2, 3), "left-point"),
    ],
    ids=str,
)
def test_backward_memory_grows_with_the_length_like_the_path(alg, brackets):
    """Each further sample costs some copies of its increments (of channels and, with
    brackets, of pairs), far less than the coordinates of one signature."""
    short, long = 1025, 16385
    growth = temporary_bytes(alg, long, brackets) - temporary_bytes(
        alg, short, brackets
    )
    letters = alg.dim if brackets is None else alg.dim + alg.dim * (alg.dim + 1) / 2
    each = growth / (long - short) / 8
    assert each <= 8 * letters
    assert each < 0.5 * alg.size


def test_backward_memory_grows_slower_than_the_signature():
    """A block holds streams of half the depth: 84 times more coordinates take less than
    half of 84 times the memory."""
    small, large = abx.Shuffle(3, 3), abx.Shuffle(3, 7)
    few, many = (temporary_bytes(alg, 2049) for alg in (small, large))
    assert many < 0.5 * few * large.size / small.size


def test_a_block_of_a_long_path_is_smaller_than_its_signatures():
    alg, length = abx.Shuffle(4, 6), 8193
    assert temporary_bytes(alg, length) < 0.05 * length * alg.size * 8

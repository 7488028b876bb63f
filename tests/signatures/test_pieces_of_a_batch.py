"""A batch may be worked off a few paths at a time; nobody should notice."""

import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

import arborax as abx
from arborax.signatures import _tensor


@pytest.mark.parametrize("alg", [abx.Shuffle(2, 4), abx.Ito(2, 3)], ids=repr)
def test_pieces_change_nothing(alg, monkeypatch):
    """Values, first and second derivatives; the last piece of nine is not full."""
    brackets = None if isinstance(alg, abx.Shuffle) else "realised"
    x = jr.normal(jr.key(1), (9, 6, alg.dim))
    v = jr.normal(jr.key(2), x.shape)

    def loss(x):
        return jnp.sum(abx.signature(x, alg, brackets=brackets) ** 2)

    @jax.jit
    def all_of(x):
        value = abx.signature(x, alg, brackets=brackets)
        return value, *jax.jvp(jax.grad(loss), (x,), (v,))

    def loops() -> int:
        compiled = jax.jit(lambda x: abx.signature(x, alg, brackets))
        return compiled.lower(x).as_text().count("stablehlo.while")

    whole, before = all_of(x), loops()
    monkeypatch.setattr(_tensor, "_CACHE", 1)
    jax.clear_caches()
    assert loops() == before + 1
    for piecewise, expected in zip(all_of(x), whole):
        assert jnp.allclose(piecewise, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "depth,batch,pieces", [(3, 128, False), (5, 128, True), (5, 32, False)]
)
def test_pieces_only_where_they_pay(depth, batch, pieces):
    """Streams of 6.5, 42 and 11 MB. Pieces made the gradient of the first 1.3 times
    slower."""
    alg = abx.Shuffle(4, depth)
    x = jax.ShapeDtypeStruct((batch, 256, 4), jnp.float32)
    program = jax.make_jaxpr(lambda x: abx.signature(x, alg))(x)
    assert ("scan[" in str(program)) == pieces

"""Requests that cannot be served say what was wrong and what to do."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arborax as abx


ALGEBRAS = [abx.Shuffle, abx.GrossmanLarson, abx.MuntheKaasWright, abx.Ito]
everywhere = pytest.mark.parametrize("cls", ALGEBRAS)


@everywhere
@pytest.mark.parametrize("depth", [0, -1])
def test_depth_below_one(cls, depth):
    with pytest.raises(ValueError, match=f"depth.*{depth}"):
        cls(2, depth)


@everywhere
@pytest.mark.parametrize("dim", [0, -3])
def test_no_channels(cls, dim):
    with pytest.raises(ValueError, match=f"dim.*{dim}"):
        cls(dim, 2)


@everywhere
@pytest.mark.parametrize("dim, depth", [(2.0, 2), (2, 2.0), ("2", 2), (2, None)])
def test_not_integers(cls, dim, depth):
    with pytest.raises((TypeError, ValueError), match="int"):
        cls(dim, depth)


@pytest.mark.parametrize(
    "cls, dim, depth, size",
    [
        (abx.Shuffle, 100, 6, sum(100**n for n in range(1, 7))),
        (abx.MuntheKaasWright, 20, 8, None),
        (abx.GrossmanLarson, 20, 8, None),
        (abx.Ito, 50, 9, None),
    ],
)
def test_too_large_is_refused_with_its_size(cls, dim, depth, size):
    with pytest.raises(ValueError, match="would have.*Use a smaller depth") as caught:
        cls(dim, depth).basis
    message = str(caught.value).replace(",", "")
    assert re.search(r"would have \d{8,} basis elements", message)
    if size is not None:
        assert str(size) in message


@everywhere
def test_arrays_of_the_wrong_size(cls):
    alg = cls(2, 3)
    right, wrong = np.zeros(alg.size), np.zeros(alg.size + 1)
    for call in (
        lambda: alg.product(right, wrong),
        lambda: alg.product(wrong, right),
        lambda: alg.exp(wrong),
        lambda: alg.log(wrong),
        lambda: alg.antipode(wrong),
        lambda: alg.to_primitive(wrong),
    ):
        with pytest.raises(ValueError, match=str(alg.size)):
            call()
    with pytest.raises(ValueError, match=str(alg.primitive_size)):
        alg.from_primitive(np.zeros(alg.primitive_size + 2))


@everywhere
def test_leading_axes_and_kinds_of_arrays(cls):
    """Axes that do not go together are refused; NumPy goes together with traced JAX."""
    alg = cls(2, 2)
    with pytest.raises(ValueError, match="leading axes.*got shapes"):
        alg.product(np.zeros((2, alg.size)), np.zeros((3, alg.size)))
    with pytest.raises(TypeError, match="NumPy or JAX array"):
        alg.exp([0.0] * alg.size)
    a = np.linspace(0.0, 1.0, alg.size)
    want = alg.product(a, 2 * a)
    for left, right in ((a, jnp.asarray(2 * a)), (a[None], jnp.asarray(2 * a))):
        got = jax.jit(lambda x, left=left: alg.product(left, x))(right)
        np.testing.assert_allclose(np.ravel(got), want, atol=1e-14)
        got = jax.jit(lambda x, right=right: alg.product(x, np.asarray(right)))(left)
        np.testing.assert_allclose(np.ravel(got), want, atol=1e-14)

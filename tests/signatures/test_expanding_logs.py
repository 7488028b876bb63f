"""Log-signatures from the start to every sample."""

import jax.numpy as jnp
import numpy as np
import pytest

import arborax as abx


XS = jnp.asarray(np.random.default_rng(0).normal(size=(3, 6, 2)))


@pytest.mark.parametrize(
    "alg, brackets",
    [
        (abx.Shuffle(2, 2), None),
        (abx.Shuffle(2, 3), None),
        (abx.Ito(2, 2), "realised"),
        (abx.Ito(2, 2), "array"),
        (abx.GrossmanLarson(2, 2), "left-point"),
        (abx.MuntheKaasWright(2, 3), "left-point"),
        (abx.MuntheKaasWright(2, 3), "array"),
    ],
    ids=str,
)
def test_they_are_those_of_the_beginnings(alg, brackets):
    a = jnp.asarray(np.random.default_rng(1).normal(size=(3, 5, 2, 2)))
    supplied = jnp.einsum("...ij,...kj->...ik", a, a)
    given = supplied if brackets == "array" else brackets
    got = abx.expanding_log_signature(XS, alg, given)
    assert got.shape == (3, 6, alg.primitive_size)
    np.testing.assert_array_equal(got[:, 0], 0)
    for k in (2, 6):
        part = supplied[:, : k - 1] if brackets == "array" else brackets
        want = abx.log_signature(XS[:, :k], alg, part)
        np.testing.assert_allclose(got[:, k - 1], want, rtol=1e-9, atol=1e-11)
    if alg.depth == 2:
        part = given if brackets != "array" else supplied[0]
        control = abx.rough_path(jnp.arange(6.0), XS[0], alg, window=5, brackets=part)
        np.testing.assert_allclose(control.expanding()[0], got[0, 1:], atol=1e-11)

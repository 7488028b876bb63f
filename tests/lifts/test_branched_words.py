"""Lifts and solves over free generators, against those over trees."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx
from arborax.algebra import primitive_conversion


def fields(y):
    flat = jnp.ravel(y)
    return jnp.stack([jnp.sin(flat[:3]), jnp.cos(flat[::-1][:3] + 0.3)])


@pytest.mark.parametrize(
    "trees, geometry, y",
    [
        (abx.GrossmanLarson(2, 3), abx.Euclidean(3), jnp.array([0.3, -0.2, 0.5])),
        (abx.MuntheKaasWright(2, 3), abx.SO(3), jnp.eye(3)),
    ],
    ids=["euclidean", "so3"],
)
def test_fields_are_those_of_the_trees(trees, geometry, y):
    """With all letters of weight three, and with gradients in the control."""
    words = abx.BranchedWords(2, 3)
    lam = jr.normal(jr.key(0), (words.primitive_size,))
    convert = primitive_conversion(words, trees)
    short, full = (abx.lift(fields, alg, geometry) for alg in (words, trees))

    def both(field, change):
        value = lambda x: jnp.sum(field(y, change(x)) ** 2)  # noqa: E731
        return jax.jit(jax.value_and_grad(value))(lam)

    one, two = both(short, lambda x: x), both(full, convert)
    for a, b in zip(one, two):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_a_solve_with_left_point_sums():
    """A branched rough path that is not that of a semimartingale. Without letters of
    weight three, which `Ito` does not have, the answer is another one."""
    ts, xs = jnp.linspace(0, 1, 17), jnp.cumsum(jr.normal(jr.key(1), (17, 2)), 0) / 4
    words, trees = abx.BranchedWords(2, 3), abx.GrossmanLarson(2, 3)
    ends = [
        abx.solve(
            fields,
            jnp.zeros(3),
            abx.rough_path(ts, xs, alg, window=8, brackets=brackets),
        ).ys[-1]
        for alg, brackets in [
            (words, "left-point"),
            (trees, "left-point"),
            (words, "realised"),
        ]
    ]
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-9)
    assert np.max(np.abs(ends[0] - ends[2])) > 1e-3

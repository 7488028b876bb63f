"""The lift of multi-indices, against trees and against derivatives by hand."""

import functools as ft
import math

import jax
import jax.lax as lax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx
from arborax.algebra import primitive_conversion


LINE = abx.Euclidean(1)


def fields(y):
    return jnp.stack([jnp.sin(y) + 1.5, jnp.exp(-0.5 * y)])


def by_hand(y, k):
    """The `k`-th derivatives of both fields."""
    sines = [math.sin(y) + 1.5, math.cos(y), -math.sin(y), -math.cos(y), math.sin(y)]
    return sines[k], (-0.5) ** k * math.exp(-0.5 * y)


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_definition(depth, getkey):
    alg = abx.MultiIndex(2, depth)
    lam = jr.normal(getkey(), (alg.primitive_size,))
    got = abx.lift(fields, alg, LINE)(jnp.array([0.7]), lam)
    terms = [
        math.prod(by_hand(0.7, k)[i] / math.factorial(k) for i, k in index)
        for index in alg.primitive_basis
    ]
    np.testing.assert_allclose(got, [np.dot(np.asarray(lam), terms)], rtol=1e-12)


def test_trees_give_the_same_field_with_its_derivatives(getkey):
    """Value, gradient and second derivative, in the state and in the control."""
    trees, alg = abx.GrossmanLarson(2, 3), abx.MultiIndex(2, 3)
    convert = primitive_conversion(trees, alg)
    lam = jr.normal(getkey(), (trees.primitive_size,))
    y = jnp.array([0.3])
    short, full = abx.lift(fields, alg, LINE), abx.lift(fields, trees, LINE)
    one = lambda y, lam: short(y, convert(lam))[0]  # noqa: E731
    two = lambda y, lam: full(y, lam)[0]  # noqa: E731
    close = ft.partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-12)
    close(one(y, lam), two(y, lam))
    for k in (0, 1):
        close(jax.grad(one, k)(y, lam), jax.grad(two, k)(y, lam))
    close(jax.hessian(one)(y, lam), jax.hessian(two)(y, lam))


def test_trees_give_the_same_field_at_depth_four(getkey):
    trees, alg = abx.GrossmanLarson(2, 4), abx.MultiIndex(2, 4)
    lam = jr.normal(getkey(), (trees.primitive_size,))
    y = jnp.array([0.3])
    one = abx.lift(fields, alg, LINE)(y, primitive_conversion(trees, alg)(lam))
    two = abx.lift(fields, trees, LINE)(y, lam)
    np.testing.assert_allclose(one, two, rtol=1e-10)


def test_gradient_of_a_batch_inside_a_scan(getkey):
    trees, alg = abx.GrossmanLarson(2, 3), abx.MultiIndex(2, 3)
    lams = jr.normal(getkey(), (4, 5, trees.primitive_size)) / 4

    def loss(y0, alg, lams):
        field = jax.vmap(abx.lift(fields, alg, LINE))
        body = lambda y, lam: (y + field(y, lam), None)  # noqa: E731
        return jnp.sum(lax.scan(body, y0, lams)[0] ** 2)

    y0 = jnp.linspace(-0.5, 0.5, 5)[:, None]
    short = primitive_conversion(trees, alg)(lams)
    one, two = (
        jax.jit(jax.grad(loss), static_argnums=1)(y0, a, x)
        for a, x in ((alg, short), (trees, lams))
    )
    np.testing.assert_allclose(one, two, rtol=1e-10)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_fields_of_time_and_dtypes(dtype):
    alg = abx.MultiIndex(1, 3)
    lam = jnp.array([1.0, 0.5, 0.25, 0.125], dtype)
    field = abx.lift(lambda t, y, args: (args * t * y**2)[None], alg, LINE, args=2.0)
    got = field(jnp.array(3.0, dtype), jnp.array([1.0], dtype), lam)
    # At y = 1: f = 6, f' = 12, f'' = 12; and f, f f', f^2 f'' / 2, f f'^2 in order.
    total = 6 + 0.5 * 6 * 12 + 0.25 * 36 * 12 / 2 + 0.125 * 6 * 12**2
    assert got.dtype == dtype
    np.testing.assert_allclose(got, [total], rtol=1e-6)


def test_other_states_are_refused_with_the_remedy():
    control = abx.rough_path(jnp.arange(3.0), jnp.zeros((3, 2)), abx.MultiIndex(2, 3))
    for y0, geometry in [(jnp.zeros(2), None), (jnp.eye(3), abx.SO(3))]:
        with pytest.raises(ValueError, match="scalar state.*Use `GrossmanLarson`"):
            abx.solve(lambda y: jnp.zeros((2, 2)), y0, control, geometry=geometry)

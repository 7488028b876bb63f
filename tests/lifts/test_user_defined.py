"""Algebras and geometries of a user work in `lift` and `solve` through the interface,
or are refused by name."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from user_defined import BackwardTrees, BackwardWords, Quaternions

import arborax as abx

from .reference import smooth_fields


CASES = [
    (abx.Euclidean(3), BackwardWords(2, 2)),
    (abx.Euclidean(3), BackwardTrees(2, 3)),
    (abx.SO(3), BackwardWords(2, 2)),
    (abx.SO(3), BackwardWords(2, 3)),
    (abx.SO(3), BackwardTrees(2, 2)),
    (abx.Euclidean(2), BackwardWords(2, 4)),
    (abx.Sphere(2), BackwardTrees(2, 3)),
]


@pytest.mark.parametrize("geometry,alg", CASES, ids=lambda x: str(x)[:26])
def test_an_algebra_in_another_order_has_the_same_window_field(geometry, alg, getkey):
    fields = smooth_fields(alg.dim, geometry)
    y = geometry.random_point(key=getkey(), dtype=jnp.float64)
    lam = jr.normal(getkey(), (alg.primitive_size,), jnp.float64)
    want = jax.jit(abx.lift(fields, alg.other, geometry))(y, lam)
    got = jax.jit(abx.lift(fields, alg, geometry))(y, lam[alg.primitive_order])
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    "alg,brackets",
    [
        (BackwardWords(2, 2), None),
        (BackwardTrees(2, 2), None),
        (BackwardTrees(2, 2), "realised"),
    ],
    ids=str,
)
def test_an_algebra_in_another_order_has_the_same_solution(alg, brackets, getkey):
    """Value and gradient."""
    geometry, ts = abx.SO(3), jnp.linspace(0.0, 1.0, 9)
    fields = smooth_fields(alg.dim, geometry)
    xs = jnp.cumsum(jr.normal(getkey(), (9, alg.dim), jnp.float64) / 3, axis=0)

    def last(xs, alg):
        control = abx.rough_path(ts, xs, alg, window=4, brackets=brackets)
        y0 = jnp.eye(3)
        return jnp.sum(abx.solve(fields, y0, control, geometry=geometry).ys[-1] ** 3)

    both = jax.jit(jax.value_and_grad(last), static_argnums=1)
    for got, want in zip(both(xs, alg), both(xs, alg.other), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("connection", ["frame", "levi-civita"])
@pytest.mark.parametrize("alg", [abx.Ito(2, 2), abx.MuntheKaasWright(2, 2)], ids=str)
def test_a_geometry_that_covers_rotations_has_their_solution(alg, connection, getkey):
    above, below = Quaternions(connection), abx.SO(3, connection=connection)
    fields, ts = smooth_fields(2, below), jnp.linspace(0.0, 1.0, 9)
    xs = jnp.cumsum(jr.normal(getkey(), (9, 2), jnp.float64) / 3, axis=0)
    y0 = above.random_point(key=getkey(), dtype=jnp.float64)

    @jax.jit
    def both(xs):
        control = abx.rough_path(ts, xs, alg, window=4, brackets="realised")
        lifted = lambda q: fields(above.rotation(q))  # noqa: E731
        one = abx.solve(lifted, y0, control, geometry=above).ys
        two = abx.solve(fields, above.rotation(y0), control, geometry=below).ys
        return jax.vmap(above.rotation)(one), two

    got, want = both(xs)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


class Unordered(BackwardTrees):
    """Does not keep the order of its trees."""

    planar = property(lambda self: False)


def test_an_algebra_without_order_is_refused_by_name_on_a_curved_space():
    fields = smooth_fields(2, abx.SO(3))
    with pytest.raises(ValueError, match="Unordered has no lift"):
        abx.lift(fields, Unordered(2, 2), abx.SO(3))

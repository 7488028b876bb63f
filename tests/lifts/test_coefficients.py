"""What a log-signature is turned into before the fields are evaluated."""

import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest

import arborax as abx
from arborax.lifts import Coefficients

from .reference import smooth_fields


def coefficients(alg, geometry, lam=None):
    lam = jnp.ones(alg.primitive_size) if lam is None else lam
    fields = smooth_fields(alg.dim, geometry)
    return abx.lift(fields, alg, geometry).coefficients(lam)


@pytest.mark.parametrize(
    "alg,sizes",
    [
        (abx.Shuffle(3, 1), [3]),
        (abx.Shuffle(2, 5), [2, 4, 8, 16, 32]),
        (abx.Ito(2, 4), [2, 4, 16, 48]),
        (abx.GrossmanLarson(2, 4), [2, 4, 16, 80]),
        (abx.MuntheKaasWright(3, 3), [3, 9, 54]),
    ],
    ids=str,
)
def test_only_trees_that_occur_are_stored(alg, sizes):
    """Words have heads of one vertex, those of the Itô alphabet of two; in flat space
    there are no forests."""
    out = coefficients(alg, abx.Euclidean(2))
    assert [x.shape[0] for x in out.trees] == sizes
    assert not out.forests


@pytest.mark.parametrize("algebra", [abx.Shuffle, abx.Ito, abx.MuntheKaasWright])
def test_one_type_for_every_depth_and_geometry(algebra):
    for depth in (1, 2, 3, 4):
        for geometry in (abx.Euclidean(2), abx.SO(3), abx.Sphere(2)):
            assert type(coefficients(algebra(2, depth), geometry)) is Coefficients


def test_forests_are_those_that_torsion_and_curvature_see():
    """Pairs are antisymmetric and stored in one order; without torsion they vanish."""
    alg = abx.MuntheKaasWright(2, 3)
    torsion = coefficients(alg, abx.SO(3))
    assert set(torsion.forests) == {(1, 1), (1, 2), (1, 1, 1)}
    levi_civita = coefficients(alg, abx.Sphere(2))
    assert set(levi_civita.forests) == {(1, 1, 1)}
    pairs = np.asarray(torsion.forests[1, 1]).reshape(2, 2)
    np.testing.assert_array_equal(pairs, -pairs.T)
    assert np.abs(pairs).max() > 0


def test_linear(getkey):
    alg = abx.Ito(2, 3)
    a, b = jr.normal(getkey(), (2, alg.primitive_size), jnp.float64)
    one = coefficients(alg, abx.SO(3), 2 * a + b)
    two = [coefficients(alg, abx.SO(3), lam) for lam in (a, b)]
    two = jtu.tree_map(lambda x, y: 2 * x + y, *two)
    for x, y in zip(jtu.tree_leaves(one), jtu.tree_leaves(two), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-12)


def test_depth_one_is_the_increment(getkey):
    geometry, alg = abx.SO(3), abx.Shuffle(2, 1)
    fields = smooth_fields(2, geometry)
    y = geometry.random_point(key=getkey(), dtype=jnp.float64)
    lam = jnp.array([0.3, -1.2])
    got = jax.jit(abx.lift(fields, alg, geometry))(y, lam)
    np.testing.assert_allclose(got, lam @ fields(y), atol=1e-14)

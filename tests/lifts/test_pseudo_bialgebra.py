"""F(a * b) phi = F(a) F(b) phi for trees, fields and test functions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arborax as abx

from .reference import atoms, derivative, nabla, smooth_fields, tree_field


def total_function(geometry, phi, directions):
    """nabla^k phi (U1, .., Uk) for a function phi."""
    if not directions:
        return phi
    U, rest = directions[0], directions[1:]
    main = total_function(geometry, phi, rest)
    corrections = [
        total_function(
            geometry, phi, rest[:r] + [nabla(geometry, U, W)] + rest[r + 1 :]
        )
        for r, W in enumerate(rest)
    ]
    return lambda y: derivative(main, y, U(y)) - sum(g(y) for g in corrections)


def forest_operator(geometry, V, forest, phi):
    return total_function(geometry, phi, [tree_field(t, V, geometry) for t in forest])


PAIRS = [
    (((0, ()),), ((1, ()),)),
    (((0, ()),), ((1, ((0, ()),)),)),
    (((1, ((0, ()),)),), ((0, ()),)),
    (((0, ()), (1, ())), ((1, ()),)),
    (((0, ()),), ((1, ()), (0, ()))),
    (((0, ()),), ((1, ((0, ()), (1, ()))),)),
]


@pytest.mark.parametrize(
    "geometry,algebra",
    [
        (abx.Euclidean(2), abx.GrossmanLarson),
        (abx.SO(3), abx.MuntheKaasWright),
        (abx.SO(3, connection="levi-civita"), abx.MuntheKaasWright),
        (abx.Sphere(2), abx.MuntheKaasWright),
    ],
    ids=["flat", "frame", "levi-civita", "sphere"],
)
def test_products_become_compositions(geometry, algebra, getkey):
    pairs = PAIRS if algebra is abx.GrossmanLarson else PAIRS[:5]
    alg = algebra(2, 4 if algebra is abx.GrossmanLarson else 3)
    V = atoms(smooth_fields(2, geometry, seed=3), 2, geometry)
    y = geometry.random_point(key=getkey(), dtype=jnp.float64)
    weight = np.random.default_rng(1).normal(size=int(np.prod(geometry.point_shape)))

    def phi(z):
        return jnp.sin(jnp.ravel(z) @ jnp.asarray(weight))

    index = {key: k for k, key in enumerate(alg.basis)}
    sigma = np.ones(alg.size)
    if algebra is abx.GrossmanLarson:
        from arborax.algebra import symmetry_factor

        sigma = np.array([float(symmetry_factor(key)) for key in alg.basis])

    def sides(left, right):
        a, b = np.zeros(alg.size), np.zeros(alg.size)
        a[index[left]], b[index[right]] = sigma[index[left]], sigma[index[right]]
        product = alg.star(a, b) / sigma
        got = sum(
            product[k] * forest_operator(geometry, V, alg.basis[k], phi)(y)
            for k in np.flatnonzero(product)
        )
        inner = forest_operator(geometry, V, right, phi)
        return got, forest_operator(geometry, V, left, inner)(y)

    for left, right in pairs:
        if algebra is abx.GrossmanLarson:
            from arborax.algebra import canonical

            left, right = canonical(left), canonical(right)
        got, want = sides(left, right)
        np.testing.assert_allclose(got, want, atol=1e-11)


def test_fields_are_smooth_enough_to_matter(getkey):
    """The corrections above are not zero by accident."""
    geometry = abx.Sphere(2)
    V = atoms(smooth_fields(2, geometry, seed=3), 2, geometry)
    y = geometry.random_point(key=getkey(), dtype=jnp.float64)
    gap = jax.jit(lambda z: nabla(geometry, V[0], V[1])(z))(y)
    assert float(jnp.abs(gap).max()) > 1e-2

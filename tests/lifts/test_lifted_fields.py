"""Lifted fields against their definitions, on every geometry and connection."""

import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest

import arborax as abx
from arborax.algebra import symmetry_factor

from .reference import all_fields, atoms, jacobi, nabla, smooth_fields


GEOMETRIES = {
    "euclidean": abx.Euclidean(3),
    "so3": abx.SO(3),
    "so3-lc": abx.SO(3, connection="levi-civita"),
    "spd2": abx.SPD(2),
    "spd2-frame": abx.SPD(2, connection="frame"),
    "spd2-root": abx.SPD(2, "root"),
    "sphere": abx.Sphere(2),
    "hyperbolic": abx.Hyperbolic(2),
    "se3": abx.SE(3),
    "product": abx.Product(abx.SO(3), abx.Euclidean(2)),
}
ALGEBRAS = [abx.Shuffle, abx.Ito, abx.MuntheKaasWright, abx.GrossmanLarson]


def ambient(geometry, y, rows):
    return jax.vmap(geometry.frame, in_axes=(None, 0))(y, rows)


def close(x, y, tol=1e-11):
    for a, b in zip(jtu.tree_leaves(x), jtu.tree_leaves(y), strict=True):
        np.testing.assert_allclose(a, b, atol=tol, rtol=tol)


def levy_area(xs):
    dx = jnp.diff(xs, axis=0)
    mid = (xs[:-1] + xs[1:]) / 2 - xs[:1]
    integral = mid.T @ dx  # int X^j dX^i
    return (integral - integral.T) / 2


@pytest.mark.parametrize("name", GEOMETRIES)
def test_depth_two_identity(name, getkey):
    """L = X^i V_i + sum_{j<i} A^ji [V_j, V_i] - 1/2 B^ij nabla_{V_j} V_i."""
    geometry, d = GEOMETRIES[name], 3
    fields = smooth_fields(d, geometry)
    y = geometry.random_point(key=getkey(), dtype=jnp.float64)
    xs = jnp.cumsum(jr.normal(getkey(), (6, d), jnp.float64), axis=0)
    increment, area = xs[-1] - xs[0], levy_area(xs)
    dx = jnp.diff(xs, axis=0)

    @jax.jit
    def formula(y, bracket):
        V = atoms(fields, d, geometry)
        total = jtu.tree_map(jnp.zeros_like, y)
        for i in range(d):
            for j in range(d):
                terms = [(-bracket[i, j] / 2, nabla(geometry, V[j], V[i]))]
                if j < i:
                    terms.append((area[j, i], jacobi(V[j], V[i])))
                if i == j:
                    terms.append((increment[i], V[i]))
                for c, g in terms:
                    total = jtu.tree_map(lambda a, b, c=c: a + c * b, total, g(y))
        return total

    for algebra in ALGEBRAS:
        if algebra is abx.GrossmanLarson and name != "euclidean":
            continue
        alg = algebra(d, 2)
        brackets = None if algebra is abx.Shuffle else "realised"
        lam = abx.log_signature(xs, alg, brackets=brackets)
        got = jax.jit(abx.lift(fields, alg, geometry))(y, lam)
        bracket = jnp.zeros((d, d)) if brackets is None else dx.T @ dx
        close(geometry.frame(y, got), formula(y, bracket))


def some_keys(alg, count, seed=0):
    """A few primitives of the highest weight, and some of the others."""
    rng = np.random.default_rng(seed)
    top = np.flatnonzero(alg.primitive_weights == alg.depth)
    low = np.flatnonzero(alg.primitive_weights == alg.depth - 1)
    pick = [rng.choice(group, min(count, len(group)), False) for group in (top, low)]
    return np.concatenate(pick)


DEEP = [
    ("euclidean", abx.Shuffle(2, 4), 4),
    ("euclidean", abx.Ito(2, 3), 4),
    ("euclidean", abx.MuntheKaasWright(2, 3), 6),
    ("euclidean", abx.GrossmanLarson(2, 4), 6),
    ("so3", abx.Shuffle(2, 4), 3),
    ("so3", abx.Shuffle(4, 3), 4),
    ("so3-lc", abx.Ito(2, 3), 4),
    ("so3", abx.MuntheKaasWright(2, 3), 6),
    ("so3-lc", abx.MuntheKaasWright(2, 3), 6),
    ("spd2", abx.Shuffle(2, 3), 2),
    ("spd2", abx.MuntheKaasWright(2, 3), 4),
    ("spd2-frame", abx.Ito(2, 3), 4),
    ("sphere", abx.MuntheKaasWright(2, 3), 6),
    ("sphere", abx.Ito(2, 3), 4),
    ("hyperbolic", abx.MuntheKaasWright(4, 3), 2),
    ("product", abx.MuntheKaasWright(2, 3), 3),
]


@pytest.mark.parametrize(
    "name,alg,count", DEEP, ids=[f"{n}-{type(a).__name__}{a.depth}" for n, a, _ in DEEP]
)
def test_definition(name, alg, count, getkey):
    """Nested recursion against brackets and total derivatives written out."""
    geometry = GEOMETRIES[name]
    fields = smooth_fields(alg.dim, geometry)
    y = geometry.random_point(key=getkey(), dtype=jnp.float64)
    pick = some_keys(alg, count)
    keys = [alg.primitive_basis[k] for k in pick]
    want = jax.jit(all_fields(alg, fields, geometry, keys))(y)
    field = abx.lift(fields, alg, geometry)
    eye = jnp.eye(alg.primitive_size)[pick]
    got = ambient(geometry, y, jax.jit(jax.vmap(field, in_axes=(None, 0)))(y, eye))
    if isinstance(alg, abx.GrossmanLarson):
        sigma = jnp.array([float(symmetry_factor(key)) for key in keys])
        got = got * jnp.broadcast_to(sigma[:, None], got.shape)
    close(got, want)


@pytest.mark.parametrize(
    "name,alg",
    [
        ("sphere", abx.MuntheKaasWright(2, 4)),
        ("spd2", abx.MuntheKaasWright(2, 4)),
        ("so3", abx.Ito(2, 4)),
    ],
)
def test_commutators_of_random_primitives(name, alg, getkey):
    """F([a, b]) = [F(a), F(b)], beyond the depth at which definitions are cheap.

    Only F([a, b]) needs the whole depth: a and b have weights up to two, where the lift
    of depth two, whose derivatives are far smaller programs, gives the same fields.
    """
    geometry = GEOMETRIES[name]
    fields = smooth_fields(alg.dim, geometry)
    y = geometry.random_point(key=getkey(), dtype=jnp.float64)
    low = jnp.asarray(alg.primitive_weights <= 2, jnp.float64)
    a = jr.normal(getkey(), (alg.primitive_size,), jnp.float64) * low
    b = jr.normal(getkey(), (alg.primitive_size,), jnp.float64) * low
    wa, wb = alg.from_primitive(a), alg.from_primitive(b)
    c = alg.to_primitive(alg.star(wa, wb) - alg.star(wb, wa))
    shallow = type(alg)(alg.dim, 2)
    size = shallow.primitive_size
    assert alg.primitive_basis[:size] == shallow.primitive_basis
    deep = abx.lift(fields, alg, geometry)
    field = abx.lift(fields, shallow, geometry)

    @jax.jit
    def both(y):
        U = lambda z: geometry.frame(z, field(z, a[:size]))  # noqa: E731
        V = lambda z: geometry.frame(z, field(z, b[:size]))  # noqa: E731
        rows = jax.vmap(deep, in_axes=(None, 0))(y, jnp.stack([a, b, c]))
        return ambient(geometry, y, rows), jnp.stack([U(y), V(y), jacobi(U, V)(y)])

    got, want = both(y)
    close(got, want, 1e-9)


def test_all_fields_contract_to_the_window_field(getkey):
    alg, geometry = abx.GrossmanLarson(2, 3), abx.Euclidean(2)
    fields = smooth_fields(2, geometry)
    y = jr.normal(getkey(), (2,), jnp.float64)
    lam = jr.normal(getkey(), (alg.primitive_size,), jnp.float64)
    rows = abx.lifted_fields(fields, alg, geometry)(y)
    assert rows.shape == (alg.primitive_size, 2)
    close(lam @ rows, abx.lift(fields, alg, geometry)(y, lam))

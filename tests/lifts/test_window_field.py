"""Forms of fields, transformations, dtypes, refusals."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx

from .reference import smooth_fields


@pytest.fixture
def case(getkey):
    geometry, alg = abx.SO(3), abx.Ito(2, 2)
    fields = smooth_fields(2, geometry)
    y = geometry.random_point(key=getkey(), dtype=jnp.float64)
    lam = jr.normal(getkey(), (alg.primitive_size,), jnp.float64)
    return geometry, alg, fields, y, lam


def test_list_of_callables(case):
    geometry, alg, fields, y, lam = case
    parts = [lambda z, i=i: fields(z)[i] for i in range(2)]
    got = abx.lift(parts, alg, geometry)(y, lam)
    np.testing.assert_allclose(got, abx.lift(fields, alg, geometry)(y, lam), atol=1e-14)


def test_time_dependent(case):
    geometry, alg, fields, y, lam = case
    timed = abx.lift(lambda t, z, args: t * fields(z), alg, geometry)
    assert timed.time_dependent
    fixed = abx.lift(lambda z: 0.3 * fields(z), alg, geometry)
    got = timed(jnp.asarray(0.3), y, lam)
    np.testing.assert_allclose(got, fixed(y, lam), atol=1e-14)
    with pytest.raises(TypeError, match="t, y, lam"):
        timed(y, lam)
    assert abx.lift(lambda t, z=None: 0, alg, geometry).time_dependent is False


@pytest.mark.parametrize("alg", [abx.Ito(2, 3), abx.MuntheKaasWright(2, 3)])
def test_transformations(case, alg, getkey):
    geometry, _, fields, y, _ = case
    field = abx.lift(fields, alg, geometry)
    lam = jr.normal(getkey(), (alg.primitive_size,), jnp.float64)
    u = geometry.frame(y, jnp.array([0.3, -0.2, 0.5]))
    loss = jax.jit(lambda z: jnp.sum(field(z, lam) ** 2))
    grad = jax.jit(jax.grad(loss))(y)
    eps = 1e-6
    numeric = (loss(y + eps * u) - loss(y - eps * u)) / (2 * eps)
    np.testing.assert_allclose(jnp.sum(grad * u), numeric, rtol=1e-6)
    batched = jax.jit(jax.vmap(field, in_axes=(None, 0)))
    batch = batched(y, jnp.stack([lam, 2 * lam]))
    np.testing.assert_allclose(batch[1], 2 * batch[0], atol=1e-12)


@pytest.mark.parametrize("algebra", [abx.Shuffle, abx.Ito, abx.MuntheKaasWright])
def test_float32(algebra, getkey):
    geometry, alg = abx.Sphere(2), algebra(2, 3)
    fields = smooth_fields(2, geometry)
    y = geometry.random_point(key=getkey(), dtype=jnp.float32)
    lam = jr.normal(getkey(), (alg.primitive_size,), jnp.float32)
    field = jax.jit(abx.lift(fields, alg, geometry))
    got = field(y, lam)
    assert got.dtype == jnp.float32
    want = field(y.astype(jnp.float64), lam.astype(jnp.float64))
    np.testing.assert_allclose(got, want, atol=2e-5)


def test_refusals(case):
    geometry, alg, fields, y, lam = case
    with pytest.raises(ValueError, match="MuntheKaasWright"):
        abx.lift(fields, abx.GrossmanLarson(2, 2), geometry)
    with pytest.raises(ValueError, match="2 fields"):
        abx.lift([fields, fields], abx.Ito(3, 2), geometry)
    for rows in (1, 3):
        wrong = lambda z, rows=rows: jnp.ones((rows, 3))  # noqa: E731
        with pytest.raises(ValueError, match="one row for each"):
            abx.lift(wrong, alg, geometry)(y, lam)
    with pytest.raises(ValueError, match="one row for each"):
        abx.lift(lambda z: jnp.ones((2, 4)), alg, geometry)(y, lam)
    with pytest.raises(ValueError, match="log-signature"):
        abx.lift(fields, alg, geometry)(y, lam[:-1])
    with pytest.raises(TypeError, match="(?i)callable"):
        abx.lift(jnp.ones((2, 3)), alg, geometry)
    with pytest.raises(TypeError, match="geometry"):
        abx.lift(fields, alg, "SO(3)")
    with pytest.raises(TypeError, match="algebra"):
        abx.lift(fields, "Ito", geometry)

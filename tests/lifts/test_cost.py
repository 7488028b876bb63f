"""How many derivatives a window field takes, and how large its program is."""

import jax
import jax.extend as jex
import jax.numpy as jnp
import numpy as np
import pytest

import arborax as abx

from .reference import smooth_fields


def subjaxprs(value):
    if isinstance(value, jex.core.ClosedJaxpr):
        yield value.jaxpr
    elif isinstance(value, jex.core.Jaxpr):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from subjaxprs(item)


def equations(jaxpr):
    for eqn in jaxpr.eqns:
        yield eqn
        for value in eqn.params.values():
            for inner in subjaxprs(value):
                yield from equations(inner)


def products(function, shape, *args):
    """How often a matrix of this shape is applied to a vector."""
    jaxpr = jax.make_jaxpr(function)(*args).jaxpr
    count = 0
    for eqn in equations(jaxpr):
        if eqn.primitive.name == "dot_general":
            if any(var.aval.shape == shape for var in eqn.invars):
                count += np.prod(eqn.outvars[0].aval.shape) / shape[0]
    return count


def counting_fields(d, dim, size):
    matrix = jnp.asarray(np.random.default_rng(0).normal(size=(d * dim, size)))

    def fields(y):
        return jnp.tanh(matrix @ jnp.ravel(y)).reshape(d, dim)

    return fields, matrix.shape


@pytest.mark.parametrize(
    "geometry,d",
    [(abx.Euclidean(11), 7), (abx.SPD(4), 7), (abx.SO(3), 7), (abx.Sphere(7), 5)],
    ids=["euclidean", "spd", "so3", "sphere"],
)
@pytest.mark.parametrize(
    "algebra", [abx.Shuffle, abx.Ito, abx.MuntheKaasWright, abx.GrossmanLarson]
)
def test_depth_two_takes_d_derivatives(geometry, d, algebra):
    """One evaluation and at most d directional derivatives, not d^2; fewer if the
    frame is shorter than d."""
    flat = isinstance(geometry, abx.Euclidean)
    if algebra is abx.GrossmanLarson and not flat:
        pytest.skip("flat space only")
    alg = algebra(d, 2)
    size = int(np.prod(geometry.point_shape))
    fields, shape = counting_fields(d, geometry.dim, size)
    y = geometry.random_point(key=jax.random.key(0), dtype=jnp.float64)
    lam = jnp.ones(alg.primitive_size)
    count = products(abx.lift(fields, alg, geometry), shape, y, lam)
    derivatives = min(d, geometry.dim)
    # Values: in the single part, for the directions, and beside the derivatives.
    assert derivatives + 1 <= count <= derivatives + 3


def test_fields_in_a_list_are_derived_one_by_one():
    """A list of callables: each is evaluated and derived once at depth 2."""
    d, n = 4, 5
    matrices = jnp.asarray(np.random.default_rng(0).normal(size=(d, n, n)))
    fields = [lambda y, a=a: jnp.tanh(a @ y) for a in matrices]
    alg = abx.Ito(d, 2)
    y, lam = jnp.ones(n) / 3, jnp.linspace(-1.0, 1.0, alg.primitive_size)
    one = abx.lift(fields, alg, abx.Euclidean(n))
    together = lambda y: jnp.tanh(jnp.einsum("dij,j->di", matrices, y))  # noqa: E731
    whole = abx.lift(together, alg, abx.Euclidean(n))(y, lam)
    np.testing.assert_allclose(one(y, lam), whole, atol=1e-12)
    assert products(one, (n, n), y, lam) == 2 * d


SIZES = [
    (abx.Shuffle(2, 5), abx.Euclidean(8)),
    (abx.GrossmanLarson(2, 5), abx.Euclidean(8)),
    (abx.GrossmanLarson(3, 4), abx.Euclidean(8)),
    (abx.Ito(3, 4), abx.SO(3)),
    (abx.MuntheKaasWright(3, 4), abx.SO(3)),
    (abx.MuntheKaasWright(7, 3), abx.SPD(3)),
    (abx.Ito(10, 2), abx.SO(3)),
    (abx.MuntheKaasWright(10, 2), abx.SPD(3)),
]


@pytest.mark.parametrize("alg,geometry", SIZES, ids=lambda x: repr(x)[:30])
def test_program_size_is_moderate(alg, geometry):
    """The program does not grow with the number of primitives."""
    fields = smooth_fields(alg.dim, geometry)
    y = geometry.random_point(key=jax.random.key(0), dtype=jnp.float64)
    lam = jnp.ones(alg.primitive_size)
    jaxpr = jax.make_jaxpr(abx.lift(fields, alg, geometry))(y, lam).jaxpr
    count = sum(1 for _ in equations(jaxpr))
    biggest = max(np.prod(v.aval.shape) for e in equations(jaxpr) for v in e.outvars)
    assert count < 20_000
    assert biggest < 2e6

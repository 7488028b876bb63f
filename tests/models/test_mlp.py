"""MLPs, and the vector fields made of them."""

from functools import partial

import jax
import jax.extend as jex
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx
from arborax.models import activate, MLP, VectorField
from arborax.models._layers import affine


def swish(x):
    return 0.909 * x / (1 + np.exp(-x))


def test_mlp_against_its_definition():
    mlp = MLP(3, 4, 5, 2, final_activation=jnp.tanh, key=jr.PRNGKey(0))
    x = np.array([0.3, -1.2, 0.7])
    first, second, last = (
        (np.asarray(layer.weight), np.asarray(layer.bias)) for layer in mlp.layers
    )
    hidden = swish(second[0] @ swish(first[0] @ x + first[1]) + second[1])
    expected = np.tanh(last[0] @ hidden + last[1])
    np.testing.assert_allclose(mlp(jnp.asarray(x)), expected, rtol=1e-12)
    before = mlp.preactivation(jnp.asarray(x))
    np.testing.assert_allclose(before, last[0] @ hidden + last[1], rtol=1e-12)


def field_of(channels, geometry, seed=1):
    size = int(np.prod(geometry.point_shape))
    mlp = MLP(
        *(size, channels * geometry.dim, 8, 2),
        final_activation=jnp.tanh,
        key=jr.PRNGKey(seed),
    )
    return VectorField(mlp, channels, geometry.dim)


EXPANDED = [
    (abx.Shuffle(3, 2), abx.Euclidean(17)),  # rows long enough to be taken one by one
    (abx.GrossmanLarson(2, 3), abx.Euclidean(17)),
    (abx.GrossmanLarson(2, 4), abx.Euclidean(3)),
    (abx.Ito(5, 2), abx.SPD(2)),  # fewer frame fields than driving fields
    (abx.MuntheKaasWright(4, 3), abx.SPD(2)),
    (abx.MuntheKaasWright(2, 3), abx.SPD(2)),
    (abx.Shuffle(4, 3), abx.SO(3)),
    (abx.Ito(4, 3), abx.SPD(2, connection="frame")),
    (abx.Ito(2, 4), abx.SO(3)),
]


@pytest.mark.parametrize("alg,geometry", EXPANDED, ids=lambda x: repr(x)[:24])
def test_own_derivatives_of_a_vector_field_are_its_derivatives(alg, geometry):
    """The lift with `expand` and the one by forward mode of a plain function: the same
    values and gradients for a batch, in the point and in the weights."""
    field = field_of(alg.dim, geometry)
    point = jax.vmap(lambda k: geometry.random_point(key=k, dtype=jnp.float64))
    ys = point(jr.split(jr.PRNGKey(2), 3))
    lams = jr.normal(jr.PRNGKey(3), (3, alg.primitive_size))

    @partial(jax.jit, static_argnums=2)
    def value_and_gradients(field, ys, plain):
        def loss(args):
            field, ys = args
            given = (lambda z: field(z)) if plain else field
            out = jax.vmap(abx.lift(given, alg, geometry))(ys, lams)
            return jnp.sum(jnp.sin(out)), out

        (_, out), gradients = jax.value_and_grad(loss, has_aux=True)((field, ys))
        return out, gradients

    one, other = (value_and_gradients(field, ys, plain) for plain in (True, False))
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


def test_expansion_refuses_the_wrong_number_of_channels():
    geometry = abx.Euclidean(3)
    with pytest.raises(ValueError, match="one row for each of the 3 channels"):
        alg = abx.Shuffle(3, 2)
        lam = jnp.ones(alg.primitive_size)
        abx.lift(field_of(2, geometry), alg, geometry)(jnp.ones(3), lam)


def count_rows(function, *args, width):
    """Rows that go through square weight matrices of this width."""
    count = 0

    def visit(jaxpr):
        nonlocal count
        for eqn in jaxpr.eqns:
            shapes = [var.aval.shape for var in eqn.invars]
            if eqn.primitive.name == "dot_general" and (width, width) in shapes:
                count += eqn.outvars[0].aval.size // width
            for value in eqn.params.values():
                if isinstance(value, jex.core.ClosedJaxpr):
                    visit(value.jaxpr)

    visit(jax.make_jaxpr(function)(*args).jaxpr)
    return count


@pytest.mark.parametrize(
    "alg,geometry,rows",
    [
        (abx.MuntheKaasWright(7, 2), abx.SPD(3), 1 + 6),
        (abx.MuntheKaasWright(7, 3), abx.SPD(3), 1 + 6 + 7),
        (abx.Ito(7, 3), abx.SPD(3), 1 + 6 + 7),
        (abx.Shuffle(10, 3), abx.SO(3), 1 + 3 + 10),
        (abx.GrossmanLarson(2, 3), abx.Euclidean(32), 1 + 2 + 2),
    ],
    ids=lambda x: repr(x)[:24],
)
def test_rows_through_the_hidden_layers(alg, geometry, rows):
    """At depth 3: the point, each direction, and one row a channel for all second
    derivatives; not one for each pair of directions."""
    field = abx.lift(field_of(alg.dim, geometry), alg, geometry)
    y = geometry.random_point(key=jr.PRNGKey(0), dtype=jnp.float64)
    assert count_rows(field, y, jnp.ones(alg.primitive_size), width=8) == rows


def test_derivatives_of_a_layer_with_many_rows():
    """Those of the plain product, to second order."""
    keys = jr.split(jr.PRNGKey(0), 3)
    weight, bias, x = (jr.normal(k, s) for k, s in zip(keys, [(3, 5), (3,), (4, 2, 5)]))

    def through(layer, weight, bias, x):
        rows = jax.vmap(jax.vmap(layer, (None, None, 0)), (None, None, 0))
        return jnp.sum(jnp.sin(rows(weight, bias, x)))

    plain = lambda weight, bias, x: weight @ x + bias  # noqa: E731
    for derive in (lambda f: jax.grad(f, (0, 1, 2)), lambda f: jax.hessian(f, (0, 2))):
        ours = derive(partial(through, affine))(weight, bias, x)
        expected = derive(partial(through, plain))(weight, bias, x)
        for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(expected)):
            np.testing.assert_allclose(a, b, atol=1e-12)


def test_one_set_of_weights_for_each_row():
    """Ensembles: weights with a batch of their own."""
    weight, x = jnp.arange(24.0).reshape(2, 3, 4), jnp.arange(8.0).reshape(2, 4)
    got = jax.vmap(affine)(weight, jnp.zeros((2, 3)), x)
    np.testing.assert_allclose(got, jnp.einsum("boi,bi->bo", weight, x))


def test_activations_are_functions_of_one_number():
    x = jnp.linspace(-2.0, 2.0, 7)
    third = jax.grad(jax.grad(jax.grad(lambda a: activate(jnp.tanh, a[None])[0])))
    expected = jax.grad(jax.grad(jax.grad(jnp.tanh)))
    np.testing.assert_allclose(jax.vmap(third)(x), jax.vmap(expected)(x), atol=1e-12)
    with pytest.raises(ValueError):
        activate(jax.nn.softmax, x)

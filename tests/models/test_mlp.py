"""Perceptrons, and the vector fields made of them."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import arborax as abx
from arborax.models import MLP, VectorField


def swish(x):
    return 0.909 * x / (1 + np.exp(-x))


def test_perceptron_against_its_definition():
    mlp = MLP(3, 4, 5, 2, final_activation=jnp.tanh, key=jr.PRNGKey(0))
    x = np.array([0.3, -1.2, 0.7])
    first, second, last = (
        (np.asarray(layer.weight), np.asarray(layer.bias)) for layer in mlp.layers
    )
    hidden = swish(second[0] @ swish(first[0] @ x + first[1]) + second[1])
    expected = np.tanh(last[0] @ hidden + last[1])
    np.testing.assert_allclose(mlp(jnp.asarray(x)), expected, rtol=1e-12)
    np.testing.assert_allclose(mlp.trunk(jnp.asarray(x)), hidden, rtol=1e-12)
    rows = mlp.head(jnp.asarray(hidden), slice(1, 3))
    np.testing.assert_allclose(rows, expected[1:3], rtol=1e-12)


def test_channels_are_the_rows_of_a_vector_field():
    dim, channels = 17, 3  # long enough for lifts to take rows one by one
    mlp = MLP(dim, channels * dim, 8, 2, key=jr.PRNGKey(1))
    field = VectorField(mlp, channels, dim)
    y = jr.normal(jr.PRNGKey(2), (dim,))
    features = field.features(y)
    rows = jnp.stack([field.channel(i, features) for i in range(channels)])
    np.testing.assert_allclose(rows, field(y), rtol=1e-12)
    # The lift may take either way; values and gradients agree.
    alg = abx.GrossmanLarson(channels, 2)
    lam = jr.normal(jr.PRNGKey(3), (alg.primitive_size,))

    def value(field, whole):
        given = (lambda z: field(z)) if whole else field
        return jnp.sum(abx.lift(given, alg, abx.Euclidean(dim))(y, lam) ** 2)

    one, other = (jax.grad(value)(field, whole) for whole in (True, False))
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other)):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)

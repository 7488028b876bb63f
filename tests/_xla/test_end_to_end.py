"""What users call gives the same numbers with all tricks off."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx
from arborax._xla import plain


def signature_of(alg, times, brackets=None):
    def loss(x):
        return jnp.sum(jnp.sin(abx.signature(x, alg, brackets)))

    return loss, (2, times, alg.dim)


def solve_on(geometry, alg, brackets=None):
    """Gradient in the weights of an MLP and in the samples."""
    points = np.prod(geometry.point_shape).item()
    size = (points, alg.dim * geometry.dim, 8, 1)
    mlp = abx.models.MLP(*size, activation=jnp.tanh, key=jr.key(0))
    fields = abx.models.VectorField(mlp, alg.dim, geometry.dim)
    y0 = geometry.random_point(key=jr.key(1))

    def loss(x):
        ts = jnp.linspace(0.0, 1.0, x.shape[1])

        def one(x):
            control = abx.rough_path(ts, x, alg, window=4, brackets=brackets)
            return abx.solve(fields, y0, control, geometry=geometry).ys

        return jnp.sum(jnp.sin(jax.vmap(one)(x)))

    return loss, (2, 13, alg.dim)


def gram(**options):
    return lambda x: jnp.sum(jnp.sin(abx.signature_gram(x, **options))), (3, 9, 2)


CASES = {
    "depth two": signature_of(abx.Ito(2, 2), 20, "realised"),
    "depth three": signature_of(abx.MuntheKaasWright(2, 3), 40),
    "long": signature_of(abx.Shuffle(2, 3), 300),
    "SO(3)": solve_on(abx.SO(3), abx.Shuffle(4, 3)),
    "SPD(3)": solve_on(abx.SPD(3), abx.Ito(2, 2), "realised"),
    "gram": gram(),
    "gram of points": gram(static_kernel="rbf"),
    "gram, branched": gram(kind="branched", depth=3),
}


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradient(name):
    loss, shape = CASES[name]
    x = 0.3 * jnp.cumsum(jr.normal(jr.key(2), shape), axis=1)
    value, slope = jax.jit(jax.value_and_grad(loss))(x)
    with plain():
        expected, expected_slope = jax.jit(jax.value_and_grad(loss))(x)
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    np.testing.assert_allclose(slope, expected_slope, rtol=1e-8, atol=1e-10)
    assert jnp.max(jnp.abs(slope)) > 1e-3

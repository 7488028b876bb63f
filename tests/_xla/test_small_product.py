"""The written-out matrix product is the matrix product, derivatives included."""

import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

import arborax as abx
from arborax._xla import small_product
from arborax.geometry._rotation import feedback


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("batch", [3, 40])
def test_value_and_derivatives_under_vmap(axes, batch):
    keys = jr.split(jr.PRNGKey(0), 4)
    shapes = [(batch, 2, 5) if axes[0] == 0 else (2, 5)]
    shapes += [(batch, 5, 3) if axes[1] == 0 else (5, 3)]
    args = tuple(jr.normal(k, s) for k, s in zip(keys, shapes))
    tangents = tuple(jr.normal(k, s) for k, s in zip(keys[2:], shapes))

    def loss(product, a, b):
        return jnp.sum(jnp.sin(jax.vmap(product, axes)(a, b)))

    def everything(product):
        f = lambda a, b: loss(product, a, b)  # noqa: E731
        gradient = jax.grad(f, argnums=(0, 1))
        return f(*args), jax.jvp(gradient, args, tangents)

    ours, expected = everything(small_product), everything(jnp.matmul)
    for x, y in zip(jax.tree.leaves(ours), jax.tree.leaves(expected)):
        assert jnp.allclose(x, y, rtol=1e-12, atol=1e-12)


def test_reverse_mode_has_no_short_sums():
    a, b = jnp.ones((7, 3, 3)), jnp.ones((7, 3, 3))

    def pull(a, b, c):
        return jax.vjp(jax.vmap(small_product), a, b)[1](c)

    text = str(jax.make_jaxpr(pull)(a, b, a))
    assert "arborax_small_product" in text and "reduce_sum" not in text


def test_newton_factor_of_rotations_only_removes_rounding():
    """On the group the factor is the identity: what it changes is rounding."""
    y = abx.SO(3).random_point(key=jr.PRNGKey(0), dtype=jnp.float64)
    assert jnp.max(jnp.abs(feedback(y) - y)) <= 4 * jnp.finfo(jnp.float64).eps

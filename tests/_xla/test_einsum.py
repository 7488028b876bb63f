"""Contractions of small tensors are those of `jnp.einsum`, derivatives included."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from arborax._xla import outer, plain, scale, small_einsum, small_product


CASES = [
    ("ia,isjk->asjk", (3, 2), (3, 2, 4, 5)),
    ("pjk,pjn->kn", (2, 3, 4), (2, 3, 5)),
    ("ab,c->abc", (2, 3), (4,)),
    ("kn,->kn", (2, 3), ()),
    ("abc,abcn->n", (6, 6, 6), (6, 6, 6, 2)),  # a long sum
    ("abc,abcn->n", (7, 7, 7), (7, 7, 7, 2)),  # left to the library
]


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("spec,left,right", CASES)
def test_value_and_derivatives_under_vmap(spec, left, right, axes, place):
    keys = jr.split(jr.PRNGKey(0), 4)
    shapes = [
        shape if axis is None else (5, *shape)
        for shape, axis in zip((left, right), axes)
    ]
    args = tuple(jr.normal(k, s) for k, s in zip(keys, shapes))
    tangents = tuple(jr.normal(k, s) for k, s in zip(keys[2:], shapes))
    ours = lambda a, b: small_einsum(spec, a, b, place=place)  # noqa: E731
    theirs = lambda a, b: jnp.einsum(spec, a, b)  # noqa: E731

    @jax.jit
    def everything(args):
        out = []
        for product in (ours, theirs):
            f = lambda a, b: jnp.sum(jnp.sin(jax.vmap(product, axes)(a, b)))  # noqa: E731, B023
            out.append((f(*args), jax.jvp(jax.grad(f, (0, 1)), args, tangents)))
        return out

    one, other = everything(args)
    for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10)


def test_the_batch_goes_last():
    out = jax.make_jaxpr(
        jax.vmap(lambda a: small_einsum("ab,bc->ac", a, jnp.ones((3, 4)), place="last"))
    )(jnp.ones((5, 2, 3)))
    (eqn,) = [e for e in out.eqns if e.primitive.name == "arborax_einsum"]
    assert eqn.outvars[0].aval.shape == (2, 4, 5)


def test_reverse_mode_has_no_short_sums():
    a, b = jnp.ones((7, 3, 3)), jnp.ones((7, 3, 3))

    def pull(a, b, c):
        return jax.vjp(jax.vmap(small_product), a, b)[1](c)

    text = str(jax.make_jaxpr(pull)(a, b, a))
    assert "arborax_einsum" in text and "reduce_sum" not in text


def plain_outer(x, y):
    return jnp.einsum("bmt,bnt->bmnt", x, y).reshape(x.shape[0], -1, x.shape[2])


@pytest.mark.parametrize("m, n", [(2, 3), (70, 2), (2, 70)])
def test_outer_products_of_words(m, n, getkey):
    """Long sums are not written out."""
    x, y = jr.normal(getkey(), (2, m, 3)), jr.normal(getkey(), (2, n, 3))
    w = jr.normal(getkey(), (2, m * n, 3))
    np.testing.assert_allclose(outer(x, y), plain_outer(x, y), rtol=1e-14)

    def loss(function):
        return lambda x, y: jnp.sum(w * jnp.sin(function(x, y)))

    ours = jax.grad(loss(outer), argnums=(0, 1))(x, y)
    expected = jax.grad(loss(plain_outer), argnums=(0, 1))(x, y)
    for a, b in zip(ours, expected):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_the_switch_leaves_no_primitive():
    def everything(a):
        return scale(a, small_product(a, a))

    def names():
        text = str(jax.make_jaxpr(everything)(jnp.ones((3, 3))))
        return text.count("arborax_")

    assert names() == 2
    with plain("sums"):
        assert names() == 0
    with pytest.raises(ValueError, match="do not exist"):
        plain("sum")

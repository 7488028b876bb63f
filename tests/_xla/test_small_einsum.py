"""Contractions of small tensors are those of `jnp.einsum`, derivatives included."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx
from arborax._xla import settle, small_einsum


CASES = [
    ("ia,isjk->asjk", (3, 2), (3, 2, 4, 5)),
    ("pjk,pjn->kn", (2, 3, 4), (2, 3, 5)),
    ("ab,c->abc", (2, 3), (4,)),
    ("kn,->kn", (2, 3), ()),
    ("abc,abcn->n", (6, 6, 6), (6, 6, 6, 2)),  # a long sum
    ("abc,abcn->n", (7, 7, 7), (7, 7, 7, 2)),  # left to the library
]


@pytest.mark.parametrize("leading", [False, True])
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("spec,left,right", CASES)
def test_value_and_derivatives_under_vmap(spec, left, right, axes, leading):
    keys = jr.split(jr.PRNGKey(0), 4)
    shapes = [
        shape if axis is None else (5, *shape)
        for shape, axis in zip((left, right), axes)
    ]
    args = tuple(jr.normal(k, s) for k, s in zip(keys, shapes))
    tangents = tuple(jr.normal(k, s) for k, s in zip(keys[2:], shapes))
    ours = lambda a, b: small_einsum(spec, a, b, leading=leading)  # noqa: E731
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


def test_the_batch_comes_last():
    out = jax.make_jaxpr(
        jax.vmap(lambda a: small_einsum("ab,bc->ac", a, jnp.ones((3, 4))))
    )(jnp.ones((5, 2, 3)))
    (eqn,) = [e for e in out.eqns if e.primitive.name == "arborax_small_einsum"]
    assert eqn.outvars[0].aval.shape == (2, 4, 5)


@pytest.mark.parametrize("store", [False, True])
def test_settled_values_are_the_same_and_do_not_mix(store):
    """To the last bit: a path that is not finite leaves the others alone."""
    x = jr.normal(jr.PRNGKey(0), (4, 6)).at[2].set(jnp.nan).at[3, 0].set(jnp.inf)
    f = lambda z: settle(z, keep=True, store=store)  # noqa: E731
    np.testing.assert_array_equal(jax.jit(jax.vmap(f))(x), x)
    np.testing.assert_array_equal(jax.jit(jax.vmap(f, 1, 1))(x), x)
    np.testing.assert_array_equal(jax.jit(f)(x.T), x.T)


@pytest.mark.parametrize(
    "geometry",
    [abx.SPD(2), abx.SPD(3), abx.SPD(4), abx.SPD(3, "root"), abx.SO(3), abx.Sphere(2)],
    ids=repr,
)
def test_derivatives_of_frame_fields_along_one_another(geometry):
    """`turning` against finite differences of the frame, pair by pair."""
    y = geometry.random_point(key=jr.PRNGKey(1), dtype=jnp.float64)
    m = jr.normal(jr.PRNGKey(2), (geometry.dim, geometry.dim))
    step, total = 1e-5, 0
    eye = jnp.eye(geometry.dim)
    for a in range(geometry.dim):
        for b in range(geometry.dim):
            along = step * geometry.frame(y, eye[a])
            difference = geometry.frame(y + along, eye[b]) - geometry.frame(
                y - along, eye[b]
            )
            total = total + m[a, b] * difference / (2 * step)
    np.testing.assert_allclose(geometry.turning(y, m), total, atol=1e-6)

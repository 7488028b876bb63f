"""Quadratic forms with derivatives of their own against plain sums."""

import jax
import jax.extend as jex
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from arborax._xla import quadratic


def plain(pairs, a):
    return jnp.einsum("pqk,pw,qw->kw", pairs, a, a)


def inputs(rows, channels=3, width=4, batch=2):
    shapes = [(batch, rows, rows, channels), (batch, rows, width)]
    return tuple(jr.normal(jr.PRNGKey(k), shape) for k, shape in enumerate(shapes))


@pytest.mark.parametrize("rows", [1, 2, 6, 9])  # nine: every product in both orders
def test_value_and_derivatives_of_first_and_second_order(rows):
    """The coefficients are not symmetric: nothing but the sum decides."""
    args = inputs(rows)
    directions = tuple(jnp.cos(7 * x) for x in args)

    @jax.jit
    def everything(args):
        out = []
        for form in (quadratic, plain):
            f = lambda *args: jnp.sum(jnp.sin(jax.vmap(form)(*args)))  # noqa: E731, B023
            gradient = jax.grad(f, (0, 1))
            forward = jax.jvp(f, args, directions)
            out.append((forward, gradient(*args), jax.jvp(gradient, args, directions)))
        return out

    one, other = everything(args)
    for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10)


def test_a_gradient_takes_each_product_of_two_rows_once():
    """The largest matrix product of the gradient has 21 rows for six directions, not
    36, and there is no second one for the rows."""
    pairs, a = (x[0] for x in inputs(6))
    gradient = jax.grad(lambda *args: jnp.sum(jnp.sin(quadratic(*args))), (0, 1))
    shapes = []

    def visit(jaxpr):
        for eqn in jaxpr.eqns:
            if eqn.primitive.name == "arborax_einsum":
                shapes.append(eqn.outvars[0].aval.shape)
            for value in eqn.params.values():
                if isinstance(value, jex.core.ClosedJaxpr):
                    visit(value.jaxpr)

    visit(jax.make_jaxpr(gradient)(pairs, a).jaxpr)
    assert (3, 21) in shapes and (3, 36) not in shapes

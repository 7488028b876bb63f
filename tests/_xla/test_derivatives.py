"""The library's own primitives: every batch axis, every operand with or without one,
and derivatives of their own where those of JAX would be lost."""

import dataclasses
import functools as ft
import itertools as it

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arborax as abx
from arborax._xla import (
    apply_map,
    apply_rows,
    barrier,
    barrier_back,
    cosine,
    custom_jvp,
    in_pieces,
    in_turn,
    inner,
    Linear,
    outer,
    quadratic,
    running_sums,
    scale,
    small_einsum,
    small_product,
)


TABLE = abx.Shuffle(2, 3).primitive_maps[0]


def plain_outer(x, y):
    out = x[:, :, None] * y[:, None]
    return out.reshape(out.shape[0], -1, *out.shape[3:])


def sums_before(x, reverse=False):
    return jax.lax.cumsum(x, axis=x.ndim - 1, reverse=reverse) - x


def einsum(spec, place):
    return lambda a, b: small_einsum(spec, a, b, place=place)


# name: (ours, the plain form, shapes)
PRIMITIVES = {
    "small_product": (small_product, jnp.matmul, [(2, 3), (3, 4)]),
    "scale": (scale, jnp.multiply, [(1, 4), (3, 4)]),
    "einsum, batch last": (
        einsum("ab,bc->ac", "last"),
        lambda a, b: jnp.einsum("ab,bc->ac", a, b),
        [(2, 3), (3, 4)],
    ),
    "einsum, batch first": (
        einsum("ab,abc->c", "first"),
        lambda a, b: jnp.einsum("ab,abc->c", a, b),
        [(2, 3), (2, 3, 4)],
    ),
    "outer": (outer, plain_outer, [(2, 3, 4), (2, 2, 4)]),
    "apply_rows": (
        lambda x: apply_rows(TABLE, x),
        lambda x: jnp.asarray(TABLE.todense()) @ x,
        [(TABLE.shape[1], 2)],
    ),
    "apply_map": (
        lambda x: apply_map(TABLE, x),
        lambda x: x @ jnp.asarray(TABLE.todense()).T,
        [(2, TABLE.shape[1])],
    ),
    "quadratic": (
        quadratic,
        lambda x, a: jnp.einsum("pqk,pn,qn->kn", x, a, a),
        [(2, 2, 3), (2, 4)],
    ),
    "one sum": (running_sums, sums_before, [(2, 1)]),
    "running sums": (running_sums, sums_before, [(2, 300)]),  # tiles of tiles
    "reversed sums": (
        ft.partial(running_sums, reverse=True),
        ft.partial(sums_before, reverse=True),
        [(2, 35)],
    ),
    "pieces": (
        lambda x: in_pieces(lambda y: jnp.sin(y).T, (x,), 2, place="last"),
        lambda x: jnp.sin(x).T,
        [(5, 2)],
    ),
    "inner": (inner, lambda x, y: jnp.sum(x * y, axis=-1), [(2, 3), (2, 3)]),
    "cosine": (cosine, lambda x: jnp.cos(2 * jnp.pi * x), [(2, 3)]),
    "in turn": (lambda x: in_turn(jnp.sin, x), jnp.sin, [(2, 3)]),
    "barrier": (barrier, lambda x: x, [(2, 3)]),
    "barrier_back": (barrier_back, lambda x: x, [(2, 3)]),
}


def everything(function, axes, args, direction):
    """Value, gradient, and derivatives of both, of a batch inside a loop."""

    def total(args):
        def body(carry, s):
            moved = [x * s + carry for x in args]
            out = jax.vmap(function, axes)(*moved)
            return carry + jnp.mean(jnp.sin(out)), None

        return jax.lax.scan(body, jnp.zeros(()), jnp.array([0.6, 1.2]))[0]

    return jax.jit(lambda a, v: jax.jvp(jax.value_and_grad(total), (a,), (v,)))(
        args, direction
    )


@pytest.mark.parametrize("name", PRIMITIVES)
def test_every_batch_axis(name):
    """Against the plain form, for a first and a last axis of each operand, or none."""
    ours, plain, shapes = PRIMITIVES[name]
    rng = np.random.default_rng(0)
    choices = [(None, 0, len(shape)) for shape in shapes]
    for axes in it.product(*choices):
        if all(axis is None for axis in axes):
            continue
        pairs = list(zip(shapes, axes))
        full = [s if a is None else (*s[:a], 3, *s[a:]) for s, a in pairs]
        args, direction = (
            [jnp.asarray(rng.normal(size=shape)) for shape in full] for _ in range(2)
        )
        got = everything(ours, axes, args, direction)
        want = everything(plain, axes, args, direction)
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12, err_msg=str(axes))


def test_a_value_that_ignores_its_argument():
    """Its batch is that of the argument all the same; `jax.custom_jvp` fails here."""

    @custom_jvp
    def one(x):
        return jnp.ones_like(x)

    @one.defjvp
    def _(primals, tangents):
        return one(*primals), jnp.sin(primals[0]) * tangents[0]

    def last(x):
        body = lambda c, _: (c + jnp.sum(one(c).reshape(3, 1)) * c, None)  # noqa: E731
        return jax.lax.scan(body, x, None, length=2)[0]

    x = jnp.arange(12.0).reshape(4, 3)
    got = jax.grad(lambda z: jnp.sum(jax.vmap(last)(z)))(x)
    want = [jax.grad(lambda z: jnp.sum(last(z)))(row) for row in x]
    np.testing.assert_allclose(got, jnp.stack(want))


def test_rules_survive_reverse_over_reverse_in_a_loop():
    """Where JAX forgets the rule, a loop of dynamic length would be reversed."""

    @custom_jvp
    def cube(x):
        body = lambda carry: (carry[0] - 1, carry[1] * x)  # noqa: E731
        start = (jnp.asarray(3), jnp.ones_like(x))
        return jax.lax.while_loop(lambda carry: carry[0] > 0, body, start)[1]

    @cube.defjvp
    def _(primals, tangents):
        (x,), (dx,) = primals, tangents
        return cube(x), 3 * cube(x) / x * dx

    def twice(f, x):
        body = jax.checkpoint(lambda c, _: (f(jnp.sin(c)), None))
        return jax.lax.scan(body, x, None, length=2)[0]

    second = lambda f: jax.grad(jax.grad(lambda x: twice(f, x)))  # noqa: E731
    got = jax.jit(second(cube))(0.7)
    np.testing.assert_allclose(got, second(lambda x: x**3)(0.7), rtol=1e-12)


@dataclasses.dataclass(frozen=True)
class Weighted(Linear):
    """The sum of two arguments, each times the first."""

    fixed: int = 1

    def value(self, weight, x, y):
        return [weight * (x + 2 * y)]

    @property
    def transpose(self):
        return Back()


@dataclasses.dataclass(frozen=True)
class Back(Linear):
    fixed: int = 1

    def value(self, weight, c):
        return [weight * c, 2 * weight * c]

    @property
    def transpose(self):
        return Weighted()


@pytest.mark.parametrize("axes", [(0, None, 1), (None, 0, None), (0, None, None)])
def test_linear_functions_with_a_transpose_of_their_own(axes):
    rng = np.random.default_rng(0)
    shapes = [(3,) if a is None else (2, 3) if a == 0 else (3, 2) for a in axes]
    args = [jnp.asarray(rng.normal(size=shape)) for shape in shapes]
    direction = [jnp.asarray(rng.normal(size=shape)) for shape in shapes]
    got = everything(lambda *xs: Weighted()(*xs)[0], axes, args, direction)
    want = everything(lambda w, x, y: w * (x + 2 * y), axes, args, direction)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)

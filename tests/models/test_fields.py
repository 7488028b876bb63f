"""Closed forms and fast paths of fields against the plain functions.

Networks are evaluated by products made for many rows, activations have derivatives of
their own, and lifts take derivatives of a `VectorField` layer by layer. Here all of it
is compared with the formula in plain JAX, lifted by forward mode: value, gradient and
second derivative, for a batch inside a loop.
"""

import contextlib
import functools as ft
import itertools as it

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import arborax as abx
from arborax._xla import plain
from arborax.models import activate, lipswish, MLP, VectorField
from arborax_experiments.spd.field import log_cholesky, LogCholeskyField


ACTIVATIONS = {
    f.__name__: f
    for f in (
        *(jax.nn.identity, lipswish, jnp.square, jnp.sin, jnp.tanh, jnp.ones_like),
        *(jax.nn.relu, jax.nn.relu6, jax.nn.leaky_relu, jax.nn.elu, jax.nn.selu),
        *(jax.nn.celu, jax.nn.gelu, jax.nn.silu, jax.nn.mish, jax.nn.sigmoid),
        *(jax.nn.log_sigmoid, jax.nn.softplus, jax.nn.squareplus, jax.nn.soft_sign),
        *(jax.nn.hard_tanh, jax.nn.hard_sigmoid, jax.nn.hard_silu),
        *(jax.nn.sparse_plus, jax.nn.sparse_sigmoid),
    )
}
SPACES = {"Euclidean": abx.Euclidean(3), "SO": abx.SO(3), "SPD": abx.SPD(2)}
ALGEBRAS = {"Shuffle": abx.Shuffle, "Ito": abx.Ito, "MKW": abx.MuntheKaasWright}


class Plain(eqx.Module):
    """The formula of an MLP."""

    mlp: MLP

    def __call__(self, x):
        *hidden, last = self.mlp.layers
        for layer in hidden:
            x = self.mlp.activation(layer.weight @ x + layer.bias)
        return self.mlp.final_activation(last.weight @ x + last.bias)


@ft.partial(jax.jit, static_argnums=0)
def derivatives(function, args, direction):
    """Value and gradient, and a second derivative of each along the direction."""
    return jax.jvp(jax.value_and_grad(function), (args,), (direction,))


def agree(ours, plain, tolerance):
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(plain), strict=True):
        assert a.dtype == b.dtype
        scale = max(1.0, float(jnp.max(jnp.abs(b), initial=0)))
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


def tangent(args):
    """A direction for the derivative of the gradient."""
    leaves, tree = jax.tree.flatten(args)
    keys = jr.split(jr.PRNGKey(9), len(leaves))
    draw = [jr.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves)]
    return jax.tree.unflatten(tree, draw)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    """A batch inside a loop, two derivatives deep, and a third one inside; in single
    precision for every other activation."""
    dtype = (jnp.float32, jnp.float64)[list(ACTIVATIONS).index(name) % 2]
    f = ACTIVATIONS[name]
    x = jnp.linspace(-4.1, 4.3, 6, dtype=dtype).reshape(2, 3)

    def total(apply, x):
        """The value, and its derivative along the carry."""

        def body(carry, s):
            value, dot = jax.jvp(apply, (s * carry,), (carry,))
            return carry + jnp.sin(value) / 9, jnp.sum(dot)

        def one(x):
            last, dots = jax.lax.scan(body, x, jnp.asarray([0.7, 1.1], dtype))
            return jnp.sum(last) + jnp.sum(jnp.cos(dots))

        return jnp.sum(jax.vmap(one)(x))

    ours = derivatives(lambda z: total(lambda a: activate(f, a), z), x, jnp.cos(x))
    plain = derivatives(lambda z: total(jax.vmap(f), z), x, jnp.cos(x))
    agree(ours, plain, 1e-4 if dtype == jnp.float32 else 1e-11)


def compare(ours, plain, alg, geometry, dtype, tolerance=None):
    """Two window fields: of an Equinox module, and of a plain function of the module
    and the point, for two points inside a loop of two log-signatures."""
    point = jax.vmap(lambda k: geometry.random_point(key=k, dtype=dtype))
    ys = point(jr.split(jr.PRNGKey(2), 2))
    lams = jr.normal(jr.PRNGKey(3), (2, alg.primitive_size), dtype) / 3
    weights, rest = eqx.partition(ours, eqx.is_inexact_array)

    def total(fields):
        def function(args):
            module, ys = eqx.combine(args[0], rest), args[1]
            field = abx.lift(fields(module), alg, geometry)

            def body(carry, lam):
                out = jax.vmap(field, (0, None))(ys, lam)
                return carry + jnp.sum(jnp.sin(out + carry)), None

            return jax.lax.scan(body, jnp.zeros((), dtype), lams)[0]

        return function

    args = weights, ys
    direction = tangent(args)
    got = derivatives(total(lambda module: module), args, direction)
    opaque = lambda module: lambda y: plain(module, y)  # noqa: E731
    want = derivatives(total(opaque), args, direction)
    agree(got, want, tolerance or (3e-4 if dtype == jnp.float32 else 1e-9))


def vector_field(activation, last, channels, geometry, dtype, width=4):
    size = int(np.prod(geometry.point_shape))
    mlp = MLP(
        *(size, channels * geometry.dim, width, 2),
        activation=activation,
        final_activation=last,
        dtype=dtype,
        key=jr.PRNGKey(1),
    )
    return VectorField(mlp, channels, geometry.dim)


def plain_vector_field(field, y):
    return Plain(field.mlp)(jnp.ravel(y)).reshape(field.channels, field.dim)


# One setting for each of several activations, and all settings between them.
CHOSEN = [
    ("identity", "Shuffle", 2, "Euclidean", jnp.float64, ()),
    ("identity", "Ito", 3, "SO", jnp.float64, ("barrier",)),
    ("relu", "Ito", 3, "Euclidean", jnp.float64, ()),
    ("square", "Ito", 2, "SO", jnp.float32, ()),
    ("sin", "Shuffle", 3, "SO", jnp.float64, ()),
    ("ones_like", "MKW", 3, "SPD", jnp.float64, ()),
    ("softplus", "MKW", 2, "SPD", jnp.float32, ("all",)),
]


@pytest.mark.parametrize("name,algebra,depth,space,dtype,off", CHOSEN, ids=str)
def test_vector_fields(name, algebra, depth, space, dtype, off):
    """Without compiler tricks as well: they may change nothing but the speed."""
    geometry, alg = SPACES[space], ALGEBRAS[algebra](2, depth)
    field = vector_field(ACTIVATIONS[name], jax.nn.identity, 2, geometry, dtype)
    with plain(*off) if off else contextlib.nullcontext():
        compare(field, plain_vector_field, alg, geometry, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_all_vector_fields(name, depth):
    """Each activation once per depth. Algebras, spaces and dtypes take turns, so that
    each of their combinations is met: all for every activation would take two hours."""
    turn = list(ACTIVATIONS).index(name)
    settings = list(it.product(ALGEBRAS, SPACES, (jnp.float64, jnp.float32)))
    algebra, space, dtype = settings[(turn + 9 * (depth - 2)) % len(settings)]
    # Squares of squares: values of 1e7 inside a sine, of which single precision has no
    # digits and double precision nine.
    large = (name, depth) == ("square", 3)
    dtype = jnp.float64 if large else dtype
    geometry, alg = SPACES[space], ALGEBRAS[algebra](2, depth)
    last = ACTIVATIONS[name] if depth == 2 else jax.nn.identity
    field = vector_field(ACTIVATIONS[name], last, 2, geometry, dtype)
    tolerance = 1e-7 if large else None
    compare(field, plain_vector_field, alg, geometry, dtype, tolerance)


@pytest.mark.parametrize("depth", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_fields_on_the_cone(depth):
    """The fields of the SPD experiment."""
    field = LogCholeskyField(
        2, 3, 4, 1, reach=2.0, dtype=jnp.float64, key=jr.PRNGKey(0)
    )
    noise = lambda x: x + 0.3 * jr.normal(jr.PRNGKey(1), x.shape)  # noqa: E731
    field = jax.tree.map(lambda x: noise(x) if eqx.is_array(x) else x, field)

    def plain(field, y):
        z = log_cholesky(y)
        (first, last), shape = field.mlp.layers, (-1, field.linear.shape[0])
        x = lipswish(first.weight @ z + first.bias)
        u = (last.weight @ x + last.bias).reshape(shape)
        u = u.at[0].add(field.linear @ z)
        values = field.amplitude * jnp.tanh(u / field.amplitude)
        far = 1 + (jnp.sum(z**2) / field.reach**2) ** 2
        return values / jnp.stack([jnp.ones_like(far), far])[:, None]

    compare(field, plain, abx.Ito(2, depth), abx.SPD(2), jnp.float64)

"""Inside `jax.shard_map` the parts of an operation must vary over the same axes."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from arborax._xla import scan, sharded, small_product, vary_alike, vary_as


MESH = jax.sharding.Mesh(np.array(jax.devices()[:2]), "i")
X = jnp.arange(6.0).reshape(2, 3)


def on_two(function):
    mapped = jax.shard_map(function, mesh=MESH, in_specs=P("i"), out_specs=P("i"))
    return jax.jit(mapped)


def test_outside_nothing_is_done():
    a, b = jnp.ones(2), jnp.ones(3)
    assert not sharded()
    assert vary_as(a, b) is a
    one, two = vary_alike(a, b)
    assert one is a and two is b


def test_operands_of_a_primitive():
    """A constant and an array that varies."""
    seen = []

    @on_two
    def double(x):
        seen.append(sharded())
        return small_product(x, 2 * jnp.eye(3))

    np.testing.assert_allclose(double(X), 2 * X)
    assert seen[0]


def test_loops_that_begin_with_constants():
    """`jax.lax.scan` refuses a carry that begins to vary; ours varies from the start,
    the second part because the first one does."""

    def sums(loop, x):
        def body(carry, row):
            total, before = carry
            return (total + row, before + total), before

        start = jnp.zeros(()), jnp.zeros(())
        return loop(body, start, x[0])[1][None]

    want = np.cumsum(np.cumsum(X, axis=1), axis=1)
    want = np.pad(want, ((0, 0), (2, 0)))[:, :3]
    np.testing.assert_allclose(on_two(ft.partial(sums, scan))(X), want)
    try:
        on_two(ft.partial(sums, jax.lax.scan))(X)
    except TypeError:
        return
    raise AssertionError("JAX does it by itself now: our `scan` can go.")

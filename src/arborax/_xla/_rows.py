"""Products of many rows with one matrix.

Lifts push a state and several directions through the same layers, and reverse mode
then sums over all of them. JAX batches both steps one axis at a time; on a CPU the
compiled program transposes large arrays for the gradient of the weights, and adds along
short axes element by element. Here all rows, whatever axes they come from, enter one
product, and its transposes are such products again.
"""

import jax
import jax.lax as lax
import jax.numpy as jnp
from jax.interpreters import ad, batching
from jaxtyping import Array, Float

from ._primitive import bilinear


def _join(x: Array) -> Array:
    return x.reshape(-1, x.shape[-1])


def _product(x: Array, weight: Array) -> Array:
    """(.. in), (out in) -> (.. out)."""
    return (_join(x) @ weight.T).reshape(*x.shape[:-1], weight.shape[0])


def _outer(a: Array, b: Array) -> Array:
    """(.. m), (.. n) -> (m n), summed over all rows."""
    return lax.dot_general(_join(a), _join(b), (((0,), (0,)), ((), ())))


_product_p, _bind_product = bilinear(
    "rows_product", _product, lambda x, weight: (*x.shape[:-1], weight.shape[0])
)
_outer_p, _bind_outer = bilinear(
    "rows_outer", _outer, lambda a, b: (a.shape[-1], b.shape[-1])
)


def _product_transpose(cotangent, x, weight):
    if isinstance(cotangent, ad.Zero):
        return [None, None]
    if ad.is_undefined_primal(x):
        return [_bind_product(cotangent, weight.T), None]
    return [None, _bind_outer(cotangent, x)]


def _outer_transpose(cotangent, a, b):
    if isinstance(cotangent, ad.Zero):
        return [None, None]
    if ad.is_undefined_primal(a):
        return [_bind_product(b, cotangent), None]
    return [None, _bind_product(a, cotangent.T)]


def _product_batch(args, dims):
    if dims[1] is None:  # one weight matrix for all: only more rows
        return _bind_product(jnp.moveaxis(args[0], dims[0], 0), args[1]), 0
    return jax.vmap(_product, in_axes=dims)(*args), 0


def _outer_batch(args, dims):
    return jax.vmap(_outer, in_axes=dims)(*args), 0


ad.primitive_transposes[_product_p] = _product_transpose
ad.primitive_transposes[_outer_p] = _outer_transpose
batching.primitive_batchers[_product_p] = _product_batch
batching.primitive_batchers[_outer_p] = _outer_batch


def rows_product(
    x: Float[Array, "*rows in"], weight: Float[Array, "out in"]
) -> Float[Array, "*rows out"]:
    """`x @ weight.T`. All axes of `x` but the last, and those that `vmap` gives to it,
    become rows of one product, and of one product in the gradient of `weight`."""
    dtype = jnp.result_type(weight, x)
    return _bind_product(jnp.asarray(x, dtype), jnp.asarray(weight, dtype))

"""Outer products over words whose derivatives are sums written out term by term.

The derivative of a broadcast product is a product and a sum over the broadcast axis.
XLA's CPU backend hands that pair to a library routine which, for the short axes of
alphabets, takes far longer than adding the terms one after another. Three bilinear maps
that are each other's transposes keep all orders of derivatives in the fast form.
"""

from typing import Any

import jax.numpy as jnp
from jax.interpreters import ad, batching
from jaxtyping import Array, Float

from ._primitive import bilinear, first_size
from ._stored import stored


_WRITTEN_OUT = 64
_MANY = 8  # terms: XLA joins sums of sums to one loop, too long for vector instructions


def _sum_of_products(pairs: list) -> Array:
    total = pairs[0][0] * pairs[0][1]
    for x, y in pairs[1:]:
        total = total + x * y
    return stored(total) if len(pairs) >= _MANY else total


def _evaluate(x: Array, y: Array, *, kind: str) -> Array:
    """`outer`: (b m ..), (b n ..) -> (b m n ..); `left`: (b m n ..), (b n ..) ->
    (b m ..); `right`: (b m n ..), (b m ..) -> (b n ..)."""
    if kind == "outer":
        return x[:, :, None] * y[:, None, :]
    count = y.shape[1]
    if count > _WRITTEN_OUT:
        axis = 2 if kind == "left" else 1
        return jnp.sum(x * jnp.expand_dims(y, 3 - axis), axis=axis)
    if kind == "left":
        return _sum_of_products([(x[:, :, k], y[:, k, None]) for k in range(count)])
    return _sum_of_products([(x[:, k], y[:, k, None]) for k in range(count)])


def _shape(x, y, *, kind: str) -> tuple:
    if kind == "outer":
        return *x.shape[:2], *y.shape[1:]
    kept = x.shape[1] if kind == "left" else x.shape[2]
    return x.shape[0], kept, *x.shape[3:]


_product_p, _product = bilinear("word_product", _evaluate, _shape, "kind")


def _bind(kind: str, x: Any, y: Any) -> Array:
    return _product(x, y, kind=kind)


def _transpose(cotangent, x, y, *, kind: str):
    if isinstance(cotangent, ad.Zero):
        return [None, None]
    wanted = ad.is_undefined_primal
    if kind == "outer":
        dx = _bind("left", cotangent, y) if wanted(x) else None
        dy = _bind("right", cotangent, x) if wanted(y) else None
    elif kind == "left":
        dx = _bind("outer", cotangent, y) if wanted(x) else None
        dy = _bind("right", x, cotangent) if wanted(y) else None
    else:
        dx = _bind("outer", y, cotangent) if wanted(x) else None
        dy = _bind("left", x, cotangent) if wanted(y) else None
    return [dx, dy]


def _batch(args, dims, *, kind: str):
    """Another batch axis joins the first one."""
    size = first_size(args, dims)
    moved = [
        jnp.broadcast_to(a[None], (size, *a.shape))
        if d is None
        else jnp.moveaxis(a, d, 0)
        for a, d in zip(args, dims)
    ]
    inner = moved[0].shape[1]
    flat = [a.reshape(size * inner, *a.shape[2:]) for a in moved]
    out = _bind(kind, *flat)
    return out.reshape(size, inner, *out.shape[1:]), 0


ad.primitive_transposes[_product_p] = _transpose
batching.primitive_batchers[_product_p] = _batch


def outer(
    left: Float[Array, "batch m ..."], right: Float[Array, "batch n ..."]
) -> Float[Array, "batch mn ..."]:
    """`left_u right_v` for all words `u`, `v`, the second running faster."""
    product = _bind("outer", left, right)
    batch, m, n, *rest = product.shape
    return product.reshape(batch, m * n, *rest)

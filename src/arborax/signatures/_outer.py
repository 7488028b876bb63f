"""Outer products over words whose derivatives are sums written out term by term.

The derivative of a broadcast product is a product and a sum over the broadcast axis.
XLA's CPU backend hands that pair to a library routine which, for the short axes of
alphabets, takes far longer than adding the terms one after another. Three bilinear maps
that are each other's transposes keep all orders of derivatives in the fast form.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

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


_product_p = Primitive("arborax_word_product")
_product_p.def_impl(jax.jit(_evaluate, static_argnames="kind"))


@_product_p.def_abstract_eval
def _abstract(x, y, *, kind: str):
    if kind == "outer":
        return x.update(shape=(*x.shape[:2], *y.shape[1:]))
    kept = x.shape[1] if kind == "left" else x.shape[2]
    return x.update(shape=(x.shape[0], kept, *x.shape[3:]))


def _bind(kind: str, x: Any, y: Any) -> Array:
    return _product_p.bind(x, y, kind=kind)


def _transpose(cotangent, x, y, *, kind: str):
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
    size = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
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


def _jvp(primals, tangents, *, kind: str):
    (x, y), (dx, dy) = primals, tangents
    out = _bind(kind, x, y)
    terms = []
    if not isinstance(dx, ad.Zero):
        terms.append(_bind(kind, dx, y))
    if not isinstance(dy, ad.Zero):
        terms.append(_bind(kind, x, dy))
    return out, terms[0] if len(terms) == 1 else terms[0] + terms[1]


ad.primitive_jvps[_product_p] = _jvp
ad.primitive_transposes[_product_p] = _transpose
batching.primitive_batchers[_product_p] = _batch
mlir.register_lowering(_product_p, mlir.lower_fun(_evaluate, multiple_results=False))


def outer(
    left: Float[Array, "batch m ..."], right: Float[Array, "batch n ..."]
) -> Float[Array, "batch mn ..."]:
    """`left_u right_v` for all words `u`, `v`, the second running faster."""
    product = _bind("outer", left, right)
    batch, m, n, *rest = product.shape
    return product.reshape(batch, m * n, *rest)

"""Products of small matrices, written out term by term, derivatives included.

A batch of tiny matrix products is a slow loop on a CPU, and so is a product followed by
a sum over a short axis, the form in which the derivative of a broadcast product comes:
XLA hands both to library routines made for large arrays. Here the sum over the inner
axis is a chain of additions that fuses with whatever is around it. As a primitive whose
transposes are products of the same kind it stays so in derivatives of all orders.
"""

import jax
import jax.numpy as jnp
from jax.interpreters import ad, batching
from jaxtyping import Array, Float

from ._primitive import bilinear, broadcast_size, is_symbolic


_WRITTEN_OUT = 16  # length of sums over broadcast axes
_SHORT_ROW = 8
_LONG = 32  # inner axes that are longer are left to the library, twice that for a row


def _evaluate(a: Array, b: Array) -> Array:
    """(.. m k), (.. k n) -> (.. m n); batch axes of size one are broadcast."""
    if a.shape[-1] > (_LONG if a.shape[-2] > 1 else 2 * _LONG):
        return jnp.matmul(a, b)
    total = a[..., :, :1] * b[..., :1, :]
    for k in range(1, a.shape[-1]):
        total = total + a[..., :, k : k + 1] * b[..., k : k + 1, :]
    return total


def _shape(a, b) -> tuple:
    batch = tuple(map(broadcast_size, a.shape[:-2], b.shape[:-2]))
    return *batch, a.shape[-2], b.shape[-1]


_product_p, _bind = bilinear("small_product", _evaluate, _shape)


def _sum_to(x: Array, shape: tuple[int, ...]) -> Array:
    """Sum over the batch axes that were broadcast."""
    for axis, (have, want) in enumerate(zip(x.shape, shape)):
        if have == want:
            continue
        if is_symbolic(have) or have > _WRITTEN_OUT:
            x = jnp.sum(x, axis=axis, keepdims=True)
            continue
        terms = [jax.lax.slice_in_dim(x, k, k + 1, axis=axis) for k in range(have)]
        x = terms[0]
        for term in terms[1:]:
            x = x + term
    return x


def _transpose(cotangent, a, b):
    if isinstance(cotangent, ad.Zero):
        return [None, None]
    if ad.is_undefined_primal(a):
        transposed = jnp.swapaxes(b, -1, -2)
        # Sums along rows do not run side by side in a written-out chain.
        short = cotangent.shape[-1] <= _SHORT_ROW
        multiply = _bind if short else jnp.matmul
        product = multiply(cotangent, transposed)
        return [_sum_to(product, a.aval.shape), None]
    product = _bind(jnp.swapaxes(a, -1, -2), cotangent)
    return [None, _sum_to(product, b.aval.shape)]


def _batch(args, dims):
    moved = [
        a[None] if d is None else jnp.moveaxis(a, d, 0) for a, d in zip(args, dims)
    ]
    return _bind(*moved), 0


ad.primitive_transposes[_product_p] = _transpose
batching.primitive_batchers[_product_p] = _batch


def small_product(
    a: Float[Array, "m k"], b: Float[Array, "k n"]
) -> Float[Array, "m n"]:
    """`a @ b` for matrices with an inner axis of at most sixteen or so: it costs as
    many operations in the compiled program as the inner axis is long."""
    return _bind(a, b)


def scale(a: Float[Array, "..."], b: Float[Array, "..."]) -> Float[Array, "..."]:
    """`a * b` for arrays with the same number of axes; axes of size one are broadcast,
    and in derivatives the sums over these are written out if they are short."""
    last = (..., None, None)
    return _bind(a[last], b[last])[..., 0, 0]

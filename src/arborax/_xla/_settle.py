"""Values that the compiler computes once.

XLA on a CPU fuses cheap operations into whatever uses them, as often as they are used:
a scalar that multiplies a 3x3 matrix is computed nine times, and in reverse mode, where
such scalars are chains of hundreds of operations, this can take most of the time. It
does not repeat a division. So `settle` divides by a one that the compiler cannot see.
"""

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array


def _divide(x: Array, store: bool) -> Array:
    one = jnp.ones((), x.dtype)
    x = x / jax.lax.clamp(one, x, one)
    if not store or not x.ndim:
        return x
    # A second one, the same for a whole row: the row is then used more than once.
    first = (x[..., :1] > 0).astype(x.dtype)
    return x / jax.lax.clamp(one, jnp.broadcast_to(first, x.shape), one)


def _batch(args, dims, *, keep, store, forward):
    (x,), (axis,) = args, dims
    if not keep:
        x, axis = jnp.moveaxis(x, axis, 0), 0
    return _settle_p.bind(x, keep=keep, store=store, forward=forward), axis


def _transpose(cotangent, _, *, keep, store, forward):
    return [_settle_p.bind(cotangent, keep=keep, store=store, forward=True)]


def _on_cpu(x: Array, *, keep: bool, store: bool, forward: bool) -> Array:
    return _divide(x, store) if forward else x


_settle_p = Primitive("arborax_settle")
_settle_p.def_impl(lambda x, **_: x)
_settle_p.def_abstract_eval(lambda x, **_: x)
ad.deflinear2(_settle_p, _transpose)
batching.primitive_batchers[_settle_p] = _batch
_same = mlir.lower_fun(lambda x, **_: x, multiple_results=False)
mlir.register_lowering(_settle_p, _same)
mlir.register_lowering(
    _settle_p, mlir.lower_fun(_on_cpu, multiple_results=False), platform="cpu"
)


def settle(x: Array, *, keep: bool = False, store: bool = False) -> Array:
    """`x` to the last bit (subnormal numbers aside), on a CPU computed once, and so is
    its cotangent. For small arrays that took long to compute and are used often. Under
    `vmap` the batch comes first; with `keep` it stays where it is. With `store` the
    array is stored in the order of its axes even if it is used but once."""
    return _settle_p.bind(x, keep=keep, store=store, forward=True)


def settle_cotangent(x: Array, *, keep: bool = False) -> Array:
    """`x`, as it is. Its cotangent is computed once and stored in the order of the axes
    of `x`: for a cotangent that comes in another order, and is used in this one. `keep`
    is as in `settle`."""
    return _settle_p.bind(x, keep=keep, store=True, forward=False)

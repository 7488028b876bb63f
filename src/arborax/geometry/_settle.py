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


def _divide(x: Array) -> Array:
    one = jnp.ones((), x.dtype)
    return x / jax.lax.clamp(one, x, one)


def _batch(args, dims):
    return _settle_p.bind(jnp.moveaxis(args[0], dims[0], 0)), 0


_settle_p = Primitive("arborax_settle")
_settle_p.def_impl(lambda x: x)
_settle_p.def_abstract_eval(lambda x: x)
ad.deflinear2(_settle_p, lambda cotangent, _: [_settle_p.bind(cotangent)])
batching.primitive_batchers[_settle_p] = _batch
mlir.register_lowering(_settle_p, mlir.lower_fun(lambda x: x, multiple_results=False))
mlir.register_lowering(
    _settle_p, mlir.lower_fun(_divide, multiple_results=False), platform="cpu"
)


def settle(x: Array) -> Array:
    """`x` to the last bit (subnormal numbers aside), on a CPU computed once, and so is
    its cotangent. For small arrays that took long to compute and are used often."""
    return _settle_p.bind(x)

"""Values that the compiler computes once.

XLA's CPU backend fuses cheap operations into whatever uses them, as often as they are
used: a scalar that multiplies a 3x3 matrix is computed nine times, and in reverse mode
such scalars are chains of hundreds of operations. After a change of layout each use
also walks through memory in large steps. `jax.lax.optimization_barrier` is removed
before fusion. A division is not repeated, and the result of a conditional is stored; so
small arrays are divided by a one that the compiler cannot see, and large ones pass
through a conditional that it cannot decide.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

from ._switch import uses


_LARGE = 2**15  # above this size a copy is cheaper than a division


def is_symbolic(*sizes: Any) -> bool:
    """Whether the size of an axis is not known, as in `jax.export` with a symbolic
    shape. No rule may compare it with a number then."""
    return not all(isinstance(size, int) for size in sizes)


def _on_cpu(x: Array, *, forward: bool) -> Array:
    if not forward or 0 in x.shape:
        return x
    if is_symbolic(*x.shape) or math.prod(x.shape) >= _LARGE:
        never = x[(0,) * x.ndim] > jnp.inf
        return jax.lax.cond(never, jnp.negative, lambda y: y, x)
    one = jnp.ones((), x.dtype)
    return x / jax.lax.clamp(one, x, one)


def _batch(args, dims, *, forward: bool):
    return _barrier_p.bind(*args, forward=forward), dims[0]


def _transpose(cotangent, _, *, forward: bool):
    return [_barrier_p.bind(cotangent, forward=True)]


_barrier_p = Primitive("arborax_barrier")
_barrier_p.def_impl(lambda x, **_: x)
_barrier_p.def_abstract_eval(lambda x, **_: x)
ad.deflinear2(_barrier_p, _transpose)
batching.primitive_batchers[_barrier_p] = _batch
_identity = mlir.lower_fun(lambda x, **_: x, multiple_results=False)
mlir.register_lowering(_barrier_p, _identity)
mlir.register_lowering(
    _barrier_p, mlir.lower_fun(_on_cpu, multiple_results=False), platform="cpu"
)


def barrier(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """`x` to the last bit (subnormal numbers aside), computed once, as is its
    cotangent."""
    return _barrier_p.bind(x, forward=True) if uses("barrier") else x


def in_turn(function: Callable, xs: Any) -> Any:
    """`function` of each entry of `xs` along the leading axis, in a loop: what goes in
    and what comes out of it is stored."""
    return jax.lax.map(function, xs) if uses("barrier") else jax.vmap(function)(xs)


def barrier_back(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """`x` unchanged; its cotangent is computed once, in the order of the axes of
    `x`."""
    return _barrier_p.bind(x, forward=False) if uses("barrier") else x

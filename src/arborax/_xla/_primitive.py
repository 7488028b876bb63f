"""What the library's own JAX primitives have in common.

Sizes of axes may be unknown (`jax.export` with a symbolic shape), so no rule compares
them with numbers unless they are known.
"""

import functools as ft
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, mlir
from jaxtyping import Array

from ._varying import vary_alike


def is_symbolic(*sizes: Any) -> bool:
    """Whether a size is not known, as in `jax.export` with a symbolic shape."""
    return not all(isinstance(size, int) for size in sizes)


def broadcast_size(a: Any, b: Any) -> Any:
    """The size of an axis of a broadcast product."""
    return b if isinstance(a, int) and a == 1 else a


def first_size(args, dims) -> Any:
    """The size of the axis that `vmap` adds."""
    return next(a.shape[d] for a, d in zip(args, dims) if d is not None)


def _bilinear_jvp(bind: Callable, primals, tangents, **params):
    (a, b), (da, db) = primals, tangents
    terms = []
    if not isinstance(da, ad.Zero):
        terms.append(bind(da, b, **params))
    if not isinstance(db, ad.Zero):
        terms.append(bind(a, db, **params))
    return bind(a, b, **params), ft.reduce(jnp.add, terms)


def bilinear(
    name: str, evaluate: Callable, shape: Callable, *static: str
) -> tuple[Primitive, Callable[..., Array]]:
    """A primitive that is linear in each of two arguments, without its transpose and
    its rule for batches; and the function that binds it.

    **Arguments:**

    - `evaluate`: the value, from two arrays and the static parameters.
    - `shape`: the shape of the value, from what `evaluate` takes.
    - `static`: names of the parameters.
    """
    primitive = Primitive(f"arborax_{name}")
    primitive.def_impl(jax.jit(evaluate, static_argnames=static))
    primitive.def_abstract_eval(
        lambda a, b, **params: a.update(shape=shape(a, b, **params))
    )

    def bind(a: Any, b: Any, **params) -> Array:
        return primitive.bind(*vary_alike(a, b), **params)

    ad.primitive_jvps[primitive] = ft.partial(_bilinear_jvp, bind)
    mlir.register_lowering(primitive, mlir.lower_fun(evaluate, multiple_results=False))
    return primitive, bind

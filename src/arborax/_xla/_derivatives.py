"""Functions with derivatives of their own.

`jax.custom_jvp` has three gaps that matter here. Its rule is lost where a loop is
partially evaluated, so reverse over reverse mode differentiates what the rule was there
to avoid: loops of dynamic length, eigenvectors. In a loop under `vmap` it fails if the
value does not depend on the argument (the slope of a linear activation), or has its
batch in another place than the value that the rule computes. And it cannot say how the
tangent is transposed. Here such functions are primitives, without these gaps.
"""

import abc
import dataclasses
import functools as ft
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array

from ._varying import vary_alike


def first_size(args: Sequence, dims: Sequence) -> Any:
    """The size of the axis that `vmap` adds."""
    return next(a.shape[d] for a, d in zip(args, dims) if d is not None)


class Function(abc.ABC):
    """A function of arrays, with its derivative. Instances are static data: hashable,
    and equal to others that do the same, or JAX compiles them again."""

    @abc.abstractmethod
    def value(self, *args: Array) -> list[Array]:
        """The values."""

    @abc.abstractmethod
    def jvp(self, primals: tuple, tangents: tuple) -> tuple[list[Array], list[Array]]:
        """The values and their tangents."""

    def batch(self, args: Sequence, dims: Sequence) -> tuple[list[Array], list[int]]:
        """The values under `vmap`, and where they have their batch."""
        out = _Mapped(self, tuple(dims))(*args)
        return out, [0] * len(out)

    def __call__(self, *args: Array) -> list[Array]:
        return _function_p.bind(*vary_alike(*args), function=self)


class Linear(Function):
    """A function of arrays that is linear in all but the first `fixed` of them, with
    its transpose. Derivatives along the first arguments are those of `value`."""

    fixed: int

    @property
    @abc.abstractmethod
    def transpose(self) -> "Linear":
        """The first arguments and cotangents of the values, to cotangents of the last
        arguments."""

    def jvp(self, primals, tangents):
        return self(*primals), jax.jvp(self.value, primals, tangents)[1]

    def batch(self, args: Sequence, dims: Sequence) -> tuple[list[Array], list[int]]:
        """As for every function. All last arguments get the batch, so that all of their
        cotangents have it."""
        fixed, size = self.fixed, first_size(args, dims)
        last = [_front(x, d, size) for x, d in zip(args[fixed:], dims[fixed:])]
        out = _MappedLinear(self, tuple(dims[:fixed]))(*args[:fixed], *last)
        return out, [0] * len(out)


class custom_jvp(Function):
    """As `jax.custom_jvp`, for functions from arrays to one array. The rule returns the
    value and its tangent."""

    def __init__(self, function: Callable[..., Array]):
        ft.update_wrapper(self, function)
        self._function = function

    def defjvp(self, rule: Callable) -> Callable:
        """Set the rule, `(primals, tangents)` to value and tangent."""
        self._rule = rule
        return rule

    def value(self, *args):
        return [self._function(*args)]

    def jvp(self, primals, tangents):
        value, tangent = self._rule(primals, tangents)
        return [value], [tangent]

    def __call__(self, *args) -> Array:  # pyright: ignore
        return Function.__call__(self, *args)[0]


@dataclasses.dataclass(frozen=True)
class _Mapped(Function):
    """A function under `vmap`, of arguments with these axes."""

    function: Function
    axes: tuple[int | None, ...]

    def value(self, *args):
        return jax.vmap(self.function.value, in_axes=self.axes)(*args)

    def jvp(self, primals, tangents):
        return jax.vmap(self.function.jvp, (self.axes, self.axes))(primals, tangents)


@dataclasses.dataclass(frozen=True)
class _MappedLinear(Linear):
    """The same, of last arguments that all have their batch in front."""

    function: Linear
    axes: tuple[int | None, ...]

    @property
    def fixed(self) -> int:  # pyright: ignore
        return self.function.fixed

    def value(self, *args):
        axes = (*self.axes, *[0] * (len(args) - self.fixed))
        return jax.vmap(self.function.value, in_axes=axes)(*args)

    @property
    def transpose(self):
        return _MappedLinear(self.function.transpose, self.axes)


def _front(x: Array, axis: int | None, size) -> Array:
    if axis is None:
        return jnp.broadcast_to(x[None], (size, *x.shape))
    return jnp.moveaxis(x, axis, 0)


def _evaluate(*args, function: Function) -> list[Array]:
    return list(function.value(*args))


def _abstract(*args, function: Function) -> list:
    shaped = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in args]
    out = jax.eval_shape(function.value, *shaped)
    return [args[0].update(shape=x.shape, dtype=x.dtype, weak_type=False) for x in out]


def _filled(tangents: Sequence) -> tuple:
    return tuple(ad.instantiate_zeros(t) for t in tangents)


def _jvp(primals, tangents, *, function: Function):
    primals, filled = tuple(primals), _filled(tangents)
    if isinstance(function, Linear):
        fixed = function.fixed
        if all(isinstance(t, ad.Zero) for t in tangents[:fixed]):
            return function(*primals), function(*primals[:fixed], *filled[fixed:])
    return function.jvp(primals, filled)


def _transpose(cotangents, *args, function: Linear):
    first, last = args[: function.fixed], args[function.fixed :]
    pulled = function.transpose(*first, *_filled(cotangents))
    wanted = map(ad.is_undefined_primal, last)
    chosen = [x if wants else None for x, wants in zip(pulled, wanted)]
    return [None] * function.fixed + chosen


_function_p = Primitive("arborax_function")
_function_p.multiple_results = True
_function_p.def_impl(jax.jit(_evaluate, static_argnames="function"))
_function_p.def_abstract_eval(_abstract)
mlir.register_lowering(_function_p, mlir.lower_fun(_evaluate, multiple_results=True))
ad.primitive_jvps[_function_p] = _jvp
ad.primitive_transposes[_function_p] = _transpose
batching.primitive_batchers[_function_p] = lambda args, dims, *, function: (
    function.batch(args, dims)
)

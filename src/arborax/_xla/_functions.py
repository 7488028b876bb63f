"""Functions with derivatives of their own.

`jax.custom_jvp` has three gaps that matter here. Its rule is lost where a loop is
partially evaluated, so reverse over reverse mode differentiates what the rule was there
to avoid: loops of dynamic length, eigenvectors. In a loop under `vmap` it fails if the
value does not depend on the argument (the slope of a linear activation), or has its
batch in another place than the value that the rule computes. And it can not say how
the tangent is transposed. Here such functions are primitives, which have none of these
gaps.
"""

import abc
import dataclasses
import functools as ft
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array

from ._sizes import first_size
from ._varying import vary_alike


class Function(abc.ABC):
    """A function of arrays, with its derivative. Instances are static data: hashable,
    and best equal if they do the same."""

    @abc.abstractmethod
    def value(self, *args: Array) -> list[Array]:
        """The values."""

    @abc.abstractmethod
    def jvp(self, primals: tuple, tangents: tuple) -> tuple[list[Array], list[Array]]:
        """The values and their tangents."""

    def batch(self, args: Sequence, dims: Sequence) -> tuple[list[Array], list[int]]:
        """The values under `vmap`, and where they have their batch."""
        out = _MappedFunction(self, tuple(dims))(*args)
        return out, [0] * len(out)

    def __call__(self, *args: Array) -> list[Array]:
        return _function_p.bind(*vary_alike(*args), function=self)


class Linear(abc.ABC):
    """A function of arrays that is linear in all but the first `fixed` of them, with
    its transpose."""

    fixed: int

    @abc.abstractmethod
    def value(self, *args: Array) -> list[Array]:
        """The values."""

    @property
    @abc.abstractmethod
    def transpose(self) -> "Linear":
        """The first arguments and cotangents of the values, to cotangents of the last
        arguments."""

    def derivative(self, primals: tuple, tangents: tuple) -> list[Array]:
        """Tangents of the values along all arguments. By default those of `value`,
        which reverse mode must then be able to transpose."""
        return jax.jvp(self.value, primals, tangents)[1]

    def batch(self, args: Sequence, dims: Sequence) -> tuple[list[Array], list[int]]:
        """The values under `vmap`, and where they have their batch. All last arguments
        get the batch: then all of their cotangents have it."""
        fixed, size = self.fixed, first_size(args, dims)
        last = [_front(x, d, size) for x, d in zip(args[fixed:], dims[fixed:])]
        out = _MappedLinear(self, tuple(dims[:fixed]))(*args[:fixed], *last)
        return out, [0] * len(out)

    def __call__(self, *args: Array) -> list[Array]:
        return _linear_p.bind(*vary_alike(*args), function=self)


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
        return super().__call__(*args)[0]


@dataclasses.dataclass(frozen=True)
class _MappedFunction(Function):
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

    def derivative(self, primals, tangents):
        axes = (*self.axes, *[0] * (len(primals) - self.fixed))
        return jax.vmap(self.function.derivative, (axes, axes))(primals, tangents)

    @property
    def transpose(self):
        return _MappedLinear(self.function.transpose, self.axes)


def _primitive(name: str) -> Primitive:
    primitive = Primitive(f"arborax_{name}")
    primitive.multiple_results = True
    primitive.def_impl(jax.jit(_evaluate, static_argnames="function"))
    primitive.def_abstract_eval(_abstract)
    mlir.register_lowering(primitive, mlir.lower_fun(_evaluate, multiple_results=True))
    return primitive


def _evaluate(*args, function: Function | Linear) -> list[Array]:
    return list(function.value(*args))


def _abstract(*args, function: Function | Linear) -> list:
    shaped = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in args]
    out = jax.eval_shape(function.value, *shaped)
    return [args[0].update(shape=x.shape, dtype=x.dtype, weak_type=False) for x in out]


def _filled(tangents: Sequence) -> tuple:
    return tuple(ad.instantiate_zeros(t) for t in tangents)


def _function_jvp(primals, tangents, *, function: Function):
    return function.jvp(tuple(primals), _filled(tangents))


def _linear_jvp(primals, tangents, *, function: Linear):
    out, fixed = function(*primals), function.fixed
    if all(isinstance(t, ad.Zero) for t in tangents[:fixed]):
        return out, function(*primals[:fixed], *_filled(tangents[fixed:]))
    return out, function.derivative(tuple(primals), _filled(tangents))


def _linear_transpose(cotangents, *args, function: Linear):
    first, last = args[: function.fixed], args[function.fixed :]
    pulled = function.transpose(*first, *_filled(cotangents))
    wanted = map(ad.is_undefined_primal, last)
    chosen = [x if wants else None for x, wants in zip(pulled, wanted)]
    return [None] * function.fixed + chosen


def _front(x: Array, axis: int | None, size) -> Array:
    if axis is None:
        return jnp.broadcast_to(x[None], (size, *x.shape))
    return jnp.moveaxis(x, axis, 0)


def _batch(args, dims, *, function: Function | Linear):
    return function.batch(args, dims)


_function_p = _primitive("function")
_linear_p = _primitive("linear")
ad.primitive_jvps[_function_p] = _function_jvp
ad.primitive_jvps[_linear_p] = _linear_jvp
ad.primitive_transposes[_linear_p] = _linear_transpose
batching.primitive_batchers[_function_p] = _batch
batching.primitive_batchers[_linear_p] = _batch

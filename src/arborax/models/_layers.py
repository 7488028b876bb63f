"""Layers of an MLP on a row of numbers, made for many rows at once."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, Float, PyTree

from .._xla import Function, scale
from ..geometry import AbstractGeometry


def affine(
    weight: Float[Array, "out in"], bias: Float[Array, " out"], x: Float[Array, " in"]
) -> Float[Array, " out"]:
    """`weight @ x + bias`."""
    if x.shape != weight.shape[1:]:
        raise ValueError(
            f"a layer of {weight.shape[1]} inputs was given an array of shape "
            f"{x.shape}. Use `jax.vmap` for a batch."
        )
    return weight @ x + bias


def activate(f: Callable, x: Float[Array, "..."]) -> Float[Array, "..."]:
    """`f`, a function of one number, of each number in `x`. Its derivatives are factors
    for each number, computed once for all directions."""
    return _Elementwise(f)(x)[0]


@dataclasses.dataclass(frozen=True)
class _Elementwise(Function):
    f: Callable

    def value(self, x):
        return [jax.vmap(self.f)(x.reshape(-1)).reshape(x.shape)]

    def jvp(self, primals, tangents):
        (x,), (dx,) = primals, tangents
        return self(x), [scale(activate(Derivative(self.f), x), dx)]


@dataclasses.dataclass(frozen=True)
class Derivative:
    """The derivative of a function of one number."""

    f: Callable

    def __call__(self, x: Float[Array, ""]) -> Float[Array, ""]:
        return jax.jvp(self.f, (x,), (jnp.ones_like(x),))[1]


def flatten(y: PyTree[Array]) -> Float[Array, " size"]:
    """All numbers of a point as one vector."""
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jtu.tree_leaves(y)])


def point_size(geometry: AbstractGeometry) -> int:
    """How many numbers a point has."""
    return jax.eval_shape(lambda: flatten(geometry.base_point())).size


def unflatten(geometry: AbstractGeometry, x: Float[Array, " size"]) -> PyTree[Array]:
    """The point whose numbers are `x`."""
    point = jax.eval_shape(geometry.base_point)
    leaves, tree = jtu.tree_flatten(point)
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
    parts = jnp.split(x, ends)
    shaped = [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves)]
    return jtu.tree_unflatten(tree, shaped)

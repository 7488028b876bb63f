r"""Driving fields at a point, and their derivatives of first and second order.

Window fields need derivatives contracted with coefficients, channel by channel:
$\sum_k D v_k[u_k]$ with one direction per channel, and $\sum_{kpq} X^{pq}_k D^2
v_k[e_p, e_q]$ with directions $e_p$ that all channels share. Fields that know their
structure can do better than one evaluation per pair of directions. They say so by
a method `expand(y, directions)` (or `expand(t, y, args, directions)`) that returns an
`AbstractExpansion`; `directions` are those that `along` will be called with, or `None`
if they are not known yet. `arborax.models.VectorField` has one.
"""

import abc
import functools as ft
from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float, PyTree

from .._xla import small_product
from ._fields import DrivingFields


class AbstractExpansion(abc.ABC):
    """Derivatives of the fields at a point. Directions are tangent vectors of the
    ambient space with a leading axis."""

    value: Float[Array, "channels dim"]

    @abc.abstractmethod
    def contract(self, tangents: PyTree[Array]) -> Float[Array, " dim"]:
        """The sum over channels of the derivative of channel `k` along tangent `k`."""

    @abc.abstractmethod
    def along(
        self, directions: PyTree[Array]
    ) -> tuple[Float[Array, "directions channels dim"], Callable]:
        """Derivatives of all channels along each direction, and a function `bend(pairs,
        tangents)`: for `pairs` of shape `(directions, directions, channels)`, the sum
        over channels of second derivatives with these coefficients, plus `contract` of
        the tangents."""


class FieldExpansion(AbstractExpansion):
    """By forward-mode differentiation, for any fields."""

    def __init__(self, fields: DrivingFields, t, y: PyTree[Array]):
        self._point = y
        self._call = lambda z: fields(t, z)
        self._each = []
        if not isinstance(fields.fields, tuple):
            self.value, self._derivative = jax.linearize(self._call, y)
            return
        one = lambda i: lambda z: fields.channel(i, t, z)  # noqa: E731
        self._each = [jax.linearize(one(i), y) for i in range(fields.number)]
        self.value = jnp.stack([value for value, _ in self._each])
        self._derivative = lambda u: jnp.stack([dot(u) for _, dot in self._each])

    def contract(self, tangents):
        if self._each:
            one = lambda i: jtu.tree_map(lambda leaf: leaf[i], tangents)  # noqa: E731
            terms = [dot(one(i)) for i, (_, dot) in enumerate(self._each)]
            return ft.reduce(jnp.add, terms)
        rows = jax.vmap(self._derivative)(tangents)
        n = rows.shape[0]
        own = jnp.eye(n, dtype=rows.dtype).reshape(1, -1)
        return small_product(own, rows.reshape(n * n, -1))[0]

    def along(self, directions):
        def derive(z):
            return jax.vmap(jax.linearize(self._call, z)[1])(directions)

        def bend(pairs, tangents):
            derivative = jax.linearize(derive, self._point)[1]
            second = jax.vmap(derivative)(directions)
            dim = second.shape[-1]
            out = small_product(pairs.reshape(1, -1), second.reshape(-1, dim))[0]
            return out + self.contract(tangents)

        return jax.vmap(self._derivative)(directions), bend


def expand(
    fields: DrivingFields, t, y: PyTree[Array], directions: PyTree[Array] | None
) -> AbstractExpansion:
    """The expansion that the fields offer, or one by forward-mode differentiation."""
    own = getattr(fields.fields, "expand", None)
    if own is None:
        return FieldExpansion(fields, t, y)
    out = own(*fields.arguments(t, y), directions)
    fields.check(out.value)
    dtype = jtu.tree_leaves(y)[0].dtype
    if out.value.dtype != dtype:
        raise TypeError(
            f"the fields expand in {out.value.dtype}, but the state is {dtype}. Cast "
            "their weights, or the state."
        )
    return out

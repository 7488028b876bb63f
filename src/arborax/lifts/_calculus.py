"""Derivatives of the driving fields in frame coordinates."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float, PyTree

from .._xla import Tensors, vary_as
from ..geometry import AbstractGeometry
from ._expansion import AbstractExpansion, expand
from ._fields import DrivingFields


class FrameCalculus:
    """Driving fields at time `t`, a geometry, and its connection; if `parallel`, the
    flat one of the frame instead."""

    def __init__(
        self, fields: DrivingFields, geometry: AbstractGeometry, t, parallel: bool
    ):
        self.driving = fields
        self.geometry = geometry
        self.t = t
        self.parallel = parallel
        self.channels = fields.number
        self.dim = geometry.dim
        self.tensors = Tensors(geometry.dim)
        # Derivatives are taken along the frame fields if these are fewer than the
        # driving fields.
        self.by_frame = self.dim < self.channels

    def fields(self, y) -> Float[Array, "channels dim"]:
        """All driving fields at `y`."""
        return self.driving(self.t, y)

    def connect(self, y, u, v) -> Float[Array, " dim"]:
        """The zeroth-order part of the covariant derivative."""
        if self.parallel:
            return jnp.zeros_like(v)
        return self.geometry.christoffel(y, u, v)

    def connect_all(self, y, u, v) -> Float[Array, "left right dim"]:
        """`connect` for all pairs of rows."""
        rows = jax.vmap(self.connect, in_axes=(None, None, 0))
        return jax.vmap(rows, in_axes=(None, 0, None))(y, u, v)

    def nabla(self, g: Callable, y, u) -> Float[Array, " dim"]:
        """Covariant derivative at `y` of the field `g`, in direction `u`."""
        value, dot = jax.jvp(g, (y,), (self.geometry.frame(y, u),))
        return dot + self.connect(y, u, value)

    def eye(self, like: Array) -> Array:
        """All frame directions."""
        return jnp.eye(self.dim, dtype=like.dtype)

    def tangents(self, y, rows: Float[Array, "directions dim"]) -> PyTree[Array]:
        """Ambient tangent vectors at `y` from frame coordinates. The frame is linear in
        these, so what depends on the point alone, such as a root of a matrix, is
        computed once, and differentiated once."""
        rows = vary_as(rows, y)  # a flat frame hands them on
        frame = jax.linearize(lambda u: self.geometry.frame(y, u), rows[0])[1]
        return jax.vmap(frame)(rows)

    def expand(self, y) -> tuple[AbstractExpansion, PyTree[Array] | None]:
        """All driving fields at `y`, with derivatives; and the frame fields there, if
        derivatives are taken along them."""
        directions = None
        if self.by_frame:
            directions = self.tangents(y, self.eye(jtu.tree_leaves(y)[0]))
        return expand(self.driving, self.t, y, directions), directions

    def first_derivatives(
        self, y
    ) -> tuple[Float[Array, "channels dim"], Callable[[Array], Array]]:
        r"""All driving fields at `y`, and the map $W \mapsto \sum_k \nabla_{W_k} V_k$,
        `(channels, dim)` to `(dim,)`: one derivative per channel, or per frame field if
        these are fewer."""
        tensors = self.tensors
        expansion, directions = self.expand(y)
        v = tensors.bring("kn", expansion.value)

        def derivative(w):
            if directions is None:
                out = expansion.contract(self.tangents(y, w))
            else:
                dots = tensors.bring("ekn", expansion.along(directions)[0])
                out = tensors.einsum("ke,ekn->n", w, dots)
            if self.parallel:
                return out
            moment = tensors.einsum("ka,kn->an", w, v)
            return out + self.geometry.christoffel_sum(y, moment)

        return v, derivative

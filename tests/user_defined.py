"""Two algebras and a geometry as a user would write them, from public names alone.

The algebras are `Shuffle` and `MuntheKaasWright` with the keys of each weight in the
opposite order; the geometry covers `SO(3)`. So every result has another one to
be compared with, and nothing in the library can know these classes.
"""

import abc
import dataclasses
import functools as ft

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import arborax as abx
from arborax.algebra import AbstractHopfAlgebra, ProductTable, SparseMap


def backward(weights: np.ndarray) -> np.ndarray:
    """Positions by weight, the last of each weight first."""
    return np.lexsort((-np.arange(len(weights)), weights))


@dataclasses.dataclass(frozen=True)
class Backward(AbstractHopfAlgebra):
    """Another algebra of the same `dim` and `depth`, in another order."""

    @property
    @abc.abstractmethod
    def other(self) -> AbstractHopfAlgebra: ...

    @ft.cached_property
    def order(self) -> np.ndarray:
        """Position in the other basis of each key."""
        return backward(self.other.weights)

    @ft.cached_property
    def primitive_order(self) -> np.ndarray:
        """The same for primitive keys."""
        return backward(self.other.primitive_weights)

    @property
    def size(self):
        return self.other.size

    @ft.cached_property
    def basis(self):
        return tuple(self.other.basis[k] for k in self.order)

    @property
    def weights(self):
        return self.other.weights[self.order]

    @property
    def primitive_size(self):
        return self.other.primitive_size

    @ft.cached_property
    def primitive_basis(self):
        return tuple(self.other.primitive_basis[k] for k in self.primitive_order)

    @property
    def primitive_weights(self):
        return self.other.primitive_weights[self.primitive_order]

    @ft.cached_property
    def product_table(self):
        table, new = self.other.product_table, np.argsort(self.order)
        out, left, right = new[table.out], new[table.left], new[table.right]
        return ProductTable(out, left, right, table.value, self.size)

    @property
    def antipode_map(self):
        return reordered(self.other.antipode_map, self.order, self.order)

    @ft.cached_property
    def primitive_maps(self):
        to, back = self.other.primitive_maps
        return (
            reordered(to, self.primitive_order, self.order),
            reordered(back, self.order, self.primitive_order),
        )

    def cuts(self, key):
        return self.other.cuts(key)

    def dual_product(self, left, right):
        return self.other.dual_product(left, right)

    @property
    def calculus(self):
        return self.other.calculus

    @property
    def planar(self):
        return self.other.planar

    def elementary_step(self, letter):
        return self.other.elementary_step(letter)[self.primitive_order]

    @ft.cached_property
    def forests(self):
        forests, table = self.other.forests
        rows = np.arange(len(forests))
        return forests, reordered(table, rows, self.primitive_order)


def reordered(table: SparseMap, rows: np.ndarray, columns: np.ndarray) -> SparseMap:
    """A map between bases in new orders."""
    row, column = np.argsort(rows)[table.row], np.argsort(columns)[table.column]
    return SparseMap(row, column, table.value, table.shape)


@dataclasses.dataclass(frozen=True)
class BackwardWords(Backward):
    """Words in another order."""

    @property
    def other(self):
        return abx.Shuffle(self.dim, self.depth)


@dataclasses.dataclass(frozen=True)
class BackwardTrees(Backward):
    """Planar forests in another order."""

    @property
    def other(self):
        return abx.MuntheKaasWright(self.dim, self.depth)


def multiply(p, q):
    """The product of quaternions, real part first."""
    a, u, b, v = p[:1], p[1:], q[:1], q[1:]
    real = a * b - jnp.sum(u * v, keepdims=True)
    return jnp.concatenate([real, a * v + b * u + jnp.cross(u, v)])


def half_turn(u):
    """The quaternion of a rotation vector, smooth at zero."""
    square = jnp.sum(u**2) / 4
    small = square < 1e-6
    angle = jnp.sqrt(jnp.where(small, jnp.ones_like(square), square))
    sinc = jnp.where(small, 1 - square / 6 + square**2 / 120, jnp.sin(angle) / angle)
    cos = jnp.where(small, 1 - square / 2 + square**2 / 24, jnp.cos(angle))
    return jnp.concatenate([cos[None], sinc * u / 2])


def inverse(q):
    return q * jnp.array([1.0, -1.0, -1.0, -1.0], q.dtype)


class Quaternions(abx.AbstractGeometry):
    """Unit quaternions, acting on themselves from the right. `rotation` maps frame
    fields to those of `SO(3)`."""

    connection: str = eqx.field(static=True, default="frame")

    @property
    def dim(self):
        return 3

    @property
    def manifold_dim(self):
        return 3

    @property
    def point_shape(self):
        return (4,)

    def rotation(self, y):
        """The rotation that a quaternion stands for."""
        eye = jnp.concatenate(
            [jnp.zeros((3, 1), y.dtype), jnp.eye(3, dtype=y.dtype)], 1
        )
        rows = [multiply(multiply(y, e), inverse(y))[1:] for e in eye]
        return jnp.stack(rows, axis=1)

    def frame(self, y, u):
        return multiply(y, jnp.concatenate([jnp.zeros(1, u.dtype), u / 2]))

    def coordinates(self, y, v):
        return 2 * multiply(inverse(y), v)[1:]

    def generator(self, y, u):
        return u

    def act(self, xi, y):
        return multiply(y, half_turn(xi))

    def fundamental(self, xi, y):
        return self.frame(y, xi)

    def lie_bracket(self, xi, eta):
        return jnp.cross(eta, xi)

    def exp(self, y, u):
        return self.act(u, y)

    def log(self, y, z):
        q = multiply(inverse(y), z)
        q = q * jnp.sign(q[0])
        norm = jnp.sqrt(jnp.sum(q[1:] ** 2) + jnp.finfo(q.dtype).tiny)
        return 2 * jnp.arctan2(norm, q[0]) / norm * q[1:]

    def distance(self, y, z):
        return jnp.sqrt(jnp.sum(self.log(y, z) ** 2))

    def christoffel(self, y, u, v):
        if self.connection == "frame":
            return jnp.zeros_like(u)
        return jnp.cross(u, v) / 2

    def bracket(self, y, u, v):
        return jnp.cross(u, v)

    def belongs(self, y, tol=None):
        tol = jnp.finfo(y.dtype).eps ** 0.5 if tol is None else tol
        return jnp.abs(jnp.sum(y**2) - 1) <= tol

    def random_point(self, *, key, dtype=None):
        q = jr.normal(key, (4,), jnp.result_type(float) if dtype is None else dtype)
        return q / jnp.sqrt(jnp.sum(q**2))

"""The interface every state manifold implements."""

import abc
import functools as ft
from collections.abc import Callable
from typing import Any, TYPE_CHECKING, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree

from .._values import refuse
from ._checks import check_arrays, check_methods, named
from ._matrix import commutator
from ._trigonometric import safe_norm


Point: TypeAlias = PyTree[Float[Array, "..."]]
"""A point, or an ambient tangent vector at a point: one array, or for `Product` a
tuple of them."""

Generator: TypeAlias = PyTree[Float[Array, "..."]]
"""An element of the Lie algebra: one array, or for `Product` a tuple of them."""

Coordinates: TypeAlias = Float[Array, " dim"]
"""Frame coordinates of a tangent vector."""


class AbstractGeometry(eqx.Module):
    r"""A homogeneous space with an action, a frame and a connection.

    A geometry holds static configuration only: it is hashable, compares by value
    and may be closed over or passed through `jax.jit` freely. All methods act on one
    point; batch with `jax.vmap`.

    * The **frame** $E_1, \dots, E_{dim}$ turns coordinates $u$ into the ambient tangent
      vector $E_u(y) = \sum_a u^a E_a(y)$. Vector fields are given to the solvers in
      these coordinates.
    * The **action** $\exp(\xi) \cdot y$ of a Lie group moves points; its fundamental
      field is $\xi^\#(y) = \frac{d}{d\epsilon} \exp(\epsilon \xi) \cdot y$, and
      `generator(y, u)` is an algebra element with $\xi^\#(y) = E_u(y)$. The algebra is
      a vector space, so commutator-free schemes may add generators taken at different
      points.
    * The **connection** gives Itô equations their meaning. `"frame"` is the flat one in
      which the frame is parallel; `"levi-civita"` that of the Riemannian metric. For a
      field $V = E_v$ with coordinates $v(y)$,
      $\nabla_U V = E_w$ with $w = Dv[U] + \Gamma(u, v)$.

    Arguments of the wrong shape or dtype raise an error that names them. Values are not
    checked, so NaN and infinity pass through (`check_point` checks them).

    Ambient formulas extend smoothly to a neighbourhood of the manifold, so derivatives
    along tangent directions can be taken by forward-mode differentiation in the ambient
    space.
    """

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        check_methods(cls)

    if TYPE_CHECKING:  # type checkers take a variable for a field of the constructor

        @property
        def connection(self) -> str: ...
    else:
        connection: eqx.AbstractVar[str]

    @property
    @abc.abstractmethod
    def dim(self) -> int:
        """Number of frame fields, the length of frame coordinates."""

    @property
    def manifold_dim(self) -> int:
        """Dimension of the manifold; smaller than `dim` if the frame is
        over-complete."""
        return self.dim

    @property
    @abc.abstractmethod
    def point_shape(self) -> tuple:
        """Shape of a point (for `Product` a tuple of shapes)."""

    @property
    def flat(self) -> bool:
        """Whether the frame is constant in ambient coordinates and parallel, so that
        points may be added and covariant derivatives are ordinary ones."""
        return False

    @property
    def torsion_free(self) -> bool:
        """Whether the connection has no torsion."""
        return self.connection == "levi-civita"

    @property
    def invariant_frame(self) -> bool:
        """Whether `generator` does not depend on the point: frame fields are
        fundamental fields of the action, as left-invariant fields are on a group."""
        return False

    def base_point(self, dtype=None) -> Point:
        """A fixed point, from which `point_from_vector` starts by default."""
        return self.random_point(key=jr.key(0), dtype=dtype)

    @property
    def vector_size(self) -> int:
        """How many numbers `point_from_vector` and `project_vector` take."""
        return self.dim

    def point_from_vector(self, x: Float[Array, " vector"]) -> Point:
        """A point from unconstrained numbers, such as the output of a network that
        gives an initial state. By default the exponential at the base point."""
        return self.exp(self.base_point(x.dtype), x)

    def project_vector(self, x: Float[Array, " vector"]) -> Point:
        """The point that a read-out `x` stands for. By default as
        `point_from_vector`; geometries whose points are read out number by number
        project instead."""
        return self.point_from_vector(x)

    def frame(self, y: Point, u: Coordinates) -> Point:
        """The ambient tangent vector $E_u(y)$; linear in `u`. By default from the
        generator."""
        return self.fundamental(self.generator(y, u), y)

    @abc.abstractmethod
    def coordinates(self, y: Point, v: Point) -> Coordinates:
        """Frame coordinates of an ambient tangent vector: `frame(y, coordinates(y, v))`
        is `v`."""

    @abc.abstractmethod
    def generator(self, y: Point, u: Coordinates) -> Generator:
        """An element of the Lie algebra whose fundamental field at `y` is
        `frame(y, u)`."""

    @abc.abstractmethod
    def act(self, xi: Generator, y: Point) -> Point:
        r"""The group element $\exp(\xi)$ applied to `y`, exact to rounding."""

    @abc.abstractmethod
    def fundamental(self, xi: Generator, y: Point) -> Point:
        r"""The fundamental field $\xi^\#(y)$ as an ambient tangent vector."""

    def lie_bracket(self, xi: Generator, eta: Generator) -> Generator:
        r"""Bracket of the Lie algebra, with the sign that belongs to a left action.

        For a left action by matrices this is $\xi\eta - \eta\xi$ (the default), for a
        right action the opposite, so that $\frac{d}{dt} \exp(\Theta) \cdot y =
        (\mathrm{dexp}_\Theta \dot\Theta)^\# (\exp(\Theta) \cdot y)$ with
        $\mathrm{dexp}_\Theta = \sum_k \mathrm{ad}_\Theta^k / (k+1)!$ in every geometry.
        Runge-Kutta-Munthe-Kaas schemes need no other information.
        """
        return commutator(xi, eta)

    def exp(self, y: Point, u: Coordinates) -> Point:
        """Time-one geodesic of the connection from `y` with velocity `frame(y, u)`. By
        default the orbit of the generator."""
        return self.act(self.generator(y, u), y)

    @abc.abstractmethod
    def log(self, y: Point, z: Point) -> Coordinates:
        """Frame coordinates of the shortest geodesic from `y` to `z`: the inverse of
        `exp` near zero."""

    def distance(self, y: Point, z: Point) -> Float[Array, ""]:
        """Riemannian distance of the metric for which the frame is orthonormal. By
        default the length of `log(y, z)`, for connections with its geodesics."""
        return safe_norm(self.log(y, z))

    @abc.abstractmethod
    def christoffel(self, y: Point, u: Coordinates, v: Coordinates) -> Coordinates:
        r"""Frame coordinates of $\nabla_{E_u} E_v$ for constant `u` and `v`;
        bilinear."""

    def christoffel_sum(self, y: Point, m: Float[Array, "dim dim"]) -> Coordinates:
        r"""$\sum_{ab} m_{ab} \nabla_{E_a} E_b$. A connection with constant
        coefficients takes one product for this."""
        eye = jnp.eye(self.dim, dtype=m.dtype)
        rows = jax.vmap(self.christoffel, in_axes=(None, 0, 0))(y, eye, m)
        return jnp.sum(rows, axis=0)

    def turning(self, y: Point, m: Float[Array, "dim dim"]) -> Point:
        r"""$\sum_{ab} m_{ab} D E_b[E_a]$ in the ambient space: derivatives of the frame
        fields along one another. By forward-mode differentiation of the frame."""

        def one(a, row):
            along = lambda z: self.frame(z, row)  # noqa: E731
            return jax.jvp(along, (y,), (self.frame(y, a),))[1]

        rows = jax.vmap(one)(jnp.eye(self.dim, dtype=m.dtype), m)
        # Written out: a sum over a short axis is a library call on a CPU.
        total = lambda leaf: ft.reduce(jnp.add, list(leaf))  # noqa: E731
        return jtu.tree_map(total, rows)

    @abc.abstractmethod
    def bracket(self, y: Point, u: Coordinates, v: Coordinates) -> Coordinates:
        """Frame coordinates of the Jacobi bracket $[E_u, E_v]$ for constant `u` and
        `v`; bilinear."""

    @abc.abstractmethod
    def belongs(self, y: Point, tol: float | None = None) -> Bool[Array, ""]:
        """Whether `y` is on the manifold up to `tol` (default: the square root of the
        machine epsilon of its dtype). Points that are not finite are not."""

    @abc.abstractmethod
    def random_point(self, *, key: PRNGKeyArray, dtype=None) -> Point:
        """A random point; the law is stated by each geometry."""

    def covariant_derivative(
        self, field: Callable[[Point], Coordinates], y: Point, u: Coordinates
    ) -> Coordinates:
        r"""Frame coordinates of $\nabla_{E_u} V$ at `y`, where `field` maps a point to
        those of $V$. Cost: one forward-mode derivative of `field`."""
        v, dv = jax.jvp(field, (y,), (self.frame(y, u),))
        return dv + self.christoffel(y, u, v)

    def check_shape(self, y: Point) -> None:
        """Raise unless `y` has the shape of a point and is floating point."""
        check_arrays("y", y, self.point_shape, f"a point of {named(self)}")

    def check_point(self, y: Point, tol: float | None = None) -> Point:
        """Return `y` unchanged; raise a `ValueError` if it has the wrong shape or is
        not on the manifold. A traced point off the manifold becomes NaN."""
        self.check_shape(y)
        return refuse(
            y,
            ~self.belongs(y, tol),
            f"The point is not on {named(self)} (off by more than the tolerance, or "
            "not finite). Project it first: no solver projects for you.",
        )


check_methods(AbstractGeometry)


def default_tolerance(y: Array, tol: float | None) -> float:
    """The tolerance of `belongs` for the dtype of `y`."""
    return float(jnp.finfo(y.dtype).eps) ** 0.5 if tol is None else tol


def default_dtype(dtype):
    """`dtype`, or JAX's current default floating dtype."""
    return jnp.result_type(float) if dtype is None else jnp.dtype(dtype)


def check_geometry(geometry: Any, least: int, *connections: str) -> None:
    """Raise unless the size `n` is an integer of at least `least` and the connection
    one of those named."""
    name, n = f"{type(geometry).__name__}(n)", geometry.n
    if isinstance(n, bool) or not isinstance(n, int):
        raise TypeError(f"{name} needs an integer n, got {n!r}.")
    if n < least:
        raise ValueError(f"{name} needs n >= {least}, got n={n}.")
    if geometry.connection not in connections:
        raise ValueError(
            f"{name} has the connections {connections}, got "
            f"connection={geometry.connection!r}."
        )

"""Products of geometries."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ._base import AbstractGeometry, Coordinates, Generator, Point
from ._trigonometric import safe_norm


class Product(AbstractGeometry):
    r"""The product $M_1 \times M_2 \times \cdots$ of geometries.

    A point, an ambient tangent vector and a generator are **tuples** with one entry for
    each factor; frame coordinates are one array, the concatenation over the factors.
    Solvers combine generators with `jax.tree_util.tree_map`.

    Everything is done factor by factor: connection, brackets and geodesics are those of
    the factors, `distance` is the root of the sum of squares. `connection` is that
    of the factors if they agree and `"mixed"` otherwise.

    **Arguments:**

    - `*factors`: the geometries, at least one; products may be nested.
    """

    factors: tuple[AbstractGeometry, ...] = eqx.field(static=True)

    def __init__(self, *factors: AbstractGeometry):
        if not factors:
            raise ValueError("Product needs at least one geometry, got none.")
        for g in factors:
            if not isinstance(g, AbstractGeometry):
                raise TypeError(
                    "Product takes geometries as separate arguments, e.g. "
                    f"Product(SO(3), Euclidean(2)); got {g!r}."
                )
        self.factors = factors

    @property
    def connection(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        names = {g.connection for g in self.factors}
        return names.pop() if len(names) == 1 else "mixed"

    @property
    def flat(self) -> bool:
        return all(g.flat for g in self.factors)

    @property
    def torsion_free(self) -> bool:
        return all(g.torsion_free for g in self.factors)

    @property
    def dim(self) -> int:
        return sum(g.dim for g in self.factors)

    @property
    def manifold_dim(self) -> int:
        return sum(g.manifold_dim for g in self.factors)

    @property
    def point_shape(self) -> tuple:
        return tuple(g.point_shape for g in self.factors)

    def base_point(self, dtype=None) -> Point:
        return tuple(g.base_point(dtype) for g in self.factors)

    @property
    def vector_size(self) -> int:
        return sum(g.vector_size for g in self.factors)

    def point_from_vector(self, x: Float[Array, " vector"]) -> Point:
        return self._map("point_from_vector", self._cut(x, "vector_size"))

    def project_vector(self, x: Float[Array, " vector"]) -> Point:
        return self._map("project_vector", self._cut(x, "vector_size"))

    def split(self, u: Coordinates) -> tuple[Array, ...]:
        """Frame coordinates of each factor."""
        return self._cut(u, "dim")

    def frame(self, y: Point, u: Coordinates) -> Point:
        return self._map("frame", y, self.split(u))

    def coordinates(self, y: Point, v: Point) -> Coordinates:
        return jnp.concatenate(self._map("coordinates", y, v))

    def generator(self, y: Point, u: Coordinates) -> Generator:
        return self._map("generator", y, self.split(u))

    def act(self, xi: Generator, y: Point) -> Point:
        return self._map("act", xi, y)

    def fundamental(self, xi: Generator, y: Point) -> Point:
        return self._map("fundamental", xi, y)

    def lie_bracket(self, xi: Generator, eta: Generator) -> Generator:
        return self._map("lie_bracket", xi, eta)

    def exp(self, y: Point, u: Coordinates) -> Point:
        return self._map("exp", y, self.split(u))

    def log(self, y: Point, z: Point) -> Coordinates:
        return jnp.concatenate(self._map("log", y, z))

    def distance(self, y: Point, z: Point) -> Float[Array, ""]:
        return safe_norm(jnp.stack(self._map("distance", y, z)))

    def christoffel(self, y: Point, u: Coordinates, v: Coordinates) -> Coordinates:
        parts = self._map("christoffel", y, self.split(u), self.split(v))
        return jnp.concatenate(parts)

    def bracket(self, y: Point, u: Coordinates, v: Coordinates) -> Coordinates:
        parts = self._map("bracket", y, self.split(u), self.split(v))
        return jnp.concatenate(parts)

    def belongs(self, y: Point, tol: float | None = None) -> Bool[Array, ""]:
        inside = [g.belongs(a, tol) for g, a in zip(self.factors, y, strict=True)]
        return jnp.all(jnp.stack(inside))

    def random_point(self, *, key: PRNGKeyArray, dtype=None) -> Point:
        """Independent random points of the factors."""
        keys = jr.split(key, len(self.factors))
        return tuple(
            g.random_point(key=k, dtype=dtype) for g, k in zip(self.factors, keys)
        )

    def _cut(self, x: Array, size: str) -> tuple[Array, ...]:
        """The entries of a vector that belong to each factor."""
        ends = np.cumsum([getattr(g, size) for g in self.factors])
        return tuple(jnp.split(x, ends[:-1]))

    def _map(self, method: str, *args: tuple) -> tuple:
        """Apply a method of each factor to its entries of the tuples `args`."""
        rows = zip(self.factors, *args, strict=True)
        return tuple(getattr(g, method)(*row) for g, *row in rows)

"""Flat space."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ._base import AbstractGeometry, check_geometry, default_dtype


Vector = Float[Array, " n"]


class Euclidean(AbstractGeometry):
    r"""$\mathbb{R}^n$: the group of translations acts by addition.

    The frame is the standard basis, the algebra $\mathbb{R}^n$ with zero bracket. The
    frame-flat and the Levi-Civita connection are the same.

    **Arguments:**

    - `n`: the dimension; points have shape `(n,)`.
    """

    n: int = eqx.field(static=True)

    def __check_init__(self):
        check_geometry(self, 1, "levi-civita")

    @property
    def connection(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Always `"levi-civita"`, which here is the frame connection too."""
        return "levi-civita"

    @property
    def flat(self) -> bool:
        return True

    @property
    def dim(self) -> int:
        return self.n

    @property
    def point_shape(self) -> tuple[int]:
        return (self.n,)

    def base_point(self, dtype=None) -> Vector:
        """The origin."""
        return jnp.zeros(self.n, default_dtype(dtype))

    def point_from_vector(self, x: Vector) -> Vector:
        return x

    def coordinates(self, y: Vector, v: Vector) -> Vector:
        return v

    def generator(self, y: Vector, u: Vector) -> Vector:
        return u

    def act(self, xi: Vector, y: Vector) -> Vector:
        return y + xi

    def fundamental(self, xi: Vector, y: Vector) -> Vector:
        return xi

    def lie_bracket(self, xi: Vector, eta: Vector) -> Vector:
        return jnp.zeros_like(xi)

    def log(self, y: Vector, z: Vector) -> Vector:
        return z - y

    def christoffel(self, y: Vector, u: Vector, v: Vector) -> Vector:
        return jnp.zeros_like(u)

    def bracket(self, y: Vector, u: Vector, v: Vector) -> Vector:
        return jnp.zeros_like(u)

    def belongs(self, y: Vector, tol: float | None = None) -> Bool[Array, ""]:
        """Every finite vector belongs."""
        return jnp.all(jnp.isfinite(y))

    def random_point(self, *, key: PRNGKeyArray, dtype=None) -> Vector:
        """Standard normal."""
        return jr.normal(key, (self.n,), default_dtype(dtype))

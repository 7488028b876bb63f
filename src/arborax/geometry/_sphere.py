"""The unit sphere."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ._base import AbstractGeometry, check_geometry, default_dtype, default_tolerance
from ._matrix import matvec
from ._rotation import exp_times
from ._trigonometric import angle_over_sine, stumpff


Vector = Float[Array, " dim"]
Matrix = Float[Array, "dim dim"]


def _feedback(y: Array) -> Array:
    """One Newton step towards unit length; the identity on the sphere."""
    return y * (1.5 - jnp.sum(y * y) / 2)


class Sphere(AbstractGeometry):
    r"""The unit sphere $S^n \subset \mathbb{R}^{n+1}$ with the round metric.

    A sphere has no global frame, so coordinates are ambient and over-complete:
    $E_a(y) = e_a - y_a y$ is the projection of the standard basis, `dim` is n + 1 and
    the coordinates of a tangent vector are the vector itself. Coordinates along $y$ are
    ignored.

    $SO(n+1)$ acts by matrix product; the generator of the tangent vector $v$ at $y$ is
    $v y^\top - y v^\top$. For n <= 2 its exponential is Rodrigues' formula; for larger
    n sums of generators are general skew matrices and `act` takes a matrix exponential,
    while `exp` is always the closed form $\cos|v|\,y + \sin|v|\,v/|v|$.

    The connection is Levi-Civita, $\nabla_U V = DV[U] + \langle U, V\rangle y$, in
    coordinates $\Gamma(u, v) = -\langle v, y\rangle (u - \langle u, y\rangle y)$. There
    is no frame connection: over-complete fields cannot all be parallel.

    `act` and `exp` end with one Newton step towards unit length, the identity on the
    sphere, so that rounding errors do not add up.

    **Arguments:**

    - `n`: dimension of the sphere; points have shape `(n + 1,)`.
    - `connection`: `"levi-civita"`.
    """

    n: int = eqx.field(static=True)
    connection: str = eqx.field(default="levi-civita", static=True, kw_only=True)

    def __check_init__(self):
        check_geometry(self, 1, "levi-civita")

    @property
    def dim(self) -> int:
        return self.n + 1

    @property
    def manifold_dim(self) -> int:
        return self.n

    @property
    def point_shape(self) -> tuple[int]:
        return (self.n + 1,)

    def base_point(self, dtype=None) -> Vector:
        """The last unit vector."""
        return jnp.eye(self.dim, dtype=default_dtype(dtype))[-1]

    def point_from_vector(self, x: Vector) -> Vector:
        """`x` over its length."""
        return x / jnp.sqrt(jnp.sum(x**2) + jnp.finfo(x.dtype).tiny)

    def frame(self, y: Vector, u: Vector) -> Vector:
        return u - jnp.sum(u * y) * y

    def coordinates(self, y: Vector, v: Vector) -> Vector:
        return v

    def generator(self, y: Vector, u: Vector) -> Matrix:
        # The part of u along y drops out.
        outer = u[:, None] * y[None, :]
        return outer - outer.T

    def act(self, xi: Matrix, y: Vector) -> Vector:
        return _feedback(exp_times(xi, y))

    def fundamental(self, xi: Matrix, y: Vector) -> Vector:
        return matvec(xi, y)

    def exp(self, y: Vector, u: Vector) -> Vector:
        v = self.frame(y, u)
        c0, c1, *_ = stumpff(jnp.sum(v * v))
        return _feedback(c0 * y + c1 * v)

    def log(self, y: Vector, z: Vector) -> Vector:
        """Undefined at antipodal points."""
        c = jnp.sum(y * z)
        v = self.frame(y, z - y)
        return angle_over_sine(jnp.sum(v * v), c) * v

    def christoffel(self, y: Vector, u: Vector, v: Vector) -> Vector:
        return -jnp.sum(v * y) * self.frame(y, u)

    def bracket(self, y: Vector, u: Vector, v: Vector) -> Vector:
        return jnp.sum(u * y) * v - jnp.sum(v * y) * u

    def belongs(self, y: Vector, tol: float | None = None) -> Bool[Array, ""]:
        return jnp.abs(jnp.sum(y * y) - 1) <= default_tolerance(y, tol)

    def random_point(self, *, key: PRNGKeyArray, dtype=None) -> Vector:
        """Uniform."""
        y = jr.normal(key, (self.dim,), default_dtype(dtype))
        return y / jnp.linalg.norm(y)

"""Hyperbolic space."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ._base import AbstractGeometry, check_geometry, default_dtype, default_tolerance
from ._matrix import matvec
from ._rotation import exp_times
from ._trigonometric import asinh_over_sinh, safe_norm, stumpff


Vector = Float[Array, " m"]
Coordinates = Float[Array, " n"]
Matrix = Float[Array, "m m"]


def _lift(x: Array) -> Array:
    """The point of the hyperboloid above `x`."""
    return jnp.concatenate([jnp.sqrt(1 + jnp.sum(x * x))[None], x])


class Hyperbolic(AbstractGeometry):
    r"""Hyperbolic space $H^n$ of curvature -1, as the hyperboloid
    $-y_0^2 + |x|^2 = -1$, $y = (y_0, x)$, $y_0 > 0$, in Minkowski space.

    The frame is the standard basis at the origin $(1, 0)$, parallel transported along
    the geodesic to $y$; it is orthonormal: $E_u(y) = (\langle x, u\rangle,\ u +
    \frac{\langle x, u\rangle}{1 + y_0} x)$. $SO^+(n, 1)$ acts by matrix product; the
    generator of the tangent vector $v$ is $y v^\flat - v y^\flat$. For n <= 2 its
    exponential is closed form, for larger n sums of generators are general and `act`
    takes a matrix exponential, while `exp` is always closed form.

    Connections: `"levi-civita"` (default), $\nabla_U V = DV[U] - \langle U, V\rangle
    y$, in the frame
    $\Gamma(u, v) = \frac{1}{1 + y_0} (\langle x, v\rangle u - \langle u, v\rangle x)$;
    `"frame"`, flat, whose geodesics are straight lines in the Poincaré ball
    $x/(1 + y_0)$.

    `act` and `exp` compute $x$ and set $y_0 = \sqrt{1 + |x|^2}$, so that the constraint
    holds to rounding (of numbers of size $y_0^2$: far from the origin use double
    precision).

    **Arguments:**

    - `n`: the dimension; points have shape `(n + 1,)`, time component first.
    - `connection`: `"levi-civita"` or `"frame"`.
    """

    n: int = eqx.field(static=True)
    connection: str = eqx.field(default="levi-civita", static=True, kw_only=True)

    def __check_init__(self):
        check_geometry(self, 1, "levi-civita", "frame")

    @property
    def dim(self) -> int:
        return self.n

    @property
    def point_shape(self) -> tuple[int]:
        return (self.n + 1,)

    def base_point(self, dtype=None) -> Vector:
        """The lowest point of the hyperboloid."""
        return _lift(jnp.zeros(self.n, default_dtype(dtype)))

    def frame(self, y: Vector, u: Coordinates) -> Vector:
        x = y[1:]
        time = jnp.sum(x * u)
        return jnp.concatenate([time[None], u + time / (1 + y[0]) * x])

    def coordinates(self, y: Vector, v: Vector) -> Coordinates:
        return v[1:] - v[0] / (1 + y[0]) * y[1:]

    def generator(self, y: Vector, u: Coordinates) -> Matrix:
        # y v^flat - v y^flat with the large terms along x cancelled by hand.
        x = y[1:]
        boost = y[0] * u - jnp.sum(x * u) / (1 + y[0]) * x
        outer = x[:, None] * u[None, :]
        top = jnp.concatenate([jnp.zeros_like(y[:1]), boost])
        below = jnp.concatenate([boost[:, None], outer - outer.T], axis=1)
        return jnp.concatenate([top[None, :], below], axis=0)

    def act(self, xi: Matrix, y: Vector) -> Vector:
        return _lift(exp_times(xi, y)[1:])

    def fundamental(self, xi: Matrix, y: Vector) -> Vector:
        return matvec(xi, y)

    def exp(self, y: Vector, u: Coordinates) -> Vector:
        if self.connection == "frame":
            return self._ball_line(y, u)
        c0, c1, *_ = stumpff(-jnp.sum(u * u))
        return _lift((c0 * y + c1 * self.frame(y, u))[1:])

    def _ball_line(self, y: Array, u: Array) -> Array:
        # In the ball z' = u (1 - |z|^2)/2: a line whose parameter s solves the Riccati
        # equation s' = a + b s + c s^2, by a fractional linear map of tanh.
        z = y[1:] / (1 + y[0])
        a, b, c = 1 / (1 + y[0]), -jnp.sum(z * u), -jnp.sum(u * u) / 2
        c0, c1, *_ = stumpff(a * c - b * b / 4)
        z = z + a * c1 / (c0 - b / 2 * c1) * u
        return _lift(2 / (1 - jnp.sum(z * z)) * z)

    def log(self, y: Vector, z: Vector) -> Coordinates:
        if self.connection == "frame":
            return self._ball_log(y, z)
        return self._geodesic_log(y, z)

    def _geodesic_log(self, y: Array, z: Array) -> Array:
        # Space part of z after the boost that takes y to the origin, from the
        # difference z - y so that close points lose no digits.
        d = z - y
        slope = (jnp.sum(y[1:] * d[1:]) - y[0] * d[0]) / (1 + y[0])
        u = self.coordinates(y, d) + slope * y[1:]
        return asinh_over_sinh(jnp.sum(u * u)) * u

    def _ball_log(self, y: Array, z: Array) -> Array:
        # Time along the line of `_ball_line`: the integral of 1/(a + b r + c r^2) over
        # [0, 1] is 2 atanh(w)/sqrt(b^2 - 4 a c), w = sqrt(b^2 - 4 a c)/(2 a + b).
        a, end = 1 / (1 + y[0]), 1 / (1 + z[0])
        start = a * y[1:]
        d = end * z[1:] - start
        b, c = -jnp.sum(start * d), -jnp.sum(d * d) / 2
        product = a * end
        sinh2 = (b * b - 4 * a * c) / (4 * product)
        return asinh_over_sinh(sinh2) / jnp.sqrt(product) * d

    def distance(self, y: Vector, z: Vector) -> Float[Array, ""]:
        """Hyperbolic distance, for both connections."""
        return safe_norm(self._geodesic_log(y, z))

    def christoffel(self, y: Vector, u: Coordinates, v: Coordinates) -> Coordinates:
        if self.connection == "frame":
            return jnp.zeros_like(u)
        x = y[1:]
        return (jnp.sum(x * v) * u - jnp.sum(u * v) * x) / (1 + y[0])

    def bracket(self, y: Vector, u: Coordinates, v: Coordinates) -> Coordinates:
        x = y[1:]
        return (jnp.sum(x * v) * u - jnp.sum(x * u) * v) / (1 + y[0])

    def belongs(self, y: Vector, tol: float | None = None) -> Bool[Array, ""]:
        """On the upper sheet, up to `tol` relative to $y_0^2$."""
        defect = jnp.abs(y[0] ** 2 - jnp.sum(y[1:] ** 2) - 1)
        return (defect <= default_tolerance(y, tol) * y[0] ** 2) & (y[0] > 0)

    def random_point(self, *, key: PRNGKeyArray, dtype=None) -> Vector:
        """The geodesic image of a standard normal tangent vector at the origin."""
        u = jr.normal(key, (self.n,), default_dtype(dtype))
        _, c1, *_ = stumpff(-jnp.sum(u * u))
        return _lift(c1 * u)

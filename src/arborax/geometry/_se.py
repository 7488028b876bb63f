"""Rigid motions of space."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ._base import AbstractGeometry, check_geometry, default_dtype, default_tolerance
from ._matrix import commutator, matmul, matvec, transpose
from ._rotation import feedback, hat, log_rotation_3, vee
from ._trigonometric import safe_norm, stumpff


Matrix = Float[Array, "4 4"]
Vector = Float[Array, " 6"]


def _blocks(rotation: Array, translation: Array, corner: float) -> Array:
    top = jnp.concatenate([rotation, translation[:, None]], axis=1)
    bottom = jnp.asarray([[0.0, 0.0, 0.0, corner]], rotation.dtype)
    return jnp.concatenate([top, bottom], axis=0)


def _split(y: Array) -> tuple[Array, Array]:
    return y[:3, :3], y[:3, 3]


class SE(AbstractGeometry):
    r"""Rigid motions $SE(3)$ as 4x4 matrices $Y = \begin{pmatrix} R & p \\ 0 & 1
    \end{pmatrix}$, with the left-invariant frame $E_u(Y) = Y\,\widehat u$.

    Coordinates are body velocities $u = (\omega, v)$, rotation first: $\dot R =
    R\,\widehat\omega$, $\dot p = R v$. The group acts on itself from the right,
    $\exp(\xi) \cdot Y = Y e^\xi$, for the reason given in `SO`; the exponential is
    closed form, with the left Jacobian of SO(3) for the translation. The frame is
    orthonormal for the left-invariant metric $|\omega|^2 + |v|^2$, which is the product
    metric of $SO(3) \times \mathbb{R}^3$. No bi-invariant metric exists.

    Connections: `"frame"` (default), flat with torsion, geodesics are screw motions $Y
    e^{t\widehat u}$; `"levi-civita"` of the product metric, $\Gamma(u, u') = (\frac12
    \omega\times\omega', \omega\times v')$, geodesics rotate and translate
    independently, $(R e^{t\widehat\omega}, p + t R v)$. The two differ in their
    geodesics, hence in their Itô equations.

    **Arguments:**

    - `n`: must be 3; points have shape `(4, 4)`.
    - `connection`: `"frame"` or `"levi-civita"`.
    """

    n: int = eqx.field(static=True, default=3)
    connection: str = eqx.field(default="frame", static=True, kw_only=True)

    def __check_init__(self):
        check_geometry(self, 1, "frame", "levi-civita")
        if self.n != 3:
            raise ValueError(f"Only SE(3) is available, got SE({self.n}).")

    @property
    def dim(self) -> int:
        return 6

    @property
    def invariant_frame(self) -> bool:
        return True

    @property
    def point_shape(self) -> tuple[int, int]:
        return (4, 4)

    def base_point(self, dtype=None) -> Matrix:
        """The identity."""
        return jnp.eye(4, dtype=default_dtype(dtype))

    def coordinates(self, y: Matrix, v: Matrix) -> Vector:
        r, _ = _split(y)
        dr, dp = _split(v)
        rt = transpose(r)
        return jnp.concatenate([vee(matmul(rt, dr)), matvec(rt, dp)])

    def generator(self, y: Matrix, u: Vector) -> Matrix:
        return _blocks(hat(3, u[:3]), u[3:], 0.0)

    def act(self, xi: Matrix, y: Matrix) -> Matrix:
        k, v = _split(xi)
        r, p = _split(y)
        k2 = matmul(k, k)
        _, c1, c2, c3, _ = stumpff(-jnp.trace(k2) / 2)
        rotation = jnp.eye(3, dtype=k.dtype) + c1 * k + c2 * k2
        shift = v + c2 * matvec(k, v) + c3 * matvec(k2, v)
        return _blocks(feedback(matmul(r, rotation)), p + matvec(r, shift), 1.0)

    def fundamental(self, xi: Matrix, y: Matrix) -> Matrix:
        return matmul(y, xi)

    def lie_bracket(self, xi: Matrix, eta: Matrix) -> Matrix:
        return commutator(eta, xi)

    def exp(self, y: Matrix, u: Vector) -> Matrix:
        if self.connection == "frame":
            return self.act(self.generator(y, u), y)
        r, p = _split(y)
        turned = self.act(_blocks(hat(3, u[:3]), jnp.zeros_like(p), 0.0), y)
        return _blocks(turned[:3, :3], p + matvec(r, u[3:]), 1.0)

    def log(self, y: Matrix, z: Matrix) -> Vector:
        omega, v = self._relative(y, z)
        if self.connection == "frame":
            # Inverse left Jacobian 1 - k/2 + c k^2, with c free of cancellation.
            _, _, c2, c3, c4 = stumpff(jnp.sum(omega * omega))
            kv = jnp.cross(omega, v)
            v = v - kv / 2 + (c3 - 2 * c4) / (2 * c2) * jnp.cross(omega, kv)
        return jnp.concatenate([omega, v])

    def distance(self, y: Matrix, z: Matrix) -> Float[Array, ""]:
        """Distance of the product metric, for both connections; left-invariant."""
        return safe_norm(jnp.concatenate(self._relative(y, z)))

    def _relative(self, y: Matrix, z: Matrix) -> tuple[Array, Array]:
        """Rotation vector and shift from `y` to `z`, in the body frame of `y`."""
        (r, p), (r1, p1) = _split(y), _split(z)
        rt = transpose(r)
        return log_rotation_3(matmul(rt, r1)), matvec(rt, p1 - p)

    def christoffel(self, y: Matrix, u: Vector, v: Vector) -> Vector:
        if self.connection == "frame":
            return jnp.zeros_like(u)
        omega = u[:3]
        turn = jnp.cross(omega, v[:3]) / 2
        return jnp.concatenate([turn, jnp.cross(omega, v[3:])])

    def bracket(self, y: Matrix, u: Vector, v: Vector) -> Vector:
        shift = jnp.cross(u[:3], v[3:]) - jnp.cross(v[:3], u[3:])
        return jnp.concatenate([jnp.cross(u[:3], v[:3]), shift])

    def belongs(self, y: Matrix, tol: float | None = None) -> Bool[Array, ""]:
        r, p = _split(y)
        defect = matmul(transpose(r), r) - jnp.eye(3, dtype=y.dtype)
        bottom = y[3] - jnp.asarray([0.0, 0.0, 0.0, 1.0], y.dtype)
        error = jnp.maximum(jnp.max(jnp.abs(defect)), jnp.max(jnp.abs(bottom)))
        proper = (jnp.linalg.det(r) > 0) & jnp.all(jnp.isfinite(p))
        return (error <= default_tolerance(y, tol)) & proper

    def random_point(self, *, key: PRNGKeyArray, dtype=None) -> Matrix:
        """Uniform rotation, standard normal translation."""
        q, p = jnp.split(jr.normal(key, (7,), default_dtype(dtype)), [4])
        w, (a, b, c) = q[0], q[1:]
        k = hat(3, jnp.stack([a, b, c]))
        # Cayley form of the unit quaternion (w, a, b, c) / |q|.
        r = jnp.eye(3, dtype=q.dtype) + 2 / jnp.sum(q * q) * (w * k + matmul(k, k))
        return _blocks(r, p, 1.0)

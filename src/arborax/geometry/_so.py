"""The rotation group."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ._base import AbstractGeometry, check_geometry, default_dtype, default_tolerance
from ._matrix import commutator, matmul, transpose
from ._rotation import exp_skew, feedback, hat, log_rotation, vee
from .heads import gram_schmidt_6d, project_rotation


Matrix = Float[Array, "n n"]
Vector = Float[Array, " dim"]


class SO(AbstractGeometry):
    r"""Rotations: $SO(n)$ with the left-invariant frame $E_a(Y) = Y\,\widehat{e_a}$.

    For n = 3, $\widehat{\cdot}$ is the cross-product matrix, so that $[E_a, E_b] =
    Y\,\widehat{e_a \times e_b}$; otherwise the basis of so(n) has one matrix for each
    pair i < j in lexicographic order, +1 at (j, i) and -1 at (i, j). The frame is
    orthonormal for the bi-invariant metric $\langle A, B\rangle = \mathrm{tr}(A^\top
    B)/2$.

    The group acts on itself from the **right**, $\exp(\xi) \cdot Y = Y e^\xi$. The
    generator of $u$ is then $\widehat u$ at every point, and commutator-free schemes
    add coordinates of fields directly.

    Connections: `"frame"` (default), flat with torsion, and `"levi-civita"`,
    $\nabla_{E_a} E_b = [E_a, E_b]/2$. They share their geodesics $Y e^{t \widehat u}$
    and so give the same Itô equations.

    `act` ends with one Newton-Schulz factor $(3 - Y^\top Y)/2$, the identity on the
    group, so that rounding does not take the state off the group over many steps.

    !!! example

        ```python
        space = abx.SO(3)
        y = space.exp(space.base_point(), jnp.array([0.0, 0.0, 0.5]))  # half a radian
        fields = lambda y: jnp.eye(3)                     # three fields, in the frame
        abx.solve(fields, y, control, geometry=space).ys  # (knots, 3, 3)
        ```

    **Arguments:**

    - `n`: size of the matrices, at least 2; points have shape `(n, n)`.
    - `connection`: `"frame"` or `"levi-civita"`.
    """

    n: int = eqx.field(static=True)
    connection: str = eqx.field(default="frame", static=True, kw_only=True)

    def __check_init__(self):
        check_geometry(self, 2, "frame", "levi-civita")

    @property
    def dim(self) -> int:
        return self.n * (self.n - 1) // 2

    @property
    def invariant_frame(self) -> bool:
        return True

    @property
    def point_shape(self) -> tuple[int, int]:
        return (self.n, self.n)

    def base_point(self, dtype=None) -> Matrix:
        """The identity."""
        return jnp.eye(self.n, dtype=default_dtype(dtype))

    @property
    def vector_size(self) -> int:
        return 6 if self.n == 3 else self.n**2

    def point_from_vector(self, x: Float[Array, " vector"]) -> Matrix:
        """Gram-Schmidt of two columns for `n = 3`, otherwise the nearest rotation."""
        if self.n == 3:
            return gram_schmidt_6d(x)
        return project_rotation(x.reshape(self.n, self.n))

    def coordinates(self, y: Matrix, v: Matrix) -> Vector:
        return vee(matmul(transpose(y), v))

    def generator(self, y: Matrix, u: Vector) -> Matrix:
        return hat(self.n, u)

    def act(self, xi: Matrix, y: Matrix) -> Matrix:
        return feedback(matmul(y, exp_skew(xi)))

    def fundamental(self, xi: Matrix, y: Matrix) -> Matrix:
        return matmul(y, xi)

    def lie_bracket(self, xi: Matrix, eta: Matrix) -> Matrix:
        return commutator(eta, xi)

    def log(self, y: Matrix, z: Matrix) -> Vector:
        """Principal logarithm; for n <= 3 accurate up to angle pi, for larger n the
        angles must stay away from pi (by more than about 1e-3)."""
        return log_rotation(matmul(transpose(y), z))

    def christoffel(self, y: Matrix, u: Vector, v: Vector) -> Vector:
        if self.connection == "frame":
            return jnp.zeros_like(u)
        return self.bracket(y, u, v) / 2

    def bracket(self, y: Matrix, u: Vector, v: Vector) -> Vector:
        if self.n == 3:
            return jnp.cross(u, v)
        # The product of two skew matrices has the commutator as twice its skew part.
        return 2 * vee(matmul(hat(self.n, u), hat(self.n, v)))

    def belongs(self, y: Matrix, tol: float | None = None) -> Bool[Array, ""]:
        defect = matmul(transpose(y), y) - jnp.eye(self.n, dtype=y.dtype)
        orthogonal = jnp.max(jnp.abs(defect)) <= default_tolerance(y, tol)
        return orthogonal & (jnp.linalg.det(y) > 0)

    def random_point(self, *, key: PRNGKeyArray, dtype=None) -> Matrix:
        """Haar measure."""
        a = jr.normal(key, (self.n, self.n), default_dtype(dtype))
        q, r = jnp.linalg.qr(a)
        q = q * jnp.sign(jnp.diagonal(r))[None, :]
        flip = jnp.sign(jnp.linalg.det(q))
        return jnp.concatenate([q[:, :1] * flip, q[:, 1:]], axis=1)

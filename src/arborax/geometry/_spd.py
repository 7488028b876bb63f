"""Symmetric positive definite matrices."""

import functools as ft

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from .._xla import small_einsum
from ._base import AbstractGeometry, check_geometry, default_dtype, default_tolerance
from ._matrix import (
    cholesky,
    commutator,
    expm,
    expm_symmetric,
    inverse_lower,
    logm,
    lyapunov,
    matmul,
    sqrtm,
    symmetric,
    symmetric_basis,
    symmetric_coordinates,
    symmetrise,
    transpose,
)
from ._trigonometric import safe_norm
from .heads import clip_spectrum, spd_from_vech, unvech


_LEAST_EIGENVALUE = 1e-6  # of a matrix that is read out
_SHORT_TABLE = 3  # size of matrices up to which these tables are contracted as they are


Matrix = Float[Array, "n n"]
Vector = Float[Array, " dim"]


def _half_lower(s: Array) -> Array:
    """Strict lower triangle plus half the diagonal: the lower triangular matrix whose
    symmetric sum is `s`."""
    n = s.shape[-1]
    mask = jnp.tril(jnp.ones((n, n), s.dtype), -1) + jnp.eye(n, dtype=s.dtype) / 2
    return s * mask


def _symmetric_products(left: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Coordinates of `left_a basis_b` plus its transpose, one row for each pair."""
    products = np.einsum("aij,bjk->abik", left, basis)
    sums = products + products.transpose(0, 1, 3, 2)
    return np.einsum("abij,cij->abc", sums, basis).reshape(-1, basis.shape[0])


@ft.cache
def _cholesky_christoffel(n: int) -> np.ndarray:
    """The constant coefficients of the Levi-Civita connection in the Cholesky frame,
    one row for each pair of frame fields."""
    basis = symmetric_basis(n)
    lower = np.tril(basis, -1)
    return _symmetric_products((lower - lower.transpose(0, 2, 1)) / 2, basis)


@ft.cache
def _cholesky_turning(n: int) -> np.ndarray:
    r"""Coordinates of $D E_b[E_a]$ in the Cholesky frame, one row for each pair: from
    $D L[E_S] = L \Phi(S)$, the symmetric part of $2 \Phi(S_a) S_b$."""
    basis = symmetric_basis(n)
    return _symmetric_products(np.tril(basis, -1) + basis * np.eye(n) / 2, basis)


class SPD(AbstractGeometry):
    r"""Covariance matrices: $SPD(n)$ with the affine-invariant metric
    $\langle U, V\rangle_P = \mathrm{tr}(P^{-1} U P^{-1} V)$.

    $GL(n)$ acts by $g \cdot P = g P g^\top$. With a root $F F^\top = P$ the frame is
    $E_S(P) = F S F^\top$ for $S$ in the orthonormal basis of symmetric matrices: unit
    diagonal matrices and $(e_{ij} + e_{ji})/\sqrt2$, in the order 00, 10, 11, 20, 21,
    22 of the lower triangle. It is orthonormal. The generator $\xi = F S F^{-1}/2$ is
    horizontal: $\exp(t\xi) \cdot P$ is the geodesic $F e^{tS} F^\top$.

    * `frame="cholesky"` (default): $F = L$ lower triangular. No eigendecomposition, and
      the connection has constant coefficients,
      $\Gamma(S, T) = \frac12 [\Phi(S) - \Phi(S)^\top, T]$ with $\Phi$ the strict lower
      triangle plus half the diagonal.
    * `frame="root"`: $F = P^{1/2}$ symmetric, equivariant under rotations;
      $\Gamma(S, T) = [A, T]$ with $A P^{1/2} + P^{1/2} A = \frac12 [S, P^{1/2}]$.
      Derivatives go through Lyapunov equations and are finite where eigenvalues repeat.

    Connections: `"levi-civita"` (default),
    $\nabla_U V = DV[U] - \frac12 (U P^{-1} V + V P^{-1} U)$, and `"frame"`, the flat
    connection in which the chosen frame is parallel. In the Cholesky frame its
    geodesics have the factors $L e^{t \Phi(S)}$; in the root frame they have no closed
    form.

    !!! example

        ```python
        space = abx.SPD(2)                                 # dimension 3
        y0 = jnp.array([[1.0, 0.3], [0.3, 2.0]])
        fields = lambda y: 0.1 * jnp.eye(3)                # three fields, in the frame
        abx.solve(fields, y0, control, geometry=space).ys  # (knots, 2, 2)
        ```

    **Arguments:**

    - `n`: size of the matrices; points have shape `(n, n)`.
    - `frame`: `"cholesky"` or `"root"`; stored as `root`.
    - `connection`: `"levi-civita"` or `"frame"`.
    """

    n: int = eqx.field(static=True)
    root: str = eqx.field(static=True)
    connection: str = eqx.field(static=True)

    def __init__(
        self, n: int, frame: str = "cholesky", *, connection: str = "levi-civita"
    ):
        if frame not in ("cholesky", "root"):
            raise ValueError(
                f"SPD(n) has the frames ('cholesky', 'root'), got frame={frame!r}."
            )
        self.n, self.root, self.connection = n, frame, connection
        check_geometry(self, 1, "levi-civita", "frame")

    @property
    def dim(self) -> int:
        return self.n * (self.n + 1) // 2

    @property
    def point_shape(self) -> tuple[int, int]:
        return (self.n, self.n)

    def base_point(self, dtype=None) -> Matrix:
        """The identity."""
        return jnp.eye(self.n, dtype=default_dtype(dtype))

    def point_from_vector(self, x: Vector) -> Matrix:
        """The exponential of the symmetric matrix with lower triangle `x`, its
        eigenvalues clipped to [-8, 8]."""
        return spd_from_vech(x)

    def project_vector(self, x: Vector) -> Matrix:
        """The matrix with lower triangle `x` itself, eigenvalues clipped at 1e-6."""
        return clip_spectrum(unvech(x), _LEAST_EIGENVALUE)

    def _factor(self, y: Array) -> Array:
        return cholesky(y) if self.root == "cholesky" else sqrtm(y)

    def _inverse(self, f: Array) -> Array:
        return inverse_lower(f) if self.root == "cholesky" else jnp.linalg.inv(f)

    def frame(self, y: Matrix, u: Vector) -> Matrix:
        f = self._factor(y)
        return symmetrise(matmul(matmul(f, symmetric(self.n, u)), transpose(f)))

    def coordinates(self, y: Matrix, v: Matrix) -> Vector:
        g = self._inverse(self._factor(y))
        return symmetric_coordinates(matmul(matmul(g, v), transpose(g)))

    def generator(self, y: Matrix, u: Vector) -> Matrix:
        f = self._factor(y)
        return matmul(matmul(f, symmetric(self.n, u) / 2), self._inverse(f))

    def act(self, xi: Matrix, y: Matrix) -> Matrix:
        # Through a factor, so that the result is positive definite by construction.
        f = matmul(expm(xi), cholesky(y))
        return symmetrise(matmul(f, transpose(f)))

    def fundamental(self, xi: Matrix, y: Matrix) -> Matrix:
        v = matmul(xi, y)
        return v + transpose(v)

    def exp(self, y: Matrix, u: Vector) -> Matrix:
        s = symmetric(self.n, u)
        if self.connection == "levi-civita":
            f = matmul(self._factor(y), expm(s / 2))
        elif self.root == "cholesky":
            f = matmul(cholesky(y), expm(_half_lower(s)))
        else:
            raise NotImplementedError(
                "The flat connection of the root frame has no closed-form geodesics. "
                "Use `frame='cholesky'` or `connection='levi-civita'`."
            )
        return symmetrise(matmul(f, transpose(f)))

    def log(self, y: Matrix, z: Matrix) -> Vector:
        if self.connection == "frame":
            raise NotImplementedError(
                "SPD(n) with the frame connection has no logarithm in closed form. Use "
                "`connection='levi-civita'`."
            )
        g = self._inverse(self._factor(y))
        return symmetric_coordinates(logm(matmul(matmul(g, z), transpose(g))))

    def distance(self, y: Matrix, z: Matrix) -> Float[Array, ""]:
        """Affine-invariant distance, for both connections."""
        g = inverse_lower(cholesky(y))
        return safe_norm(logm(matmul(matmul(g, z), transpose(g))))

    def christoffel(self, y: Matrix, u: Vector, v: Vector) -> Vector:
        if self.connection == "frame":
            return jnp.zeros_like(u)
        if self.root == "cholesky" and self.n <= _SHORT_TABLE:
            table = jnp.asarray(_cholesky_christoffel(self.n), u.dtype)
            table = table.reshape(self.dim, self.dim, self.dim)
            rows = small_einsum("a,abc->bc", u, table, place="last")
            return small_einsum("b,bc->c", v, rows, place="last")
        return self._levi_civita(y, u, v)

    def christoffel_sum(self, y: Matrix, m: Float[Array, "dim dim"]) -> Vector:
        if self.connection == "frame":
            return jnp.zeros_like(m[0])
        if self.root == "root":
            return super().christoffel_sum(y, m)
        return self._contract(_cholesky_christoffel(self.n), m)

    def turning(self, y: Matrix, m: Float[Array, "dim dim"]) -> Matrix:
        if self.root == "root":
            return super().turning(y, m)
        return self.frame(y, self._contract(_cholesky_turning(self.n), m))

    def _contract(self, table: np.ndarray, m: Array) -> Array:
        """A table with a row for each pair of frame fields, with coefficients."""
        rows = jnp.asarray(table, m.dtype)
        if self.n > _SHORT_TABLE:
            return m.reshape(-1) @ rows
        return small_einsum("ab,abc->c", m, rows.reshape(*m.shape, -1), place="last")

    def _levi_civita(self, y: Matrix, u: Vector, v: Vector) -> Vector:
        s = symmetric(self.n, u)
        if self.root == "cholesky":
            a = _half_lower(s)
            a = (a - transpose(a)) / 2
        else:
            f = sqrtm(y)
            a = lyapunov(f, commutator(s, f) / 2)
        return symmetric_coordinates(commutator(a, symmetric(self.n, v)))

    def bracket(self, y: Matrix, u: Vector, v: Vector) -> Vector:
        # The Levi-Civita connection has no torsion.
        return self._levi_civita(y, u, v) - self._levi_civita(y, v, u)

    def belongs(self, y: Matrix, tol: float | None = None) -> Bool[Array, ""]:
        """Symmetric up to `tol` relative to the largest entry, and positive
        definite."""
        scale = jnp.maximum(jnp.max(jnp.abs(y)), jnp.finfo(y.dtype).tiny)
        skew = jnp.max(jnp.abs(y - transpose(y))) / scale
        f = cholesky(y)
        positive = jnp.all(jnp.isfinite(f)) & jnp.all(jnp.diagonal(f) > 0)
        return (skew <= default_tolerance(y, tol)) & positive

    def random_point(self, *, key: PRNGKeyArray, dtype=None) -> Matrix:
        """Exponential of a matrix with standard normal coordinates."""
        u = jr.normal(key, (self.dim,), default_dtype(dtype))
        return expm_symmetric(symmetric(self.n, u))

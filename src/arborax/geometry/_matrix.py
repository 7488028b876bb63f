"""Small dense matrices: products, exponential, Cholesky factor, symmetric root and
logarithm, all with derivatives of every order."""

import functools as ft
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._xla import custom_jvp, small_product, written_out
from ._trigonometric import stumpff


def transpose(a: Float[Array, "m n"]) -> Float[Array, "n m"]:
    return jnp.swapaxes(a, -1, -2)


def symmetrise(a: Float[Array, "n n"]) -> Float[Array, "n n"]:
    return (a + transpose(a)) / 2


def matmul(a: Float[Array, "m k"], b: Float[Array, "k n"]) -> Float[Array, "m n"]:
    """Matrix product at full precision of the dtype.

    On accelerators the default precision would leave the manifold.
    """
    if written_out(max(*a.shape, *b.shape)):
        return small_product(a, b)
    return jnp.matmul(a, b, precision="highest")


def commutator(a: Float[Array, "n n"], b: Float[Array, "n n"]) -> Float[Array, "n n"]:
    return matmul(a, b) - matmul(b, a)


def matvec(a: Float[Array, "m n"], x: Float[Array, " n"]) -> Float[Array, " m"]:
    return matmul(a, x[:, None])[:, 0]


def _max_squarings(dtype) -> int:
    """Enough for every exponential that does not overflow."""
    return 8 if jnp.finfo(dtype).bits <= 32 else 11


def _squarings(radius: Array, target: float) -> tuple[Array, Array, Array]:
    """How often to halve a matrix of the given norm to bring it below `target`; the
    scale, a power of two; and whether the bound of the loop suffices."""
    # frexp: radius / target < 2**exponent, with no rounding of a logarithm.
    _, exponent = jnp.frexp(jax.lax.stop_gradient(radius) / target)
    limit = _max_squarings(radius.dtype)
    count = jnp.clip(exponent, 0, limit)
    scale = jnp.ldexp(jnp.ones((), radius.dtype), -count)
    return count, scale, exponent <= limit


def _expm_2(a: Array) -> Array:
    """A matrix without trace has `a @ a = -det(a)`."""
    det = a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    c0, c1, *_ = stumpff(det)
    return c0 * jnp.eye(2, dtype=a.dtype) + c1 * a


def _taylor(a: Array, degree: int, block: int) -> Array:
    """Taylor polynomial of the exponential by Paterson and Stockmeyer."""
    n = a.shape[-1]
    powers = [jnp.eye(n, dtype=a.dtype), a]
    for _ in range(block - 1):
        powers.append(matmul(powers[-1], a))

    def chunk(start: int, count: int) -> Array:
        terms = (
            powers[j] * jnp.asarray(1 / math.factorial(start + j), a.dtype)
            for j in range(count)
        )
        return ft.reduce(jnp.add, terms)

    total = chunk(degree - block, block + 1)
    for start in range(degree - 2 * block, -1, -block):
        total = chunk(start, block) + matmul(powers[block], total)
    return total


def _expm_n(a: Array) -> Array:
    """Scaling, Taylor polynomial and squaring with matrix products."""
    single = jnp.finfo(a.dtype).bits <= 32
    degree, block, target = (9, 3, 0.5) if single else (16, 4, 0.75)
    norm = jnp.max(jnp.sum(jnp.abs(a), axis=-2))
    count, scale, valid = _squarings(norm, target)

    def square(i, g):
        return jnp.where(i < count, matmul(g, g), g)

    g = _taylor(a * scale, degree, block)
    g = jax.lax.fori_loop(0, _max_squarings(a.dtype), square, g)
    return jnp.where(valid, g, jnp.nan)


def expm(a: Float[Array, "n n"]) -> Float[Array, "n n"]:
    r"""Matrix exponential, exact to rounding (relative to its norm).

    The trace is taken out first. Size 2 is closed form. Larger sizes scale below norm
    0.75 (0.5 in single precision), where a Taylor polynomial of degree 16 (9) has
    reached rounding level, and square back: 17 (12) matrix products, no linear solve.
    The number of squarings is bounded by 11 (8), so reverse mode, `vmap` and higher
    derivatives work. Norms above about 1500 (128), whose exponential mostly overflows,
    give NaN.

    **Arguments:**

    - `a`: square matrix.

    **Returns:**

    $e^a$, of the same shape.
    """
    n = a.shape[-1]
    if n == 1:
        return jnp.exp(a)
    mean = jnp.trace(a) / n
    a = a - mean * jnp.eye(n, dtype=a.dtype)
    return jnp.exp(mean) * (_expm_2(a) if n == 2 else _expm_n(a))


def cholesky(p: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Lower Cholesky factor; only the lower triangle is read. NaN if not positive."""
    n = p.shape[-1]
    if not written_out(n):
        return jnp.linalg.cholesky(symmetrise(p))
    zero = jnp.zeros((), p.dtype)
    rows: list[list[Array]] = [[zero] * n for _ in range(n)]
    for j in range(n):
        pivot = p[j, j] - sum((rows[j][k] ** 2 for k in range(j)), zero)
        rows[j][j] = jnp.sqrt(pivot)
        for i in range(j + 1, n):
            dot = sum((rows[i][k] * rows[j][k] for k in range(j)), zero)
            rows[i][j] = (p[i, j] - dot) / rows[j][j]
    return jnp.stack([jnp.stack(row) for row in rows])


def inverse_lower(a: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Inverse of a lower triangular matrix."""
    n = a.shape[-1]
    if not written_out(n):
        eye = jnp.eye(n, dtype=a.dtype)
        return jax.scipy.linalg.solve_triangular(a, eye, lower=True)
    zero = jnp.zeros((), a.dtype)
    rows: list[list[Array]] = [[zero] * n for _ in range(n)]
    for j in range(n):
        rows[j][j] = 1 / a[j, j]
        for i in range(j + 1, n):
            dot = sum((a[i, k] * rows[k][j] for k in range(j, i)), zero)
            rows[i][j] = -dot / a[i, i]
    return jnp.stack([jnp.stack(row) for row in rows])


def lyapunov(r: Float[Array, "n n"], q: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Solution of `r x + x r = q` for symmetric `r` with no two eigenvalues of sum
    zero.

    A dense solve of size n^2, a rational function of `r`: unlike an
    eigendecomposition it can be differentiated any number of times where
    eigenvalues repeat.
    """
    n = r.shape[-1]
    eye = jnp.eye(n, dtype=r.dtype)
    operator = r[:, None, :, None] * eye[None, :, None, :]
    operator = operator + eye[:, None, :, None] * r[None, :, None, :]
    x = jnp.linalg.solve(operator.reshape(n * n, n * n), q.reshape(n * n))
    return x.reshape(n, n)


@custom_jvp
def sqrtm(p: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Symmetric root of a symmetric positive definite matrix.

    The derivative solves the Lyapunov equation `r dr + dr r = dp`, so it is finite at
    repeated eigenvalues, to any order and in both modes.
    """
    w, v = jnp.linalg.eigh(symmetrise(p))
    return matmul(v * jnp.sqrt(w)[None, :], transpose(v))


@sqrtm.defjvp
def _sqrtm_jvp(primals, tangents):
    (p,), (dp,) = primals, tangents
    # Called with primals only: the rule then survives reverse over reverse.
    r = sqrtm(p)
    return r, lyapunov(r, symmetrise(dp))


def expm_symmetric(s: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Exponential of a symmetric matrix: symmetric and positive definite, as the square
    of the exponential of half the matrix."""
    g = expm(symmetrise(s) / 2)
    return matmul(g, transpose(g))


@ft.cache
def symmetric_basis(n: int) -> np.ndarray:
    """Orthonormal basis of symmetric matrices, shape `(n (n+1)/2, n, n)`, in the order
    of the lower triangle read by rows: 00, 10, 11, 20, 21, 22, ..."""
    basis = []
    for i in range(n):
        for j in range(i + 1):
            e = np.zeros((n, n))
            e[i, j] = e[j, i] = 1.0 if i == j else math.sqrt(0.5)
            basis.append(e)
    return np.stack(basis)


def symmetric(n: int, u: Float[Array, " k"]) -> Float[Array, "n n"]:
    """Symmetric matrix with coordinates `u` in `symmetric_basis(n)`."""
    if not written_out(n):
        return combine(symmetric_basis(n), u)
    root = math.sqrt(0.5)
    entries = {}
    for k, (i, j) in enumerate(zip(*np.tril_indices(n))):
        entries[i, j] = entries[j, i] = u[k] if i == j else u[k] * root
    rows = [jnp.stack([entries[i, j] for j in range(n)]) for i in range(n)]
    return jnp.stack(rows)


def symmetric_coordinates(s: Float[Array, "n n"]) -> Float[Array, " k"]:
    """Coordinates in `symmetric_basis(n)` of the symmetric part of `s`."""
    n = s.shape[-1]
    if not written_out(n):
        return components(symmetric_basis(n), s)
    root = math.sqrt(0.5)
    pairs = zip(*np.tril_indices(n))
    return jnp.stack(
        [s[i, i] if i == j else (s[i, j] + s[j, i]) * root for i, j in pairs]
    )


def combine(basis: np.ndarray, u: Float[Array, " k"]) -> Float[Array, "n n"]:
    """The matrix with coordinates `u` in a static basis of shape `(k, n, n)`."""
    return jnp.tensordot(u, jnp.asarray(basis, u.dtype), 1, precision="highest")


def components(basis: np.ndarray, a: Float[Array, "n n"]) -> Float[Array, " k"]:
    """Frobenius inner products of `a` with a static basis of shape `(k, n, n)`."""
    return jnp.tensordot(jnp.asarray(basis, a.dtype), a, 2, precision="highest")


@custom_jvp
def logm(p: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Symmetric logarithm of a symmetric positive definite matrix.

    The derivative inverts that of the exponential, so it is finite at repeated
    eigenvalues, to any order and in both modes. Cost of a derivative: a solve of size
    n(n+1)/2.
    """
    w, v = jnp.linalg.eigh(symmetrise(p))
    return matmul(v * jnp.log(w)[None, :], transpose(v))


@logm.defjvp
def _logm_jvp(primals, tangents):
    (p,), (dp,) = primals, tangents
    n = p.shape[-1]
    x = logm(p)

    def exponential(u):
        return symmetric_coordinates(expm_symmetric(symmetric(n, u)))

    jacobian = jax.jacfwd(exponential)(symmetric_coordinates(x))
    du = jnp.linalg.solve(jacobian, symmetric_coordinates(dp))
    return x, symmetric(n, du)

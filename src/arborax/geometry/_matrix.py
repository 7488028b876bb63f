"""Small dense matrices: products, exponential, Cholesky factor, symmetric root and
logarithm, all with derivatives of every order."""

import functools as ft
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


_SMALL = 4
_MAX_SQUARINGS = 12


def transpose(a: Float[Array, "m n"]) -> Float[Array, "n m"]:
    return jnp.swapaxes(a, -1, -2)


def symmetrise(a: Float[Array, "n n"]) -> Float[Array, "n n"]:
    return (a + transpose(a)) / 2


def matmul(a: Float[Array, "m k"], b: Float[Array, "k n"]) -> Float[Array, "m n"]:
    """Matrix product at full precision of the dtype.

    Up to size 4 as a broadcast multiply and sum: XLA fuses it, where a batch of tiny
    dots becomes a slow loop; larger sizes through `jnp.matmul` at highest precision (on
    accelerators the default precision would leave the manifold).
    """
    if max(*a.shape, *b.shape) <= _SMALL:
        return jnp.sum(a[:, :, None] * b[None, :, :], axis=1)
    return jnp.matmul(a, b, precision="highest")


def matvec(a: Float[Array, "m n"], x: Float[Array, " n"]) -> Float[Array, " m"]:
    return jnp.sum(a * x[None, :], axis=1)


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


def expm(a: Float[Array, "n n"]) -> Float[Array, "n n"]:
    r"""Matrix exponential, exact to rounding, by scaling and squaring.

    The trace is taken out, the rest scaled below norm 0.75 (0.5 in single precision)
    where a Taylor polynomial of degree 16 (9) has reached rounding level, then squared
    back. Matrix products only, no linear solve. Squarings run in a masked loop of static
    length, so reverse mode, `vmap` and higher derivatives work; norms above about 3000
    give NaN instead of a wrong result.

    **Arguments:**

    - `a`: square matrix.

    **Returns:**

    $e^a$, of the same shape. Cost: 6 + 12 (4 + 12) matrix products.
    """
    n = a.shape[-1]
    single = jnp.finfo(a.dtype).bits <= 32
    degree, block, radius = (9, 3, 0.5) if single else (16, 4, 0.75)
    mean = jnp.trace(a) / n
    a = a - mean * jnp.eye(n, dtype=a.dtype)
    norm = jax.lax.stop_gradient(jnp.max(jnp.sum(jnp.abs(a), axis=-2)))
    # frexp: norm / radius < 2**exponent, with no rounding of a logarithm.
    _, exponent = jnp.frexp(norm / radius)
    squarings = jnp.clip(exponent, 0, _MAX_SQUARINGS)
    scale = jnp.ldexp(jnp.ones((), a.dtype), -squarings)
    # The scaled matrix minus identity would gain nothing: the trace is gone already.
    g = _taylor(a * scale, degree, block)

    def square(i, g):
        return jnp.where(i < squarings, matmul(g, g), g)

    g = jax.lax.fori_loop(0, _MAX_SQUARINGS, square, g)
    valid = exponent <= _MAX_SQUARINGS
    return jnp.where(valid, jnp.exp(mean) * g, jnp.nan)


def cholesky(p: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Lower Cholesky factor; only the lower triangle is read. NaN if not positive.

    Up to size 4 written out in scalars, which XLA fuses.
    """
    n = p.shape[-1]
    if n > _SMALL:
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
    if n > _SMALL:
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
    """Solution of `r x + x r = q` for symmetric `r` with no two eigenvalues of sum zero.

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


@jax.custom_jvp
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
    """Orthonormal basis of symmetric matrices, shape `(n (n+1)/2, n, n)`, in the order of
    the lower triangle read by rows: 00, 10, 11, 20, 21, 22, ..."""
    basis = []
    for i in range(n):
        for j in range(i + 1):
            e = np.zeros((n, n))
            e[i, j] = e[j, i] = 1.0 if i == j else math.sqrt(0.5)
            basis.append(e)
    return np.stack(basis)


def combine(basis: np.ndarray, u: Float[Array, " k"]) -> Float[Array, "n n"]:
    """The matrix with coordinates `u` in a static basis of shape `(k, n, n)`."""
    return jnp.tensordot(u, jnp.asarray(basis, u.dtype), 1, precision="highest")


def components(basis: np.ndarray, a: Float[Array, "n n"]) -> Float[Array, " k"]:
    """Frobenius inner products of `a` with a static basis of shape `(k, n, n)`."""
    return jnp.tensordot(jnp.asarray(basis, a.dtype), a, 2, precision="highest")


@jax.custom_jvp
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
    basis = symmetric_basis(p.shape[-1])
    x = logm(p)

    def exponential(u):
        return components(basis, expm_symmetric(combine(basis, u)))

    jacobian = jax.jacfwd(exponential)(components(basis, x))
    du = jnp.linalg.solve(jacobian, components(basis, symmetrise(dp)))
    return x, combine(basis, du)

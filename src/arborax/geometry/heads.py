"""Heads of models: from unconstrained outputs to points of a manifold."""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._xla import custom_jvp, Function
from ._checks import check_arrays
from ._matrix import expm_symmetric, lyapunov, matmul, symmetrise, transpose
from ._trigonometric import safe_norm


def _check_square(name: str, a: Array) -> None:
    """Refuse what is not one square matrix."""
    shape = getattr(a, "shape", (0,))
    check_arrays(name, a, (shape[0],) * 2 if shape else ("n", "n"), "a square matrix")


def _check_vector(name: str, v: Array) -> int:
    """The length of a vector; other arrays are refused."""
    shape = getattr(v, "shape", None)
    check_arrays(name, v, shape[:1] if shape else ("k",), "a vector")
    return v.shape[0]


def vech(a: Float[Array, "n n"]) -> Float[Array, " k"]:
    """Lower triangle of a matrix read by rows, 00, 10, 11, 20, 21, 22, ...,
    unscaled."""
    _check_square("a", a)
    i, j = np.tril_indices(a.shape[-1])
    return a[i, j]


def unvech(v: Float[Array, " k"]) -> Float[Array, "n n"]:
    """Symmetric matrix with lower triangle `v`; the inverse of `vech`."""
    k = _check_vector("v", v)
    n = round((2 * k + 0.25) ** 0.5 - 0.5)
    if n * (n + 1) // 2 != k:
        raise ValueError(
            f"A lower triangle has n (n + 1) / 2 entries (1, 3, 6, 10, ...), got {k}."
        )
    index = np.zeros((n, n), int)
    index[np.tril_indices(n)] = np.arange(k)
    return v[np.maximum(index, index.T)]


def gram_schmidt_6d(a: Float[Array, " 6"]) -> Float[Array, "3 3"]:
    r"""Rotation from six numbers (Zhou et al., *On the continuity of rotation
    representations in neural networks*, 2019).

    **Arguments:**

    - `a`: the first two columns before orthonormalisation, `a[:3]` and `a[3:]`.

    **Returns:**

    The matrix with columns $a$, $b$, $a \times b$. Norms are floored at 1e-7, so value
    and derivative are finite everywhere; the result is a rotation wherever the two
    inputs are independent.
    """
    check_arrays("a", a, (6,), "six numbers")
    first, second = a[:3], a[3:]
    first = first / jnp.maximum(safe_norm(first), 1e-7)
    second = second - jnp.sum(first * second) * first
    second = second / jnp.maximum(safe_norm(second), 1e-7)
    # A second pass removes what cancellation left when the inputs were nearly parallel.
    second = second - jnp.sum(first * second) * first
    second = second / jnp.maximum(safe_norm(second), 1e-7)
    return jnp.stack([first, second, jnp.cross(first, second)], axis=1)


def project_rotation(a: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Nearest rotation in Frobenius norm (orthogonal Procrustes, by an SVD).

    The derivative solves a Lyapunov equation with the stretch $r^T a$ and is finite
    where singular values repeat, to any order and in both modes. It is singular only
    where the nearest rotation is not unique.
    """
    _check_square("a", a)
    return _project_rotation(a)


@custom_jvp
def _project_rotation(a: Array) -> Array:
    u, _, vt = jnp.linalg.svd(a)
    sign = jnp.sign(jnp.linalg.det(u) * jnp.linalg.det(vt))
    u = jnp.concatenate([u[:, :-1], u[:, -1:] * sign], axis=1)
    return matmul(u, vt)


@_project_rotation.defjvp
def _project_rotation_jvp(primals, tangents):
    (a,), (da,) = primals, tangents
    r = _project_rotation(a)
    rt = transpose(r)
    b = matmul(rt, da)
    omega = lyapunov(symmetrise(matmul(rt, a)), b - transpose(b))
    return r, matmul(r, omega)


def _gaps(w: Array) -> tuple[Array, Array]:
    """Differences `w_i - w_j`, one in place of zero, and whether the two coincide."""
    gap = w[:, None] - w[None, :]
    scale = jnp.finfo(w.dtype).eps * (jnp.abs(w)[:, None] + jnp.abs(w)[None, :])
    same = jnp.abs(gap) <= scale
    return jnp.where(same, 1, gap), same


def _clip_slopes(w: Array, low: float, high: float) -> Array:
    """Divided differences of `clip` at all pairs of `w`; its derivative at equal
    ones."""
    clipped = jnp.clip(w, low, high)
    gap, same = _gaps(w)
    inside = ((low <= w) & (w <= high)).astype(w.dtype)
    slope = (clipped[:, None] - clipped[None, :]) / gap
    both = inside[:, None] * inside[None, :]
    # Exactly one where nothing is clipped: the map is then the identity.
    return jnp.where(both == 1, 1, jnp.where(same, both, slope))


@dataclasses.dataclass(frozen=True)
class _Eigh(Function):
    """Eigenvalues and the matrix of eigenvectors."""

    def value(self, s):
        return list(jnp.linalg.eigh(symmetrise(s)))

    def jvp(self, primals, tangents):
        (s,), (ds,) = primals, tangents
        w, v = self(s)
        inner = matmul(matmul(transpose(v), symmetrise(ds)), v)
        gap, same = _gaps(w)
        turn = jnp.where(same, 0, inner / -gap)
        return [w, v], [jnp.diagonal(inner), matmul(v, turn)]


def clip_spectrum(
    s: Float[Array, "n n"], low: float = -jnp.inf, high: float = jnp.inf
) -> Float[Array, "n n"]:
    """Symmetric matrix with its eigenvalues clipped to `[low, high]`.

    The derivative uses divided differences and is finite at repeated eigenvalues.
    Second derivatives are exact except where an eigenvalue is clipped while others
    coincide: there they are finite, with the term across the coinciding pair left out.
    """
    _check_square("s", s)
    return _Clip(low, high)(s)[0]


@dataclasses.dataclass(frozen=True)
class _Clip(Function):
    low: float
    high: float

    def value(self, s):
        low, high = self.low, self.high
        w, v = _Eigh()(s)
        clipped = matmul(v * jnp.clip(w, low, high)[None, :], transpose(v))
        # Untouched spectra pass through without the rounding of a decomposition.
        inside = jnp.all((low <= w) & (w <= high))
        return [jnp.where(inside, symmetrise(s), clipped)]

    def jvp(self, primals, tangents):
        (s,), (ds,) = primals, tangents
        w, v = _Eigh()(s)
        inner = matmul(matmul(transpose(v), symmetrise(ds)), v)
        slopes = _clip_slopes(w, self.low, self.high)
        return self(s), [matmul(matmul(v, inner * slopes), transpose(v))]


def spd_from_vech(
    v: Float[Array, " k"], low: float = -8.0, high: float = 8.0
) -> Float[Array, "n n"]:
    r"""Symmetric positive definite matrix from the lower triangle of its logarithm.

    **Arguments:**

    - `v`: lower triangle of a symmetric matrix, unscaled, order as in `vech`.
    - `low`, `high`: its eigenvalues are clipped to this interval.

    **Returns:**

    The matrix exponential, with eigenvalues in $[e^{low}, e^{high}]$. Derivatives are
    finite at repeated eigenvalues; second ones see the limits of `clip_spectrum`.
    """
    return expm_symmetric(clip_spectrum(unvech(v), low, high))

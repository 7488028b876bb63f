"""Rotations: the basis of so(n), closed-form exponential and logarithm."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._xla import custom_jvp
from ._matrix import combine, components, expm, matmul, matvec, transpose
from ._trigonometric import angle_over_sine, forward_only, stumpff


@ft.cache
def skew_basis(n: int) -> np.ndarray:
    """Basis of so(n), shape `(n (n-1)/2, n, n)`.

    For n = 3 the cross-product matrices `hat(e_a) w = e_a x w`; otherwise one matrix
    for each pair i < j in lexicographic order, +1 at (j, i) and -1 at (i, j).
    """
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    if n == 3:
        pairs = [(1, 2), (2, 0), (0, 1)]
    basis = np.zeros((len(pairs), n, n))
    for a, (i, j) in enumerate(pairs):
        basis[a, j, i], basis[a, i, j] = 1.0, -1.0
    return basis


def hat(n: int, u: Float[Array, " dim"]) -> Float[Array, "n n"]:
    """The skew matrix with coordinates `u` in `skew_basis(n)`."""
    if n == 3:
        a, b, c = u
        o = jnp.zeros_like(a)
        return jnp.stack([o, -c, b, c, o, -a, -b, a, o]).reshape(3, 3)
    return combine(skew_basis(n), u)


def vee(a: Float[Array, "n n"]) -> Float[Array, " dim"]:
    """Coordinates of the skew part of `a`."""
    if a.shape[-1] == 3:
        k = a - transpose(a)
        return jnp.stack([k[2, 1], k[0, 2], k[1, 0]]) / 2
    return components(skew_basis(a.shape[-1]), a) / 2


_rodrigues_factors = forward_only(lambda t: jnp.stack(stumpff(t[0])[1:3]))


def rodrigues(k: Float[Array, "n n"]) -> Float[Array, "n n"]:
    r"""Exponential of a 2x2 or 3x3 matrix with $k^3 = -t k$, $t = -\mathrm{tr}(k^2)/2$:
    elements of so(2), so(3), so(1,1) and so(2,1)."""
    k2 = matmul(k, k)
    c1, c2 = _rodrigues_factors(-jnp.trace(k2)[None] / 2)
    return jnp.eye(k.shape[-1], dtype=k.dtype) + c1 * k + c2 * k2


def exp_skew(k: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Rotation `exp(k)`: Rodrigues' formula up to n = 3, then scaling and squaring."""
    return rodrigues(k) if k.shape[-1] <= 3 else expm(k)


def exp_times(k: Float[Array, "n n"], y: Float[Array, " n"]) -> Float[Array, " n"]:
    """`exp(k) y` for a generator of rotations or boosts, closed form up to n = 3."""
    if k.shape[-1] > 3:
        return matvec(expm(k), y)
    v = matvec(k, y)
    _, c1, c2, *_ = stumpff(-jnp.sum(k * k.T) / 2)
    return y + c1 * v + c2 * matvec(k, v)


def feedback(y: Float[Array, "n n"]) -> Float[Array, "n n"]:
    r"""One Newton-Schulz step $y (3 - y^\top y)/2$ of the polar iteration.

    The identity on orthogonal matrices; a rounding error $e$ of orthogonality becomes
    $O(e^2)$ instead of being carried to the next step.
    """
    n = y.shape[-1]
    gram = matmul(transpose(y), y)
    return matmul(y, 1.5 * jnp.eye(n, dtype=y.dtype) - gram / 2)


def log_rotation_3(r: Float[Array, "3 3"]) -> Float[Array, " 3"]:
    """Rotation vector of a rotation of space, angle in [0, pi].

    Through the unit quaternion, read off the largest of four candidates (Shepperd), so
    that value and derivative are accurate up to angle pi, where the plain formula
    divides by sin(angle).
    """
    xx, yy, zz = r[0, 0], r[1, 1], r[2, 2]
    wx, wy, wz = r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]
    xy, xz, yz = r[0, 1] + r[1, 0], r[0, 2] + r[2, 0], r[1, 2] + r[2, 1]
    # Rows of 4 q q^T for q = (w, x, y, z).
    outer = jnp.stack(
        [
            jnp.stack([1 + xx + yy + zz, wx, wy, wz]),
            jnp.stack([wx, 1 + xx - yy - zz, xy, xz]),
            jnp.stack([wy, xy, 1 - xx + yy - zz, yz]),
            jnp.stack([wz, xz, yz, 1 - xx - yy + zz]),
        ]
    )
    diagonal = jnp.diagonal(outer)
    # A row is q times a positive or negative number; the angle ignores its length.
    # The first row wins ties, so that derivatives at the identity see one branch.
    chosen = jnp.arange(4) == jnp.argmax(diagonal)
    q = jnp.sum(jnp.where(chosen[:, None], outer, 0), axis=0)
    q = q / jnp.sqrt(jnp.sum(jnp.where(chosen, diagonal, 0)))
    q = jnp.where(q[0] < 0, -q, q)
    w, v = q[0], q[1:]
    return 2 * angle_over_sine(jnp.sum(v * v), w) * v


@custom_jvp
def log_rotation_n(r: Float[Array, "n n"]) -> Float[Array, " dim"]:
    r"""Coordinates of the principal logarithm of a rotation, any n.

    Cosine part $c = (r + r^\top)/2$ and sine part $s = (r - r^\top)/2$ commute, so that
    $\log r = f(c) s$ with $f(\cos\theta) = \theta/\sin\theta$. Needs angles away from
    pi. The derivative inverts that of the exponential.
    """
    c, s = (r + transpose(r)) / 2, (r - transpose(r)) / 2
    w, v = jnp.linalg.eigh(c)
    w = jnp.clip(w, -1, 1)
    ratio = jax.vmap(angle_over_sine)((1 - w) * (1 + w), w)
    return vee(matmul(matmul(v * ratio[None, :], transpose(v)), s))


@log_rotation_n.defjvp
def _log_rotation_n_jvp(primals, tangents):
    (r,), (dr,) = primals, tangents
    n = r.shape[-1]
    u = log_rotation_n(r)
    jacobian = jax.jacfwd(lambda x: vee(matmul(transpose(r), expm(hat(n, x)))))(u)
    return u, jnp.linalg.solve(jacobian, vee(matmul(transpose(r), dr)))


def log_rotation(r: Float[Array, "n n"]) -> Float[Array, " dim"]:
    """Coordinates in `skew_basis(n)` of the principal logarithm of a rotation."""
    n = r.shape[-1]
    if n == 2:
        return jnp.arctan2(r[1, 0] - r[0, 1], r[0, 0] + r[1, 1])[None]
    return log_rotation_3(r) if n == 3 else log_rotation_n(r)

"""Symmetric matrices as lower triangles, and their logarithms."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


FLOOR = 0.05  # below this eigenvalue the logarithm is continued by its tangent


def size_of(channels: int) -> int:
    """`n` of `n (n + 1) / 2` channels."""
    return round((2 * channels + 0.25) ** 0.5 - 0.5)


def places(n: int) -> np.ndarray:
    """Index of the lower triangle, read by rows, that holds each entry."""
    table = np.zeros((n, n), int)
    table[np.tril_indices(n)] = np.arange(n * (n + 1) // 2)
    return np.maximum(table, table.T)


def matrices(values: Float[np.ndarray, "*b k"]) -> Float[np.ndarray, "*b n n"]:
    """Symmetric matrices from lower triangles."""
    return values[..., places(size_of(values.shape[-1]))]


def triangles(x: Any) -> Any:
    """Lower triangles `(*batch, k)` of `(*batch, n, n)` by rows, in NumPy or JAX."""
    rows, columns = np.tril_indices(x.shape[-1])
    return x[..., rows, columns]


def identity_triangle(channels: int) -> np.ndarray:
    """Lower triangle of the identity."""
    return np.eye(size_of(channels))[np.tril_indices(size_of(channels))]


@jax.custom_jvp
def log_coordinates(values: Float[Array, "*batch k"]) -> Float[Array, "*batch k"]:
    """Lower triangle of the logarithm, from the lower triangle of a symmetric matrix.

    Eigenvalues below `FLOOR` get the tangent of the logarithm there: models that leave
    the cone get a finite value and a slope that leads back. Derivative by divided
    differences, finite where eigenvalues repeat.
    """
    return _apply(values)[0]


def _apply(values: Array) -> tuple[Array, tuple]:
    n = size_of(values.shape[-1])
    w, u = jnp.linalg.eigh(values[..., places(n)])
    inside = jnp.maximum(w, FLOOR)
    logs = jnp.log(inside) + (w - inside) / FLOOR
    out = jnp.einsum("...ik,...k,...jk->...ij", u, logs, u)
    return triangles(out), (w, u, logs, 1 / inside)


@log_coordinates.defjvp
def _log_coordinates_jvp(primals, tangents):
    (values,), (dots,) = primals, tangents
    out, (w, u, logs, slopes) = _apply(values)
    n = w.shape[-1]
    gap = w[..., :, None] - w[..., None, :]
    scale = jnp.abs(w)[..., :, None] + jnp.abs(w)[..., None, :]
    near = jnp.abs(gap) <= 1e-3 * scale
    ratio = (logs[..., :, None] - logs[..., None, :]) / jnp.where(near, 1, gap)
    # Where two eigenvalues are close, the mean slope is exact to second order.
    middle = (slopes[..., :, None] + slopes[..., None, :]) / 2
    ratio = jnp.where(near, middle, ratio)
    inner = jnp.einsum("...ki,...kl,...lj->...ij", u, dots[..., places(n)], u)
    moved = jnp.einsum("...ik,...kl,...jl->...ij", u, ratio * inner, u)
    return out, triangles(moved)

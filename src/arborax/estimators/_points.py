"""Series of points of a manifold."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..geometry import AbstractGeometry
from ..paths import SampledPath
from ._blocks import observed


@eqx.filter_jit
def _inside(geometry: AbstractGeometry, points: Array) -> Array:
    return jax.vmap(geometry.belongs)(points)


def belong(geometry: AbstractGeometry, points: np.ndarray) -> np.ndarray:
    """Which of the points `(n, *point)` are on the manifold. The number is filled up to
    a power of two, so that few programs are compiled."""
    count = len(points)
    rows = np.minimum(np.arange(1 << (count - 1).bit_length()), count - 1)
    return np.asarray(_inside(geometry, jnp.asarray(points[rows])))[:count]


def flat_points(X: Any, geometry: AbstractGeometry | None) -> Any:
    """Series of points, arrays `(n, times, *point)`, as series of numbers."""
    if geometry is None or isinstance(X, SampledPath):
        return X
    shape, X = geometry.point_shape, np.asarray(X)
    if X.ndim != 2 + len(shape) or X.shape[2:] != shape:
        raise ValueError(
            f"`X` must have shape (n, times, *{shape}), points of {geometry}, got "
            f"{X.shape}."
        )
    return X.reshape(*X.shape[:2], -1)


def check_points(path: SampledPath, geometry: AbstractGeometry | None) -> SampledPath:
    """Refuses series with an observed point off the manifold. A point is observed if
    all its numbers are."""
    if geometry is None:
        return path
    shape = geometry.point_shape
    if path.dim != np.prod(shape):
        raise ValueError(
            f"series of points of {geometry} have {np.prod(shape)} channels, got "
            f"{path.dim}."
        )
    whole = np.all(observed(path), axis=2)
    some = np.any(whole, axis=1)
    if not some.all():
        raise ValueError(
            f"series {int(np.argmin(some))} has no point of which all numbers "
            "are known. Drop it."
        )
    seen = np.argwhere(whole)
    inside = belong(geometry, np.asarray(path.xs)[whole].reshape(-1, *shape))
    if not inside.all():
        series, sample = seen[np.argmin(inside)]
        raise ValueError(
            f"series {series} at sample {sample} is not a point of {geometry}. Project "
            "it onto the manifold, or correct the data."
        )
    return path

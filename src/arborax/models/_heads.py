"""From unconstrained numbers to points: initial states and outputs."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..geometry import (
    AbstractGeometry,
    clip_spectrum,
    Euclidean,
    gram_schmidt_6d,
    Product,
    project_rotation,
    SO,
    SPD,
    spd_from_vech,
    Sphere,
    unvech,
)


_FLOOR = 1e-6  # least eigenvalue of a symmetric positive definite output


def raw_size(geometry: AbstractGeometry) -> int:
    """How many unconstrained numbers a head takes."""
    if isinstance(geometry, Product):
        return sum(raw_size(factor) for factor in geometry.factors)
    if isinstance(geometry, SO):
        return 6 if geometry.n == 3 else geometry.n**2
    if isinstance(geometry, SPD):
        return geometry.dim
    if isinstance(geometry, Euclidean | Sphere):
        return math.prod(geometry.point_shape)
    raise ValueError(
        f"there is no head for {geometry}; those with one are Euclidean, SO, SPD, "
        "Sphere and products of them."
    )


def _split(raw: Array, geometry: Product) -> list[Array]:
    cuts, at = [], 0
    for factor in geometry.factors:
        cuts.append(raw[at : at + raw_size(factor)])
        at += raw_size(factor)
    return cuts


def initial_point(
    geometry: AbstractGeometry, raw: Float[Array, " raw"]
) -> PyTree[Array]:
    """An initial state: Gram-Schmidt or Procrustes for rotations, the exponential of a
    symmetric matrix with eigenvalues in [-8, 8] for `SPD`."""
    if isinstance(geometry, Product):
        parts = zip(geometry.factors, _split(raw, geometry))
        return tuple(initial_point(factor, part) for factor, part in parts)
    if isinstance(geometry, SPD):
        return spd_from_vech(raw)
    return output_point(geometry, raw)


def output_point(
    geometry: AbstractGeometry, raw: Float[Array, " raw"]
) -> PyTree[Array]:
    """The projection of a readout to the manifold of the data; for `SPD` the matrix
    itself with its eigenvalues clipped below."""
    if isinstance(geometry, Product):
        parts = zip(geometry.factors, _split(raw, geometry))
        return tuple(output_point(factor, part) for factor, part in parts)
    if isinstance(geometry, SO):
        if geometry.n == 3:
            return gram_schmidt_6d(raw)
        return project_rotation(raw.reshape(geometry.n, geometry.n))
    if isinstance(geometry, SPD):
        return clip_spectrum(unvech(raw), _FLOOR)
    if isinstance(geometry, Sphere):
        return raw / jnp.sqrt(jnp.sum(raw**2) + jnp.finfo(raw.dtype).tiny)
    return raw


def as_output(output: int | AbstractGeometry) -> AbstractGeometry:
    """The manifold of the outputs; a number stands for Euclidean space."""
    return Euclidean(output) if isinstance(output, int) else output

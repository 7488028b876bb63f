"""Flat spaces."""

from ..geometry import AbstractGeometry, Euclidean


def is_flat(geometry: AbstractGeometry) -> bool:
    """Whether the frame is that of a flat space: constant, and parallel."""
    factors = getattr(geometry, "factors", None)
    if factors is not None:
        return all(is_flat(factor) for factor in factors)
    return isinstance(geometry, Euclidean)

"""Branched rough paths in JAX: signatures, log-ODEs on manifolds, kernels, models."""

from importlib.metadata import version as _version

from ._citation import citation as citation
from .algebra import (
    GrossmanLarson as GrossmanLarson,
    Ito as Ito,
    MuntheKaasWright as MuntheKaasWright,
    Shuffle as Shuffle,
)
from .geometry import (
    AbstractGeometry as AbstractGeometry,
    Euclidean as Euclidean,
    SO as SO,
    SPD as SPD,
    Sphere as Sphere,
)


__version__ = _version("arborax")

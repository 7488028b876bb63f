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
    gram_schmidt_6d as gram_schmidt_6d,
    Hyperbolic as Hyperbolic,
    Product as Product,
    project_rotation as project_rotation,
    SE as SE,
    SO as SO,
    SPD as SPD,
    spd_from_vech as spd_from_vech,
    Sphere as Sphere,
    unvech as unvech,
    vech as vech,
)


__version__ = _version("arborax")

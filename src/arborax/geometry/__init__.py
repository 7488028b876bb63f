"""State manifolds: frame, group action, exponential, connection.

One small file per manifold; `AbstractGeometry` is the interface. Nothing here knows of
signatures, lifts or solvers.
"""

from ._base import AbstractGeometry as AbstractGeometry
from ._euclidean import Euclidean as Euclidean
from ._hyperbolic import Hyperbolic as Hyperbolic
from ._matrix import (
    cholesky as cholesky,
    expm as expm,
    logm as logm,
    lyapunov as lyapunov,
    sqrtm as sqrtm,
)
from ._product import Product as Product
from ._se import SE as SE
from ._so import SO as SO
from ._spd import SPD as SPD
from ._sphere import Sphere as Sphere
from .heads import (
    clip_spectrum as clip_spectrum,
    gram_schmidt_6d as gram_schmidt_6d,
    project_rotation as project_rotation,
    spd_from_vech as spd_from_vech,
    unvech as unvech,
    vech as vech,
)

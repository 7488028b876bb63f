"""State manifolds: frame, group action, exponential, connection.

One small file per manifold; `AbstractGeometry` is the interface. Nothing here knows of
signatures, lifts or solvers.
"""

from ._base import AbstractGeometry as AbstractGeometry
from ._euclidean import Euclidean as Euclidean
from ._matrix import expm as expm, logm as logm, lyapunov as lyapunov, sqrtm as sqrtm
from ._so import SO as SO
from ._spd import SPD as SPD
from ._sphere import Sphere as Sphere

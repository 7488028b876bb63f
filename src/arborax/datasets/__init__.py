"""Laws of paths to learn: rough volatility and its small siblings, with a cache."""

from ._cache import cache_folder as cache_folder, dataset as dataset
from ._covariances import (
    covariance_windows as covariance_windows,
    CovarianceSeries as CovarianceSeries,
    emg_covariances as emg_covariances,
    ledoit_wolf as ledoit_wolf,
    rolling_covariances as rolling_covariances,
    stock_covariances as stock_covariances,
)
from ._gaussian import (
    OrnsteinUhlenbeck as OrnsteinUhlenbeck,
    RoughOrnsteinUhlenbeck as RoughOrnsteinUhlenbeck,
)
from ._law import AbstractLaw as AbstractLaw, PathData as PathData, Splits as Splits
from ._prices import (
    Bergomi as Bergomi,
    BlackScholes as BlackScholes,
    RoughBergomi as RoughBergomi,
)
from ._spd import SPDDiffusion as SPDDiffusion

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
from ._free_rotation import (
    FreeRotation as FreeRotation,
    Rotations as Rotations,
)
from ._law import AbstractLaw as AbstractLaw, PathData as PathData, Splits as Splits
from ._ornstein_uhlenbeck import OrnsteinUhlenbeck as OrnsteinUhlenbeck
from ._ppg_dalia import PPGDaLiA as PPGDaLiA, read_ppg_dalia as read_ppg_dalia
from ._rough_bergomi import RoughBergomi as RoughBergomi
from ._spd import SPDDiffusion as SPDDiffusion
from ._state_tracking import (
    TrackedWords as TrackedWords,
    VolatilityRegimes as VolatilityRegimes,
    WordProblem as WordProblem,
)
from ._time_series import (
    LabelledSeries as LabelledSeries,
    read_aeon as read_aeon,
    read_ts as read_ts,
)
from ._trajectories import (
    integrate_gyroscope as integrate_gyroscope,
    make_recording as make_recording,
    read_broad as read_broad,
    read_euroc as read_euroc,
    read_recordings as read_recordings,
    read_tum as read_tum,
    read_vicon as read_vicon,
    recorded_windows as recorded_windows,
    Recording as Recording,
    resample as resample,
)

"""Experiments `so-rotation` and `poses`: forecasts of orientations and of rigid
motions, from simulation to recordings."""

from .config import Config as Config
from .extrapolators import (
    AbstractExtrapolator as AbstractExtrapolator,
    ConstantVelocity as ConstantVelocity,
    Hermite as Hermite,
    Hold as Hold,
    Linear as Linear,
)
from .filter_bank import BODIES as BODIES, FilterBank as FilterBank
from .forecaster import (
    RotationForecaster as RotationForecaster,
    SavitzkyGolayNCDE as SavitzkyGolayNCDE,
)
from .learned_extrapolators import (
    MLPExtrapolator as MLPExtrapolator,
    SavitzkyGolay as SavitzkyGolay,
)
from .models import FRONTS as FRONTS, make_model as make_model
from .motions import broad_motion as broad_motion
from .poses import PoseTask as PoseTask
from .savitzky_golay import SavitzkyGolayRotation as SavitzkyGolayRotation
from .task import RotationTask as RotationTask
from .windows import (
    observe as observe,
    Observed as Observed,
    rotation_windows as rotation_windows,
    split_rotations as split_rotations,
)


TASKS = (RotationTask(), PoseTask())

"""Experiment `so-rotation`: forecast orientations, from simulation to recordings."""

from .candidates import Bundle as Bundle, ExtrapolatorBank as ExtrapolatorBank
from .config import Config as Config
from .correction import Correction as Correction, Torque as Torque
from .equation import RotationBNRDE as RotationBNRDE
from .extrapolators import (
    AbstractExtrapolator as AbstractExtrapolator,
    ConstantVelocity as ConstantVelocity,
    Hermite as Hermite,
    Hold as Hold,
    Linear as Linear,
)
from .forecaster import (
    RotationForecaster as RotationForecaster,
    SavitzkyGolayNCDE as SavitzkyGolayNCDE,
)
from .learned_extrapolators import (
    MLPExtrapolator as MLPExtrapolator,
    SavitzkyGolay as SavitzkyGolay,
)
from .mixture import RotationMixture as RotationMixture
from .models import EXTRAPOLATORS as EXTRAPOLATORS, make_model as make_model
from .motion_bank import MotionBank as MotionBank
from .savitzky_golay import SavitzkyGolayRotation as SavitzkyGolayRotation
from .statistics import rotation_statistics as rotation_statistics
from .task import RotationTask as RotationTask
from .windows import (
    observe as observe,
    Observed as Observed,
    rotation_windows as rotation_windows,
    split_rotations as split_rotations,
)


TASKS = (RotationTask(),)

"""Training: `fit` with checkpoints, logs and scale-out; `save` and `load`; metrics."""

from . import metrics as metrics, objectives as objectives, trackers as trackers
from ._checkpoints import Checkpoints as Checkpoints, FileCheckpoints as FileCheckpoints
from ._container import FileFormatError as FileFormatError
from ._distributed import (
    data_mesh as data_mesh,
    initialise_distributed as initialise_distributed,
)
from ._export import export as export
from ._fit import fit as fit
from ._optimisers import muon as muon
from ._orbax import OrbaxCheckpoints as OrbaxCheckpoints
from ._registry import register as register
from ._result import (
    Event as Event,
    FitResult as FitResult,
    History as History,
    Timings as Timings,
)
from ._saving import load as load, load_content as load_content, save as save
from ._step import first_nonfinite as first_nonfinite
from .trackers import (
    JSONL as JSONL,
    Progress as Progress,
    read_log as read_log,
    Tracker as Tracker,
)

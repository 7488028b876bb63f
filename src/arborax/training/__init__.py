"""Training: `fit` with checkpoints, logs and scale-out; `save` and `load`; metrics."""

from . import metrics as metrics, trackers as trackers
from .checkpoints import Checkpoints as Checkpoints, FileCheckpoints as FileCheckpoints
from .container import FileFormatError as FileFormatError
from .distributed import (
    data_mesh as data_mesh,
    initialise_distributed as initialise_distributed,
)
from .fitting import fit as fit
from .optimisers import adamw as adamw, muon as muon
from .orbax import OrbaxCheckpoints as OrbaxCheckpoints
from .progress import Progress as Progress
from .result import (
    Event as Event,
    FitResult as FitResult,
    History as History,
    Timings as Timings,
)
from .saving import load as load, read_header as read_header, save as save
from .trackers import JSONL as JSONL, read_log as read_log, Tracker as Tracker

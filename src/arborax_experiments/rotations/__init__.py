"""Experiment `so-rotation`: forecast orientations, from simulation to recordings."""

from ._config import Config as Config, load_config as load_config
from ._models import (
    EXTRAPOLATORS as EXTRAPOLATORS,
    make_model as make_model,
    MODELS as MODELS,
    REFERENCES as REFERENCES,
)
from ._report import report as report
from ._run import run as run
from ._table import table as table

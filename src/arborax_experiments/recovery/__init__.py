"""Experiment `recovery`: B-NRDE in the shuffle algebra is the log-NCDE."""

from ._config import Config as Config, load_config as load_config
from ._models import make_model as make_model, MODELS as MODELS
from ._report import report as report
from ._run import identity_gap as identity_gap, run as run
from ._table import table as table

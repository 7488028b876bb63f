"""Experiment `spd`: generate paths of covariance matrices."""

from ._config import Config as Config, load_config as load_config
from ._generator import (
    generate as generate,
    Generator as Generator,
    make_generator as make_generator,
    MODELS as MODELS,
)
from ._objectives import OBJECTIVES as OBJECTIVES
from ._report import report as report
from ._run import run as run
from ._scores import score as score
from ._table import table as table

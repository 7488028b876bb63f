"""Experiment `rough-bergomi`: generate log-prices under rough volatility."""

from .config import Config as Config
from .generator import Generator as Generator, make_generator as make_generator
from .objectives import OBJECTIVES as OBJECTIVES
from .task import RoughBergomiTask as RoughBergomiTask


TASKS = (RoughBergomiTask(),)

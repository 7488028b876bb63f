"""Experiment `spd`: generate paths of covariance matrices."""

from .config import Config as Config
from .generator import Generator as Generator, make_generator as make_generator
from .objectives import OBJECTIVES as OBJECTIVES
from .task import SPDTask as SPDTask


TASKS = (SPDTask(),)

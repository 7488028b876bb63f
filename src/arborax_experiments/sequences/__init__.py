"""Experiment `sequences`: classification of multivariate series."""

from .config import Config as Config
from .data import Parts as Parts, read_parts as read_parts
from .model import Classifier as Classifier, make_classifier as make_classifier
from .task import SequencesTask as SequencesTask


TASKS = (SequencesTask(),)

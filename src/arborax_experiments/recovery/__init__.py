"""Experiment `recovery`: B-NRDE in the shuffle algebra is the log-NCDE."""

from .config import Config as Config
from .data import loss_of as loss_of, read_series as read_series, Series as Series
from .task import PPGDaLiATask as PPGDaLiATask, RecoveryTask as RecoveryTask


TASKS = (RecoveryTask(), PPGDaLiATask())

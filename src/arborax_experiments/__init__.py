"""Experiments: configurations, runs, tables, reports, and the command line.

Each experiment is a package with `Config`, `load_config`, `MODELS`, `run`, `table` and
`report`; [`arborax.experiments.experiment`][] finds it by name. Needs the extras
`train`, `plots` (reports) and `cli` (the command `arborax`).
"""

from ._files import collect as collect
from ._registry import experiment as experiment, EXPERIMENTS as EXPERIMENTS

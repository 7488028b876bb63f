"""The commands and their arguments. Needs tyro."""

import dataclasses
import pathlib
import sys
from typing import Literal

import tyro

from . import _benchmarks, _experiments


Experiment = tyro.conf.Positional[str]
Preset = Literal["smoke", "quick", "paper"]
Setting = Literal["arborax", "paper"]
FOLDERS = (pathlib.Path("runs"), pathlib.Path("results"))


@dataclasses.dataclass(frozen=True)
class Run:
    """Train a model, score it and write the result."""

    experiment: Experiment
    """Which experiment; `arborax models` lists them."""
    model: str = "bnrde"
    """Which model, or `all`; `arborax models EXPERIMENT` lists them."""
    preset: Preset = "quick"
    """Size: seconds, minutes, as published."""
    setting: Setting = "arborax"
    """Our reading, or as published."""
    seed: tuple[int, ...] = (1,)
    """One or several."""
    set: tuple[str, ...] = ()
    """Other fields of the configuration, as `name=value`; see `arborax config`."""
    resume: bool = False
    """Continue runs that were stopped; finished ones are kept as they are."""
    folder: pathlib.Path = pathlib.Path("runs")
    """Where runs go."""
    cache: pathlib.Path | None = None
    """Where data are kept; default the cache folder of the platform."""


@dataclasses.dataclass(frozen=True)
class Table:
    """Print all results beside floors, references and published figures."""

    experiment: Experiment
    folders: tuple[pathlib.Path, ...] = FOLDERS


@dataclasses.dataclass(frozen=True)
class Report:
    """Write one HTML page with tables and figures."""

    experiment: Experiment
    folders: tuple[pathlib.Path, ...] = FOLDERS
    file: pathlib.Path | None = None
    """The page; default runs/EXPERIMENT/report.html."""


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Search for a better configuration with Optuna, by the validation metric."""

    experiment: Experiment
    model: str = "bnrde"
    preset: Preset = "quick"
    setting: Setting = "arborax"
    seed: int = 1
    trials: int = 20
    """How many in total; call again to go on with a study."""
    space: tuple[str, ...] = ()
    """What is searched: `name=LOW:HIGH`, `name=LOW:HIGH:log` or `name=A,B,C`."""
    set: tuple[str, ...] = ()
    """Fields with another value in all trials, as `name=value`."""
    folder: pathlib.Path = pathlib.Path("runs")
    cache: pathlib.Path | None = None


@dataclasses.dataclass(frozen=True)
class Bench:
    """Run the benchmarks of a checkout."""

    names: tyro.conf.Positional[tuple[str, ...]] = ()
    """Which ones; default all."""


@dataclasses.dataclass(frozen=True)
class Config:
    """Print the configuration of a setting and preset."""

    experiment: Experiment
    preset: Preset = "quick"
    setting: Setting = "arborax"


@dataclasses.dataclass(frozen=True)
class Models:
    """List the models of an experiment, or the experiments."""

    experiment: Experiment = ""


ACTIONS = {
    Run: _experiments.run,
    Table: _experiments.table,
    Report: _experiments.report,
    Sweep: _experiments.sweep,
    Bench: _benchmarks.bench,
    Config: _experiments.config,
    Models: _experiments.models,
}


def main(arguments: list[str] | None = None) -> None:
    """Parses the command line and runs the command."""
    kinds = {kind.__name__.lower(): kind for kind in ACTIONS}
    command = tyro.extras.subcommand_cli_from_dict(
        kinds, prog="arborax", args=arguments
    )
    try:
        ACTIONS[type(command)](command)
    except (ImportError, FileNotFoundError) as error:
        # A package or a folder of data is missing: the message says which, and how to
        # get it.
        sys.exit(str(error))

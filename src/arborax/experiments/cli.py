"""The command `arborax`. Needs tyro: import it through `_entry`."""

import dataclasses
import pathlib
import sys
from typing import Literal

import tyro

from ._config import load_config
from ._report import report
from ._run import run
from ._table import collect, table


Experiment = tyro.conf.Positional[Literal["rough-bergomi"]]
Model = Literal[
    "bnrde",
    "bnrde-bk",
    "log-ncde",
    "nrde",
    "ncde",
    "ncde++",
    "gru",
    "xlstm",
    "stacked-xlstm",
]


@dataclasses.dataclass(frozen=True)
class Run:
    """Train a model, score it and write the result."""

    experiment: Experiment
    model: Model = "bnrde"
    """Which model; bnrde-bk is bnrde fine-tuned with brackets."""
    preset: Literal["smoke", "quick", "paper"] = "quick"
    """Size: seconds, minutes, as published."""
    setting: Literal["arborax", "paper"] = "arborax"
    """Our reading, or as published."""
    seed: int = 1
    hurst: float | None = None
    """Roughness of the data, if not that of the setting."""
    resume: bool = False
    """Continue a run that was stopped."""
    folder: pathlib.Path = pathlib.Path("runs")
    """Where runs go."""
    cache: pathlib.Path | None = None
    """Where data are kept; default the cache folder of the platform."""


@dataclasses.dataclass(frozen=True)
class Table:
    """Print all results beside floors, references and published figures."""

    experiment: Experiment
    folders: tuple[pathlib.Path, ...] = (pathlib.Path("runs"), pathlib.Path("results"))


@dataclasses.dataclass(frozen=True)
class Report:
    """Write one HTML page with tables and figures."""

    experiment: Experiment
    folders: tuple[pathlib.Path, ...] = (pathlib.Path("runs"), pathlib.Path("results"))
    file: pathlib.Path | None = None
    """The page; default runs/EXPERIMENT/report.html."""


@dataclasses.dataclass(frozen=True)
class Config:
    """Print the configuration of a setting and preset."""

    experiment: Experiment
    preset: Literal["smoke", "quick", "paper"] = "quick"
    setting: Literal["arborax", "paper"] = "arborax"


def main(arguments: list[str] | None = None) -> None:
    """Parses the command line and does what it says."""
    commands = {kind.__name__.lower(): kind for kind in (Run, Table, Report, Config)}
    _dispatch(
        tyro.extras.subcommand_cli_from_dict(commands, prog="arborax", args=arguments)
    )


def _dispatch(command: Run | Table | Report | Config) -> None:
    if isinstance(command, Run):
        options = {k: v for k, v in dataclasses.asdict(command).items() if k != "hurst"}
        changes = {} if command.hurst is None else {"hurst": command.hurst}
        result = run(**options, changes=changes)
        print(table([result]))
        print(f"\nwritten to {result['folder']}")
    elif isinstance(command, Table):
        print(table(collect(command.experiment, command.folders)))
    elif isinstance(command, Report):
        results = collect(command.experiment, command.folders)
        if not results:
            sys.exit("no results yet; make one with `arborax run`.")
        file = command.file or pathlib.Path("runs") / command.experiment / "report.html"
        print(report(results, file, command.experiment))
    else:
        config = load_config(command.experiment, command.setting, command.preset)
        for name, value in dataclasses.asdict(config).items():
            print(f"{name} = {value!r}")

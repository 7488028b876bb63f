"""The commands and their arguments. Needs tyro."""

import dataclasses
import importlib
import pathlib
import sys
import warnings
from collections.abc import Callable
from typing import Any, Literal

import tyro

from . import _benchmarks, _experiments


Experiment = tyro.conf.Positional[str]
Preset = Literal["smoke", "quick", "paper"]
Setting = Literal["arborax", "paper", "volterra"]
FOLDERS = (pathlib.Path("runs"), pathlib.Path("results"))


@dataclasses.dataclass(frozen=True)
class Run:
    """Train a model, score it and write the result."""

    experiment: Experiment
    """Which experiment; `arborax models` lists them."""
    model: tuple[str, ...] = ("bnrde",)
    """One model or several, or `all`; `arborax models EXPERIMENT` lists them."""
    preset: Preset = "quick"
    """How large: seconds, minutes, or as published."""
    setting: Setting = "arborax"
    """Our version, or as published."""
    seed: tuple[int, ...] = (1,)
    """One seed or several."""
    set: tuple[str, ...] = ()
    """Other fields of the configuration, as `name=value`; see `arborax config`."""
    resume: bool = False
    """Continue runs that were stopped; finished ones are kept as they are."""
    folder: pathlib.Path = pathlib.Path("runs")
    """Folder for the runs."""
    cache: pathlib.Path | None = None
    """Folder for data; by default the cache folder of the platform."""


@dataclasses.dataclass(frozen=True)
class Table:
    """Print all results with floors, references and published figures."""

    experiment: Experiment
    folders: tuple[pathlib.Path, ...] = FOLDERS


@dataclasses.dataclass(frozen=True)
class Report:
    """Write one HTML page with tables and figures."""

    experiment: Experiment = ""
    """Which experiment; by default one page for each that has results."""
    folders: tuple[pathlib.Path, ...] = FOLDERS
    file: pathlib.Path | None = None
    """The page; by default runs/EXPERIMENT/report.html."""


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Search for a better configuration with Optuna, by the validation metric."""

    experiment: Experiment
    model: str = "bnrde"
    preset: Preset = "quick"
    setting: Setting = "arborax"
    seed: int = 1
    trials: int = 20
    """Number of trials in total; call again to continue a study."""
    space: tuple[str, ...] = ()
    """What to search: `name=LOW:HIGH`, `name=LOW:HIGH:log` or `name=A,B,C`."""
    set: tuple[str, ...] = ()
    """Fields to change in all trials, as `name=value`."""
    folder: pathlib.Path = pathlib.Path("runs")
    cache: pathlib.Path | None = None


@dataclasses.dataclass(frozen=True)
class Bench:
    """Time a device, or run the benchmarks of a checkout."""

    names: tyro.conf.Positional[tuple[str, ...]] = ()
    """Which benchmarks, by default all. With `--device`: parts of cell names."""
    device: Literal["cpu", "gpu", "tpu"] | None = None
    """Time signatures, kernels, log-ODEs and training steps on this device."""
    out: pathlib.Path | None = None
    """File for the times, by default arborax-DEVICE.json; a page goes next to it."""
    show: tuple[pathlib.Path, ...] = ()
    """Only compare these files on one page, by default arborax-bench.html."""
    seconds: float = 1.0
    """How long to repeat each cell."""


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


File = tyro.conf.Positional[pathlib.Path]
Unit = Literal["ms", "s", "min", "h", "D"]


@dataclasses.dataclass(frozen=True)
class Fit:
    """Train a model on your own data; write it and a report."""

    file: File
    """One row per time: .csv, .parquet, or .npz with `x` (n, times, channels)."""
    task: Literal["generate", "classify", "regress", "forecast"]
    """What to learn."""
    time: str | None = None
    """Column of times (numbers or dates); by default the row number."""
    group: str | None = None
    """Column that says which path a row belongs to; by default there is one path."""
    target: str | None = None
    """Column of classes or numbers, one value per group."""
    channels: tuple[str, ...] = ()
    """Columns of numbers; by default all others."""
    unit: Unit = "s"
    """Unit of time, for dates."""
    horizon: int = 1
    """Forecast: number of rows ahead."""
    prefix: int = 0
    """Generate: the longest beginning that samples can be conditioned on."""
    model: str = "bnrde"
    """Sequence model, by its name in `abx.estimators`."""
    preset: Preset = "quick"
    """Length of the training: 20, 500 or 5000 steps."""
    steps: int | None = None
    """Any other number of steps."""
    batch_size: int | None = None
    learning_rate: float | None = None
    seed: int = 0
    out: pathlib.Path = pathlib.Path("model.abx")
    """File for the model."""
    report: pathlib.Path | None = None
    """File for the report; by default the name of the model with .html."""
    resume: bool = False
    """Continue a run that was stopped."""
    dry_run: bool = False
    """Only show how the data were read."""
    progress: bool = True


@dataclasses.dataclass(frozen=True)
class Predict:
    """Write the predictions of a fitted model for each group of a file."""

    model: File
    """Written by `arborax fit`."""
    file: File
    """A file with the columns of the training data."""
    out: pathlib.Path = pathlib.Path("predictions.csv")
    dry_run: bool = False
    """Only show how the data were read."""


@dataclasses.dataclass(frozen=True)
class Sample:
    """Draw paths from a generator."""

    model: File
    """Written by `arborax fit --task generate`."""
    count: int = 100
    """Number of paths, for each beginning if there are any."""
    times: tuple[float, ...] = ()
    """Times, if not those of the training data."""
    given: pathlib.Path | None = None
    """File with beginnings, two rows or more for each group, that paths continue."""
    seed: int = 0
    out: pathlib.Path = pathlib.Path("samples.csv")


@dataclasses.dataclass(frozen=True)
class Features:
    """Write signature features of each group; files of any size, constant memory."""

    file: File
    """.csv or .parquet with the rows of a group together, or .npz."""
    time: str | None = None
    group: str | None = None
    channels: tuple[str, ...] = ()
    unit: Unit = "s"
    alg: Literal["ito", "shuffle", "grossman-larson", "munthe-kaas-wright"] = "ito"
    depth: int = 2
    log: bool = True
    """Log-signatures rather than signatures."""
    window: int | None = None
    """Steps per window; by default there is one window."""
    standardise: bool = True
    model: pathlib.Path | None = None
    """Take scaling and all options from a file written by `--save`."""
    save: pathlib.Path | None = None
    """Save scaling and options for other files."""
    rows: int = 200_000
    """Rows to read at a time. Groups are not split; a file without groups is one."""
    out: pathlib.Path = pathlib.Path("features.parquet")
    dry_run: bool = False
    """Only show how the data were read."""
    progress: bool = True


@dataclasses.dataclass(frozen=True)
class Compare:
    """Test whether the paths of two files have the same law, and draw a picture."""

    first: File
    second: File
    time: str | None = None
    group: str | None = None
    channels: tuple[str, ...] = ()
    unit: Unit = "s"
    kind: Literal["geometric", "ito"] = "ito"
    """Kind of the signature kernel."""
    level: bool = False
    """Whether the values at the start count too."""
    count: int = 200
    """At most this many paths from each file, drawn at random."""
    permutations: int = 500
    seed: int = 0
    report: pathlib.Path = pathlib.Path("comparison.html")
    dry_run: bool = False
    """Only show how the data were read."""
    file: tyro.conf.Suppress[pathlib.Path] = pathlib.Path()


def _own_data(name: str) -> Callable[[Any], None]:
    """A command for own data; its packages are imported when it is used. Errors in the
    data are printed in a sentence, without a traceback."""

    def action(command: Any) -> None:
        room = importlib.import_module("arborax.cli._own_data")
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            try:
                getattr(room, name)(command)
            except (ValueError, TypeError, OSError) as error:
                sys.exit(str(error))

    return action


def _warn(message: Any, *_: Any, **__: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)


ACTIONS = {
    Fit: _own_data("fit"),
    Predict: _own_data("predict"),
    Sample: _own_data("sample"),
    Features: _own_data("features"),
    Compare: _own_data("compare"),
    Run: _experiments.run,
    Table: _experiments.table,
    Report: _experiments.report,
    Sweep: _experiments.sweep,
    Bench: _benchmarks.bench,
    Config: _experiments.config,
    Models: _experiments.models,
}


def parse(arguments: list[str] | None = None) -> Any:
    """The command that a command line names, with its arguments."""
    kinds = {kind.__name__.lower(): kind for kind in ACTIONS}
    return tyro.extras.subcommand_cli_from_dict(kinds, prog="arborax", args=arguments)


def main(arguments: list[str] | None = None) -> None:
    """Parses the command line and runs the command."""
    command = parse(arguments)
    try:
        ACTIONS[type(command)](command)
    except (ImportError, FileNotFoundError) as error:
        # The message says which package or folder is missing, and how to get it.
        sys.exit(str(error))

"""The command `arborax`. Needs tyro: import it through `_entry`."""

import dataclasses
import pathlib
import sys
from typing import Any, Literal

import tyro

from ._bench import bench
from ._files import collect
from ._registry import experiment
from ._sweep import parse_range, sweep


Experiment = tyro.conf.Positional[
    Literal["rough-bergomi", "so-rotation", "recovery", "ppg-dalia", "spd"]
]
Folders = tuple[pathlib.Path, ...]
FOLDERS = (pathlib.Path("runs"), pathlib.Path("results"))


@dataclasses.dataclass(frozen=True)
class Run:
    """Train a model, score it and write the result."""

    experiment: Experiment
    model: str = "bnrde"
    """Which model, or `all`; `arborax models EXPERIMENT` lists them."""
    preset: Literal["smoke", "quick", "paper"] = "quick"
    """Size: seconds, minutes, as published."""
    setting: Literal["arborax", "paper"] = "arborax"
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
    folders: Folders = FOLDERS


@dataclasses.dataclass(frozen=True)
class Report:
    """Write one HTML page with tables and figures."""

    experiment: Experiment
    folders: Folders = FOLDERS
    file: pathlib.Path | None = None
    """The page; default runs/EXPERIMENT/report.html."""


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Search for a better configuration with Optuna, by the validation metric."""

    experiment: Experiment
    model: str = "bnrde"
    preset: Literal["smoke", "quick", "paper"] = "quick"
    setting: Literal["arborax", "paper"] = "arborax"
    seed: int = 1
    trials: int = 20
    """How many there shall be in the end; call again to go on with a study."""
    space: tuple[str, ...] = ()
    """What is searched: `name=LOW:HIGH`, `name=LOW:HIGH:log` or `name=A,B,C`."""
    set: tuple[str, ...] = ()
    """Fields that are set otherwise in all trials, as `name=value`."""
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
    preset: Literal["smoke", "quick", "paper"] = "quick"
    setting: Literal["arborax", "paper"] = "arborax"


@dataclasses.dataclass(frozen=True)
class Models:
    """List the models of an experiment."""

    experiment: Experiment


def main(arguments: list[str] | None = None) -> None:
    """Parses the command line and does what it says."""
    kinds = (Run, Table, Report, Sweep, Bench, Config, Models)
    commands = {kind.__name__.lower(): kind for kind in kinds}
    command = tyro.extras.subcommand_cli_from_dict(
        commands, prog="arborax", args=arguments
    )
    actions = {
        Run: _run,
        Table: _table,
        Report: _report,
        Sweep: _sweep,
        Bench: lambda given: sys.exit(bench(given.names)),
        Config: _config,
        Models: lambda given: print("\n".join(experiment(given.experiment).MODELS)),
    }
    actions[type(command)](command)


def _check_model(package: Any, name: str) -> None:
    if name not in package.MODELS:
        sys.exit(f"unknown model {name!r}; known: {', '.join(package.MODELS)}")


def _changes(package: Any, texts: tuple[str, ...]) -> dict[str, Any]:
    fields = {f.name: f for f in dataclasses.fields(package.Config)}
    return dict(_assignment(text, fields) for text in texts)


def _run(command: Run) -> None:
    package = experiment(command.experiment)
    names = list(package.MODELS) if command.model == "all" else [command.model]
    for name in names:
        _check_model(package, name)
    changes = _changes(package, command.set)
    results = []
    for name in names:
        for seed in command.seed:
            try:
                result = package.run(
                    command.experiment,
                    model=name,
                    preset=command.preset,
                    setting=command.setting,
                    seed=seed,
                    resume=command.resume,
                    folder=command.folder,
                    cache=command.cache,
                    changes=changes,
                )
            except (ImportError, FileNotFoundError) as error:
                # A package or a folder of data is missing: the message says which, and
                # how to get it.
                sys.exit(str(error))
            results.append(result)
            print(f"\nwritten to {result['folder']}", flush=True)
    print(package.table(results))


def _sweep(command: Sweep) -> None:
    package = experiment(command.experiment)
    _check_model(package, command.model)
    defaults = {f.name: f.default for f in dataclasses.fields(package.Config)}
    space = {}
    for text in command.space:
        name, separator, values = text.partition("=")
        if not separator or name not in defaults:
            sys.exit(f"--space takes name=LOW:HIGH or name=A,B,C, got {text}")
        try:
            space[name] = parse_range(values, defaults[name])
        except ValueError as error:
            sys.exit(f"--space {text}: {error}")
    try:
        study = sweep(
            command.experiment,
            model=command.model,
            preset=command.preset,
            setting=command.setting,
            seed=command.seed,
            trials=command.trials,
            space=space or None,
            changes=_changes(package, command.set),
            folder=command.folder,
            cache=command.cache,
        )
    except (ImportError, FileNotFoundError) as error:
        sys.exit(str(error))
    done = [trial for trial in study.trials if trial.value is not None]
    for trial in sorted(done, key=lambda trial: trial.value):
        print(f"{trial.value:.6g}  {trial.params}  {trial.user_attrs['folder']}")


def _assignment(text: str, fields: dict[str, Any]) -> tuple[str, Any]:
    """`hurst=0.1` as a name and a value of the type the field's default has."""
    name, separator, value = text.partition("=")
    if not separator or name not in fields:
        sys.exit(f"--set takes name=value with a name of {sorted(fields)}, got {text}")
    default = fields[name].default
    try:
        if isinstance(default, bool):
            return name, {"true": True, "false": False}[value.lower()]
        if isinstance(default, tuple):
            return name, tuple(type(default[0])(v) for v in value.split(","))
        return name, value if default is None else type(default)(value)
    except (KeyError, ValueError):
        sys.exit(f"--set {text}: expected a value like {default!r}")


def _results(command: Table | Report) -> list[dict[str, Any]]:
    results = collect(command.experiment, command.folders)
    if not results:
        sys.exit(f"no results yet; make one with `arborax run {command.experiment}`.")
    return results


def _table(command: Table) -> None:
    print(experiment(command.experiment).table(_results(command)))


def _report(command: Report) -> None:
    file = command.file or pathlib.Path("runs") / command.experiment / "report.html"
    package = experiment(command.experiment)
    print(package.report(_results(command), file, command.experiment))


def _config(command: Config) -> None:
    load = experiment(command.experiment).load_config
    config = load(command.experiment, command.setting, command.preset)
    for name, value in dataclasses.asdict(config).items():
        print(f"{name} = {value!r}")

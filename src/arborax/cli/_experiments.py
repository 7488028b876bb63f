"""The commands of the laboratory, which is imported when one of them is used."""

import dataclasses
import importlib
import pathlib
import sys
from typing import Any


def _laboratory() -> Any:
    """The package `arborax_experiments`, which the library does not depend on."""
    try:
        return importlib.import_module("arborax_experiments")
    except ModuleNotFoundError as error:
        sys.exit(
            f"{error}. The experiments are the package `arborax_experiments`; it comes "
            "with arborax and its extras: pip install 'arborax[cli,plots,train]'"
        )


def _task(name: str) -> Any:
    try:
        return _laboratory().find_task(name)
    except ValueError as error:
        sys.exit(str(error))


def run(command: Any) -> None:
    """Runs of some models or all, one seed or several, and their table."""
    laboratory, task = _laboratory(), _task(command.experiment)
    names = list(task.models) if command.model == ("all",) else command.model
    for name in names:
        _check_model(task, name)
    results = []
    for name in names:
        for seed in command.seed:
            result = laboratory.run(
                task,
                model=name,
                preset=command.preset,
                setting=command.setting,
                seed=seed,
                resume=command.resume,
                folder=command.folder,
                cache=command.cache,
                changes=_changes(task, command.set, seed),
            )
            results.append(result)
            print(f"\nwritten to {result['folder']}", flush=True)
    print(laboratory.table(task, results))


def sweep(command: Any) -> None:
    """A search; prints its trials, the best one first."""
    laboratory, task = _laboratory(), _task(command.experiment)
    _check_model(task, command.model)
    defaults = {f.name: f.default for f in dataclasses.fields(task.config)}
    space = {}
    for text in command.space:
        name, separator, values = text.partition("=")
        if not separator or name not in defaults:
            sys.exit(f"--space takes name=LOW:HIGH or name=A,B,C, got {text}")
        try:
            space[name] = laboratory.parse_range(values, defaults[name])
        except ValueError as error:
            sys.exit(f"--space {text}: {error}")
    study = laboratory.sweep(
        task,
        model=command.model,
        preset=command.preset,
        setting=command.setting,
        seed=command.seed,
        trials=command.trials,
        space=space or None,
        changes=_changes(task, command.set, command.seed),
        folder=command.folder,
        cache=command.cache,
    )
    done = [trial for trial in study.trials if trial.value is not None]
    for trial in sorted(done, key=lambda trial: trial.value):
        print(f"{trial.value:.6g}  {trial.params}  {trial.user_attrs['folder']}")


def table(command: Any) -> None:
    """All results as text."""
    task = _task(command.experiment)
    print(_laboratory().table(task, _results(command)))


def report(command: Any) -> None:
    """One page of all results, or one for each experiment and one of stored times."""
    laboratory = _laboratory()
    if command.experiment:
        _task(command.experiment)
        pages = {command.experiment: _results(command)}
    else:
        if command.file:
            sys.exit("--file is one page: name its experiment, or leave out --file.")
        found = {n: laboratory.collect(n, command.folders) for n in laboratory.tasks()}
        pages = {name: results for name, results in found.items() if results}
    for name, results in pages.items():
        file = command.file or pathlib.Path("runs") / name / "report.html"
        print(laboratory.report(_task(name), results, file), flush=True)
    if not command.experiment:
        file = pathlib.Path("runs") / "timing" / "report.html"
        if page := laboratory.timing_report(command.folders, file):
            print(page, flush=True)


def config(command: Any) -> None:
    """The fields of a configuration."""
    found = _task(command.experiment).configure(command.setting, command.preset)
    for name, value in dataclasses.asdict(found).items():
        print(f"{name} = {value!r}")


def models(command: Any) -> None:
    """Names of models, or of experiments."""
    if command.experiment:
        print("\n".join(_task(command.experiment).models))
    else:
        print("\n".join(_laboratory().tasks()))


def _results(command: Any) -> list[dict[str, Any]]:
    results = _laboratory().collect(command.experiment, command.folders)
    if not results:
        sys.exit(f"no results yet; make one with `arborax run {command.experiment}`.")
    return results


def _check_model(task: Any, name: str) -> None:
    if name not in task.models:
        sys.exit(f"unknown model {name!r}; known: {', '.join(task.models)}")


def _changes(task: Any, texts: tuple[str, ...], seed: int) -> dict[str, Any]:
    fields = {f.name: f for f in dataclasses.fields(task.config)}
    return dict(_assignment(text, fields, seed) for text in texts)


def _assignment(text: str, fields: dict[str, Any], seed: int) -> tuple[str, Any]:
    """`hurst=0.1` as a name and a value of the type of the field's default. The word
    `seed` is the seed of the run where a whole number is expected: `split=seed`."""
    name, separator, value = text.partition("=")
    if not separator or name not in fields:
        sys.exit(f"--set takes name=value with a name of {sorted(fields)}, got {text}")
    default = fields[name].default
    try:
        if isinstance(default, bool):
            return name, {"true": True, "false": False}[value.lower()]
        if isinstance(default, tuple):
            return name, tuple(type(default[0])(v) for v in value.split(","))
        if type(default) is int and value == "seed":
            return name, seed
        return name, value if default is None else type(default)(value)
    except (KeyError, ValueError):
        sys.exit(f"--set {text}: expected a value like {default!r}")

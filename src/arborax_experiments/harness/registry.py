"""Tasks by name: every package beside this one may list some."""

import importlib
import pkgutil

import arborax_experiments

from .task import AbstractTask


def tasks() -> dict[str, AbstractTask]:
    """All tasks, found as `TASKS` in the packages of `arborax_experiments`."""
    found = {}
    for module in pkgutil.iter_modules(arborax_experiments.__path__):
        if module.ispkg:
            package = importlib.import_module(f"arborax_experiments.{module.name}")
            found.update({task.name: task for task in getattr(package, "TASKS", ())})
    return found


def find_task(name: str) -> AbstractTask:
    """The task of a name, for instance `"rough-bergomi"`."""
    known = tasks()
    if name not in known:
        raise ValueError(f"no experiment {name!r}; there are {sorted(known)}.")
    return known[name]

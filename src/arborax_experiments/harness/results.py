"""What runs leave behind: result files, and the machine they were made on."""

import dataclasses
import json
import os
import pathlib
import platform
from collections.abc import Iterable
from typing import Any

import jax

from ..training import FitResult


IDENTITY = ("setting", "preset", "model", "seed")


def write_json(path: pathlib.Path, content: Any) -> None:
    """Writes beside the file, then renames: a reader sees the old or the new one."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    os.replace(temporary, path)


def read_result(folder: pathlib.Path) -> dict[str, Any]:
    """The result of a finished run, with the folder it is in."""
    text = (folder / "result.json").read_text(encoding="utf-8")
    return {**json.loads(text), "folder": str(folder)}


def collect(
    experiment: str, folders: Iterable[str | os.PathLike] = ("runs", "results")
) -> list[dict[str, Any]]:
    """All results of an experiment under some folders, one of each run.

    A run in an earlier folder hides the same run in a later one.
    """
    found: dict[tuple, dict[str, Any]] = {}
    for folder in folders:
        for file in sorted((pathlib.Path(folder) / experiment).rglob("*.json")):
            result = json.loads(file.read_text(encoding="utf-8"))
            changes = json.dumps(result.get("changes", {}), sort_keys=True)
            identity = (*(result[name] for name in IDENTITY), changes)
            found.setdefault(identity, {**result, "folder": str(file.parent)})
    return [found[identity] for identity in sorted(found)]


def run_name(
    setting: str, preset: str, model: str, seed: int, changes: dict[str, Any]
) -> str:
    """The folder of a run; two runs that differ in any way have different ones."""
    extra = "".join(f"-{name}={value}" for name, value in sorted(changes.items()))
    return f"{setting}-{preset}-{model}{extra}-{seed}"


def set_arguments(changes: dict[str, Any]) -> str:
    """Changes of a configuration as the command line takes them."""
    texts = [
        f"{name}={','.join(map(str, v)) if isinstance(v, list | tuple) else v}"
        for name, v in changes.items()
    ]
    return " --set " + " ".join(texts) if texts else ""


def machine() -> dict[str, Any]:
    """What the run was made on, without names."""
    return {
        "cpu_count": os.cpu_count(),
        "architecture": platform.machine(),
        "backend": jax.default_backend(),
        "python": platform.python_version(),
        "jax": jax.__version__,
    }


def stage_record(objective: str, fitted: FitResult, every: int = 1) -> dict[str, Any]:
    """What a result keeps of one stage of training; the loss of `every` few steps."""
    return {
        "objective": objective,
        "steps": fitted.steps,
        "best_step": fitted.best_step,
        "best_metric": fitted.best_metric,
        "stop": fitted.stop,
        "message": fitted.message,
        "seconds": dataclasses.asdict(fitted.timings),
        "loss": [float(f"{v:.6g}") for v in fitted.history.loss[::every]],
        "validation": fitted.history.validation,
    }

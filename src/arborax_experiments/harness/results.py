"""The files of runs: one folder per run, and the results found under some folders."""

import dataclasses
import datetime
import functools as ft
import json
import os
import pathlib
import platform
import shlex
import subprocess
from collections.abc import Iterable
from typing import Any

import jax


IDENTITY = ("setting", "preset", "model", "seed")


def write_json(path: pathlib.Path, content: Any) -> None:
    """Writes beside the file, then renames: a reader sees the old or the new one."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    os.replace(temporary, path)


def collect(
    experiment: str, folders: Iterable[str | os.PathLike] = ("runs", "results")
) -> list[dict[str, Any]]:
    """All results of an experiment under some folders, one of each run.

    A run in an earlier folder hides the same run in a later one. The files of a run are
    beside `result.json`; those of a stored `NAME.json` in the folder `NAME` beside it.
    """
    found: dict[tuple, dict[str, Any]] = {}
    for folder in folders:
        for file in sorted((pathlib.Path(folder) / experiment).rglob("*.json")):
            result = json.loads(file.read_text(encoding="utf-8"))
            changes = json.dumps(result.get("changes", {}), sort_keys=True)
            identity = (*(result[name] for name in IDENTITY), changes)
            own = file.with_suffix("")
            place = own if own.is_dir() else file.parent
            found.setdefault(identity, {**result, "folder": str(place)})
    return [found[identity] for identity in sorted(found)]


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """The identity of one run, and its folder.

    **Fields:**

    - `experiment`, `setting`, `preset`, `model`, `seed`: as `arborax run` takes them.
    - `changes`: fields of the configuration with other values.
    - `root`: the folder of all runs.
    - `private`: fields that name folders of the user; they are in no file.
    """

    experiment: str
    setting: str
    preset: str
    model: str
    seed: int
    changes: dict[str, Any]
    root: str | os.PathLike
    private: tuple[str, ...] = ()

    @property
    def shown(self) -> dict[str, Any]:
        """The changes without private ones."""
        return {k: v for k, v in self.changes.items() if k not in self.private}

    @property
    def path(self) -> pathlib.Path:
        """`ROOT/EXPERIMENT/SETTING-PRESET-MODEL-CHANGES-SEED`: two runs that differ in
        any way have different folders."""
        extra = "".join(f"-{k}={v}" for k, v in sorted(self.shown.items()))
        name = f"{self.setting}-{self.preset}-{self.model}{extra}-{self.seed}"
        return pathlib.Path(self.root) / self.experiment / name

    @property
    def command(self) -> str:
        """The command line of the run, with private folders left to the reader."""
        words = []
        for name, value in self.changes.items():
            if name in self.private and value:
                value = name.upper()
            elif isinstance(value, list | tuple):
                value = ",".join(map(str, value))
            words.append(shlex.quote(f"{name}={value}"))
        return (
            f"arborax run {self.experiment} --model {self.model} --preset "
            f"{self.preset} --setting {self.setting} --seed {self.seed}"
            + (" --set " + " ".join(words) if words else "")
        )

    def result(self) -> dict[str, Any] | None:
        """The result of a finished run, with its folder."""
        file = self.path / "result.json"
        if not file.exists():
            return None
        text = file.read_text(encoding="utf-8")
        return {**json.loads(text), "folder": str(self.path)}

    def write(self, config: Any, content: dict[str, Any], cpu_seconds: float) -> None:
        """Writes `result.json`: identity, `content`, configuration and machine."""
        values = {**dataclasses.asdict(config), **dict.fromkeys(self.private)}
        date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        result = {
            "experiment": self.experiment,
            "setting": self.setting,
            "preset": self.preset,
            "model": self.model,
            "seed": self.seed,
            **content,
            "config": values,
            "command": self.command,
            "changes": self.shown,
            "cpu_seconds": round(cpu_seconds, 1),
            "machine": machine(),
            "date": date,
            "commit": commit(),
        }
        write_json(self.path / "result.json", result)


def machine() -> dict[str, Any]:
    """The machine of the run, without names."""
    return {
        "cpu_count": os.cpu_count(),
        "architecture": platform.machine(),
        "backend": jax.default_backend(),
        "python": platform.python_version(),
        "jax": jax.__version__,
    }


@ft.cache
def commit() -> str | None:
    """The commit of the checkout that this code is in, `+` if its source was changed
    since; `None` for an installed package."""
    folder = pathlib.Path(__file__).parents[2]
    if not (folder.parent / ".git").exists():
        return None

    def git(*words: str) -> Any:
        return subprocess.run(["git", *words], cwd=folder, capture_output=True)

    try:
        found = git("rev-parse", "--short=10", "HEAD")
    except OSError:
        return None
    changed = git("diff", "--quiet", "HEAD", "--", ".").returncode
    return found.stdout.decode().strip() + "+" * bool(changed) or None

"""One run of an experiment: what tells it apart, its folder, what it leaves there."""

import dataclasses
import datetime
import os
import pathlib
from typing import Any

from ..training import save
from ._files import machine, read_result, run_name, set_arguments, write_json


@dataclasses.dataclass(frozen=True)
class RunRecord:
    """The identity of one run and the files that it writes.

    **Fields:**

    - `experiment`, `setting`, `preset`, `model`, `seed`: as `arborax run` takes them.
    - `changes`: fields of the configuration that were set otherwise.
    - `folder`: where runs go, each to `experiment/setting-preset-model-seed` there.
    - `private`: fields that name folders of the user: they are in no file.
    """

    experiment: str
    setting: str
    preset: str
    model: str
    seed: int
    changes: dict[str, Any]
    folder: str | os.PathLike
    private: tuple[str, ...] = ()

    @property
    def shown(self) -> dict[str, Any]:
        """The changes without private ones."""
        return {k: v for k, v in self.changes.items() if k not in self.private}

    @property
    def place(self) -> pathlib.Path:
        """The folder of this run."""
        return self.place_of(self.model)

    def place_of(self, model: str) -> pathlib.Path:
        """The folder of the run that differs from this one in its model only."""
        name = run_name(self.setting, self.preset, model, self.seed, self.shown)
        return pathlib.Path(self.folder) / self.experiment / name

    @property
    def command(self) -> str:
        """As it was given, with private folders left to the reader."""
        words = {
            k: k.upper() if k in self.private and v else v
            for k, v in self.changes.items()
        }
        return (
            f"arborax run {self.experiment} --model {self.model} --preset "
            f"{self.preset} --setting {self.setting} --seed {self.seed}"
            + set_arguments(words)
        )

    def open(self, resume: bool) -> dict[str, Any] | None:
        """Makes the folder; the result if there is one and `resume` asks for it."""
        self.place.mkdir(parents=True, exist_ok=True)
        if resume and (self.place / "result.json").exists():
            return read_result(self.place)
        return None

    def close(
        self, model: Any, config: Any, content: dict[str, Any], cpu_seconds: float
    ) -> dict[str, Any]:
        """Writes `model.abx` and `result.json`; returns the latter's content with the
        folder. `content` is what the experiment itself has to say."""
        values = dataclasses.asdict(config)
        result = {
            "experiment": self.experiment,
            "setting": self.setting,
            "preset": self.preset,
            "model": self.model,
            "seed": self.seed,
            **content,
            "config": {**values, **dict.fromkeys(self.private)},
            "command": self.command,
            "changes": self.shown,
            "cpu_seconds": round(cpu_seconds, 1),
            "machine": machine(),
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
        save(self.place / "model.abx", model)
        write_json(self.place / "result.json", result)
        return {**result, "folder": str(self.place)}

"""Where the numbers of a run go: a JSONL file, a tracking service, a progress bar."""

import contextlib
import json
import math
import os
import sys
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .._imports import require
from ._container import write_atomically


@runtime_checkable
class Tracker(Protocol):
    """The interface of a tracker."""

    def log(self, record: dict[str, Any], step: int) -> None:
        """Takes the record of a step, a validation or an event."""
        ...

    def close(self) -> None:
        """Called once at the end."""
        ...


def plain(value: Any) -> Any:
    """A value as strict JSON has it: arrays as lists, non-finite numbers as `None`."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "dtype"):
        return plain(np.asarray(value).tolist())
    return str(value)


def scalars(record: dict[str, Any], prefix: str = "") -> dict[str, float]:
    """The numbers of a nested record under flat names `a/b`."""
    found: dict[str, float] = {}
    for name, value in record.items():
        if isinstance(value, dict):
            found |= scalars(value, f"{prefix}{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[prefix + name] = float(value)
    return found


class JSONL:
    """One JSON object per line, each with `step` and `kind`; appended and flushed.

    With `resume_step`, lines of later steps (from a run that was killed after its last
    checkpoint) and a torn last line are removed first, so that a resumed log reads like
    that of one run.
    """

    def __init__(self, path: str | os.PathLike, resume_step: int | None = None):
        path = self._path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            lines = [] if resume_step is None else _kept_lines(path, resume_step)
            write_atomically(path, "".join(lines).encode())
        self._file = open(path, "a", encoding="utf-8")

    def log(self, record: dict[str, Any], step: int) -> None:
        line = json.dumps({"step": step} | plain(record), allow_nan=False)
        try:
            self._file.write(line + "\n")
            self._file.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from error

    def close(self) -> None:
        # Failed writes were reported by `log`.
        with contextlib.suppress(OSError):
            self._file.close()


def _kept_lines(path: Path, resume_step: int) -> list[str]:
    kept = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        if not isinstance(record, dict):
            continue
        if record.get("step", 0) <= resume_step and record.get("kind") != "stop":
            kept.append(line + "\n")
    return kept


def read_log(path: str | os.PathLike, kind: str | None = None) -> list[dict[str, Any]]:
    """The records of a JSONL log, all or those of one kind; a last line that is still
    being written, or was torn by a kill, is left out."""
    with open(path, encoding="utf-8") as file:
        records = [json.loads(line) for line in file if line.endswith("\n")]
    return [r for r in records if kind is None or r["kind"] == kind]


class TensorBoard:
    """Scalars to TensorBoard event files, through `tensorboardX`."""

    def __init__(self, folder: str | os.PathLike):
        module = require("tensorboardX", None, "the TensorBoard tracker")
        self._writer = module.SummaryWriter(str(folder))

    def log(self, record: dict[str, Any], step: int) -> None:
        kind = record.get("kind", "run")
        for name, value in scalars(record).items():
            self._writer.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        self._writer.close()


class _Service:
    """Services with the interface of `wandb`: `init`, `log`, `finish`."""

    def __init__(self, module: Any, options: dict[str, Any]):
        self._run = module.init(**options)

    def log(self, record: dict[str, Any], step: int) -> None:
        kind = record.get("kind", "run")
        numbers = {f"{kind}/{k}": v for k, v in scalars(record).items()}
        if numbers:
            self._run.log(numbers, step=step)

    def close(self) -> None:
        self._run.finish()


def wandb(**options: Any) -> Tracker:
    """A Weights & Biases tracker; `options` go to `wandb.init`."""
    return _Service(require("wandb", None, "the wandb tracker"), options)


def trackio(**options: Any) -> Tracker:
    """A Trackio tracker (local first); `options` go to `trackio.init`."""
    return _Service(require("trackio", None, "the trackio tracker"), options)


@runtime_checkable
class Progress(Protocol):
    """The interface of a progress bar."""

    def update(self, step: int, info: dict[str, float]) -> None:
        """Shows that `step` steps are done, with a few numbers."""
        ...

    def close(self) -> None:
        """Ends the bar."""
        ...


class TqdmProgress:
    """A `tqdm` bar on standard error: steps done, time left, loss, best metric.

    Drawn twice a second on a terminal, every ten seconds into a file.
    """

    def __init__(self, total: int, initial: int = 0):
        tqdm = require("tqdm", "train", "the progress bar (or pass progress=False)")
        self._step = initial
        self._bar = tqdm.tqdm(
            total=total,
            initial=initial,
            unit="step",
            mininterval=0.5 if sys.stderr.isatty() else 10.0,
            dynamic_ncols=True,
        )

    def update(self, step: int, info: dict[str, float]) -> None:
        self._bar.set_postfix({k: f"{v:.4g}" for k, v in info.items()}, refresh=False)
        self._bar.update(step - self._step)
        self._step = step

    def close(self) -> None:
        self._bar.close()

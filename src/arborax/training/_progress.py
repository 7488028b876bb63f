"""A progress bar behind a protocol of two methods."""

import sys
from typing import Any, Protocol, runtime_checkable

from ._extras import require


@runtime_checkable
class Progress(Protocol):
    """What `fit` needs of a progress bar."""

    def update(self, step: int, info: dict[str, float]) -> None:
        """Shows that `step` steps are done, with a few numbers."""
        ...

    def close(self) -> None:
        """Ends the bar."""
        ...


class NoProgress:
    """Shows nothing."""

    def update(self, step: int, info: dict[str, float]) -> None:
        pass

    def close(self) -> None:
        pass


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


def make_progress(progress: Any, total: int, initial: int, main: bool) -> Progress:
    """`True` for `tqdm`, `False` for none, else a function `(total, initial)`."""
    if progress is False or not main:
        return NoProgress()
    if progress is True:
        return TqdmProgress(total, initial)
    return progress(total, initial)

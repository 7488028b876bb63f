"""One process per folder."""

import contextlib
import os
from pathlib import Path
from typing import Any


class FolderLock:
    """A context that keeps other processes out of a folder; it may be nested.

    The system drops the lock when the process ends, however it ends, so a kill leaves
    nothing to clean up. Where there are no such locks (Windows, some network file
    systems) nothing is locked.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._file: Any = None
        self._depth = 0

    def __enter__(self) -> None:
        if self._depth == 0:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = open(self._folder / ".lock", "a+", encoding="utf-8")
            try:
                _lock(self._file)
            except BlockingIOError:
                self._file.seek(0)
                owner = self._file.read(20).strip() or "another one"
                self._file.close()
                raise ValueError(
                    f"the folder {self._folder} is in use by process {owner}. Wait for "
                    "it to end, or use another folder."
                ) from None
            # Who it is, for the message above; on a full disk it stays nameless.
            with contextlib.suppress(OSError):
                self._file.truncate(0)
                self._file.write(f"{os.getpid()}\n")
                self._file.flush()
        self._depth += 1

    def __exit__(self, *exception: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            with contextlib.suppress(OSError):
                self._file.close()


def _lock(file: Any) -> None:
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        pass  # a file system without locks

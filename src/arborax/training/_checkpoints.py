"""Checkpoints that survive a kill at any moment."""

import contextlib
import os
import re
import warnings
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ._container import (
    check_names,
    decode,
    encode,
    FileFormatError,
    named_leaves,
    sync_folder,
    write_atomically,
)
from ._distributed import is_key


try:
    import fcntl
except ImportError:  # not on this system
    fcntl = None


@runtime_checkable
class Checkpoints(Protocol):
    """Where `fit` keeps its state. `fit` passes a flat dictionary of named arrays."""

    def save(self, step: int, arrays: dict[str, Any], meta: dict[str, Any]) -> None:
        """Keeps the state after `step` steps; returns when it is safe on disk."""
        ...

    def restore(self) -> tuple[int, dict[str, Any], dict[str, Any]] | None:
        """The newest whole state as `(step, arrays, meta)`, or `None`."""
        ...

    def clear(self) -> None:
        """Forgets all states."""
        ...


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
                if fcntl is not None:
                    fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._file.seek(0)
                owner = self._file.read(20).strip() or "another one"
                self._file.close()
                raise ValueError(
                    f"the folder {self._folder} is in use by process {owner}. Wait for "
                    "it to end, or use another folder."
                ) from None
            except OSError:
                pass  # a file system without locks
            # The process, for the message above; a full disk leaves it out.
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


class FileCheckpoints:
    """Checkpoints as files `checkpoint-<step>.abx` in a folder: the last `keep` steps.

    Each is written to a temporary file, flushed and renamed, and only then is the
    oldest removed: a kill at any moment leaves at least one whole checkpoint once there
    was one. A file that cannot be read or fails its checksums (a failing disk) is
    passed over with a warning. Within the context `lock`, which `fit` holds for the
    whole run, and during each save the folder belongs to this process; another one that
    wants to write there gets an error.
    """

    def __init__(self, folder: str | os.PathLike, keep: int = 2):
        if keep < 1:
            raise ValueError(f"keep must be at least 1, got {keep}.")
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"checkpoints need a folder; {self.folder} is a file.")
        self.keep = keep
        self.lock = FolderLock(self.folder)

    def paths(self) -> list[Path]:
        """The checkpoint files, oldest first."""
        if not self.folder.is_dir():
            return []
        found = [
            (int(match.group(1)), path)
            for path in self.folder.iterdir()
            if (match := re.fullmatch(r"checkpoint-(\d+)\.abx", path.name))
        ]
        return [path for _, path in sorted(found)]

    def save(self, step: int, arrays: dict[str, Any], meta: dict[str, Any]) -> None:
        content = encode(arrays, {"kind": "checkpoint", "step": step, "state": meta})
        with self.lock:
            write_atomically(self.folder / f"checkpoint-{step:09d}.abx", content)
            for path in self.paths()[: -self.keep]:
                path.unlink(missing_ok=True)
            # Left by processes that were killed: no other one writes now.
            for path in self.folder.glob(".checkpoint-*.tmp"):
                path.unlink(missing_ok=True)

    def restore(self) -> tuple[int, dict[str, Any], dict[str, Any]] | None:
        raw = self.newest_bytes()
        return None if raw is None else unpack(raw)

    def newest_bytes(self) -> bytes | None:
        """The content of the newest checkpoint that passes all checks."""
        paths = self.paths()
        for path in reversed(paths):
            try:
                raw = path.read_bytes()
                unpack(raw, str(path))
            except (FileFormatError, OSError) as error:
                warnings.warn(f"passing over a checkpoint: {error}", stacklevel=2)
                continue
            return raw
        if paths:
            raise FileFormatError(
                f"no checkpoint in {self.folder} can be read. Remove the folder, or "
                "pass `resume=False` to start again."
            )
        return None

    def clear(self) -> None:
        if not self.folder.is_dir():
            return
        with self.lock:
            for path in self.paths():
                path.unlink(missing_ok=True)
            sync_folder(self.folder)


def unpack(raw: bytes, source: str = "the checkpoint") -> tuple[int, dict, dict]:
    """The content of a checkpoint file as `(step, arrays, meta)`."""
    arrays, meta = decode(raw, source)
    if not isinstance(meta, dict) or meta.get("kind") != "checkpoint":
        raise FileFormatError(f"{source} is an arborax file but not a checkpoint.")
    return meta["step"], arrays, meta["state"]


def flatten_state(tree: Any) -> dict[str, np.ndarray]:
    """Pulls a pytree of arrays to the host as a flat dictionary of named arrays."""
    return {
        name: np.array(jr.key_data(leaf) if is_key(leaf) else leaf)
        for name, leaf in named_leaves(tree).items()
    }


def unflatten_state(like: Any, arrays: dict[str, Any], source: str) -> Any:
    """Puts named arrays into a pytree of the structure of `like`, checking shapes."""
    expected = named_leaves(like)
    check_names(expected, arrays, source)
    values: dict[str, Any] = {}
    for name, leaf in expected.items():
        x = np.asarray(arrays[name])
        own = jr.key_data(leaf) if is_key(leaf) else leaf
        if x.shape != np.shape(own) or x.dtype != jnp.result_type(own):
            raise FileFormatError(
                f"{source} does not fit: {name} is {x.dtype}{list(x.shape)} there and "
                f"{jnp.result_type(own)}{list(np.shape(own))} here. Resume with the "
                "same model, optimiser and precision, or pass `resume=False`."
            )
        if is_key(leaf):
            x = jr.wrap_key_data(jnp.asarray(x), impl=jr.key_impl(leaf))
        values[name] = x
    return jax.tree_util.tree_map_with_path(
        lambda path, _: values[jax.tree_util.keystr(path)], like
    )

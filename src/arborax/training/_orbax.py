"""Checkpoints through Orbax, for those who keep their runs in its format."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from .._imports import require


class OrbaxCheckpoints:
    """Checkpoints kept by `orbax.checkpoint` (extra `checkpoint`), for `fit`.

    Orbax can write in the background and to cloud storage. In several processes all of
    them call it and it coordinates them itself, so the folder must be a shared one. The
    last `keep` steps are kept.

    **Arguments:**

    - `folder`: an absolute folder or a storage address known to Orbax.
    - `keep`: number of steps to keep.
    - `asynchronous`: if true, `save` returns while the writing goes on; the last state
        is then safe only after `close`.
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        keep: int = 2,
        asynchronous: bool = False,
    ):
        ocp = require("orbax.checkpoint", "checkpoint", "OrbaxCheckpoints")
        folder = str(folder)
        if "://" not in folder:
            folder = str(Path(folder).absolute())
        options = ocp.CheckpointManagerOptions(
            max_to_keep=keep, enable_async_checkpointing=asynchronous
        )
        self._ocp = ocp
        self._asynchronous = asynchronous
        self._manager = ocp.CheckpointManager(folder, options=options)

    def save(self, step: int, arrays: dict[str, Any], meta: dict[str, Any]) -> None:
        ocp = self._ocp
        if self._manager.latest_step() == step:
            return
        # Orbax refuses empty arrays and splits names at separators: keep a table.
        names = [name for name, x in arrays.items() if np.size(x)]
        empty = {
            name: [str(np.asarray(x).dtype), list(np.shape(x))]
            for name, x in arrays.items()
            if not np.size(x)
        }
        tree = {f"{i:06d}": np.asarray(arrays[name]) for i, name in enumerate(names)}
        note = {"names": names, "empty": empty, "meta": json.dumps(meta)}
        self._manager.save(
            step,
            args=ocp.args.Composite(
                arrays=ocp.args.StandardSave(tree), note=ocp.args.JsonSave(note)
            ),
        )
        if not self._asynchronous:
            self._manager.wait_until_finished()

    def restore(self) -> tuple[int, dict[str, Any], dict[str, Any]] | None:
        ocp = self._ocp
        step = self._manager.latest_step()
        if step is None:
            return None
        found = self._manager.restore(
            step,
            args=ocp.args.Composite(
                arrays=ocp.args.StandardRestore(), note=ocp.args.JsonRestore()
            ),
        )
        note = found["note"]
        arrays = {
            name: np.asarray(found["arrays"][f"{i:06d}"])
            for i, name in enumerate(note["names"])
        }
        for name, (dtype, shape) in note["empty"].items():
            arrays[name] = np.zeros(shape, dtype)
        return step, arrays, json.loads(note["meta"])

    def clear(self) -> None:
        for step in self._manager.all_steps():
            self._manager.delete(step)

    def close(self) -> None:
        self._manager.wait_until_finished()
        self._manager.close()

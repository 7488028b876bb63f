"""Experiments by name."""

import importlib
from types import ModuleType


EXPERIMENTS = {
    "rough-bergomi": "rough_bergomi",
    "so-rotation": "so_rotation",
    "recovery": "recovery",
    "ppg-dalia": "recovery",
    "spd": "spd",
}


def experiment(name: str) -> ModuleType:
    """The package of an experiment, imported when asked for.

    **Arguments:**

    - `name`: a key of `EXPERIMENTS`, e.g. `"rough-bergomi"`.

    **Returns:**

    A module with `Config`, `load_config(experiment, setting, preset, **changes)`,
    `MODELS` (names as keys), `run(experiment, *, model, preset, setting, seed, resume,
    folder, cache, progress, changes)` which returns the content of `result.json`,
    `table(results)` and `report(results, file, experiment)`.
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"`name` must be one of {list(EXPERIMENTS)}, got {name!r}.")
    return importlib.import_module(f"arborax.experiments.{EXPERIMENTS[name]}")

"""Configurations: frozen dataclasses filled from TOML presets."""

import dataclasses
import pathlib
import tomllib
from typing import Any, Literal, TypeVar


PRESETS = ("smoke", "quick", "paper")

C = TypeVar("C")


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """The fields of all configurations; a subclass adds fields and other defaults.

    **Fields:**

    - `model`: a name of the task's `models`.
    - `hidden`, `width`, `depth`, `window`: sizes of the model.
    - `optimiser`, `learning_rate`: as [`arborax.fit`][].
    - `schedule`: of the learning rate: a short rise and a cosine, or none.
    - `batch`, `iterations`: of training.
    - `average`: decay of the moving average of weights that is validated and kept; zero
        for none.
    - `validations`: how often the validation metric is taken.
    """

    model: str = "bnrde"
    hidden: int = 32
    width: int = 32
    depth: int = 2
    window: int = 16
    optimiser: str = "adamw"
    learning_rate: float = 4e-3
    schedule: Literal["cosine", "constant"] = "cosine"
    batch: int = 128
    iterations: int = 200
    average: float = 0.0
    validations: int = 8


def read_preset(
    kind: type[C],
    folder: pathlib.Path,
    setting: str,
    preset: str,
    changes: dict[str, Any],
) -> C:
    """The configuration of an experiment at a setting and a preset.

    **Arguments:**

    - `kind`: the dataclass to fill.
    - `folder`: that of the experiment. Values at the top of `SETTING.toml` hold for all
        presets, those under `[PRESET]` for one, those under `[PRESET.models.NAME]` for
        one model of it, the `model` in `changes`.
    - `setting`: `"arborax"` (our version) or `"paper"` (as published).
    - `preset`: `"smoke"` (seconds), `"quick"` (minutes) or `"paper"` (as published).
    - `changes`: fields with other values.

    **Returns:**

    An instance of `kind`.
    """
    settings = sorted(file.stem for file in folder.glob("*.toml"))
    for name, value, known in [
        ("setting", setting, settings),
        ("preset", preset, PRESETS),
    ]:
        if value not in known:
            raise ValueError(f"`{name}` must be one of {list(known)}, got {value!r}.")
    content = tomllib.loads((folder / f"{setting}.toml").read_text(encoding="utf-8"))
    presets = {name: content.pop(name, {}) for name in PRESETS}
    values = {**content, **presets[preset]}
    by_model = values.pop("models", {})
    values = {**values, **by_model.get(changes.get("model"), {}), **changes}
    names = {field.name for field in dataclasses.fields(kind)}  # pyright: ignore
    if unknown := sorted(set(values) - names):
        raise ValueError(f"unknown fields {unknown}; a Config has {sorted(names)}.")
    return kind(**_tuples(values))


def stored_config(kind: type[C], result: dict[str, Any]) -> C:
    """The configuration in a result, which another version may have written: fields
    that no longer exist are left out, new ones have their defaults."""
    known = {field.name for field in dataclasses.fields(kind)}  # pyright: ignore
    values = {k: v for k, v in result["config"].items() if k in known}
    return kind(**_tuples(values))


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    """Lists of TOML and JSON as the tuples that a frozen dataclass holds."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}

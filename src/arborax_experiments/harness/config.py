"""Configurations: frozen dataclasses filled from TOML presets."""

import dataclasses
import importlib.resources
import tomllib
from typing import Any, TypeVar


SETTINGS = ("arborax", "paper")
PRESETS = ("smoke", "quick", "paper")

C = TypeVar("C")


def read_preset(
    kind: type[C], experiment: str, setting: str, preset: str, changes: dict[str, Any]
) -> C:
    """The configuration of an experiment at a setting and a preset.

    **Arguments:**

    - `kind`: the dataclass to fill.
    - `experiment`: the presets are those of `presets/EXPERIMENT.SETTING.toml`: values
        at the top hold for all presets, those under `[PRESET]` for one, those under
        `[PRESET.models.NAME]` for one model of it, the `model` in `changes`.
    - `setting`: `"arborax"` (our reading) or `"paper"` (as published).
    - `preset`: `"smoke"` (seconds), `"quick"` (minutes) or `"paper"` (as published).
    - `changes`: fields of `kind` to set otherwise.

    **Returns:**

    An instance of `kind`.
    """
    for name, value, known in [
        ("setting", setting, SETTINGS),
        ("preset", preset, PRESETS),
    ]:
        if value not in known:
            raise ValueError(f"`{name}` must be one of {known}, got {value!r}.")
    folder = importlib.resources.files("arborax.experiments") / "presets"
    text = (folder / f"{experiment}.{setting}.toml").read_text(encoding="utf-8")
    content = tomllib.loads(text)
    presets = {name: content.pop(name) for name in PRESETS}
    values = {**content, **presets[preset]}
    by_model = values.pop("models", {})
    values = {**values, **by_model.get(changes.get("model"), {}), **changes}
    names = {field.name for field in dataclasses.fields(kind)}  # pyright: ignore
    if unknown := sorted(set(values) - names):
        raise ValueError(f"unknown fields {unknown}; a Config has {sorted(names)}.")
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    return kind(**values)

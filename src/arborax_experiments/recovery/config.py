"""The configuration of the experiment `recovery`."""

import dataclasses
from typing import Any, Literal

from .._presets import read_preset


@dataclasses.dataclass(frozen=True)
class Config:
    """One run of the experiment `recovery`, but for the seed.

    **Fields:**

    - `data`: `"BasicMotions"` or `"JapaneseVowels"` (classes of series) or
        `"PPG-DaLiA"` (heart rates).
    - `folder`: of the data, as [`arborax.datasets.read_aeon`][] and
        [`arborax.datasets.read_ppg_dalia`][] take it; series that `aeon` ships are
        found without.
    - `model`: `"bnrde"` or `"log-ncde"`.
    - `hidden`, `width`, `depth`, `window`: sizes.
    - `double`: train in double precision.
    - `optimiser`, `learning_rate`, `batch`, `iterations`, `validations`: of training.
    """

    data: Literal["BasicMotions", "JapaneseVowels", "PPG-DaLiA"] = "JapaneseVowels"
    folder: str | None = None
    model: str = "bnrde"
    hidden: int = 16
    width: int = 32
    depth: int = 2
    window: int = 4
    double: bool = True
    optimiser: str = "adamw"
    learning_rate: float = 3e-3
    batch: int = 64
    iterations: int = 150
    validations: int = 5


def load_config(
    experiment: str = "recovery",
    setting: str = "arborax",
    preset: str = "quick",
    **changes: Any,
) -> Config:
    """The configuration of a setting and a preset.

    **Arguments:**

    - `experiment`: `"recovery"`, or `"ppg-dalia"`, its setting `"paper"` by the name of
        the data.
    - `setting`: `"arborax"`, or `"paper"` (PPG-DaLiA, sizes as published).
    - `preset`: `"smoke"`, `"quick"` or `"paper"`.
    - `changes`: fields of `Config` to set otherwise.

    **Returns:**

    A `Config`.
    """
    if experiment == "ppg-dalia":
        experiment, setting = "recovery", "paper"
    if experiment != "recovery":
        raise ValueError(
            f"`experiment` must be 'recovery' or 'ppg-dalia', got {experiment!r}."
        )
    return read_preset(Config, experiment, setting, preset, changes)

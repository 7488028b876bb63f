"""The configuration of the experiments `recovery` and `ppg-dalia`."""

import dataclasses
from typing import Literal

from ..harness import TrainingConfig


@dataclasses.dataclass(frozen=True)
class Config(TrainingConfig):
    """One run of the experiment `recovery`, without the seed.

    **Fields**, in addition to those of `TrainingConfig`:

    - `data`: `"BasicMotions"` or `"JapaneseVowels"` (classes of series) or
        `"PPG-DaLiA"` (heart rates).
    - `folder`: of the data, as [`arborax.datasets.read_aeon`][] and
        [`arborax.datasets.read_ppg_dalia`][] take it; series that `aeon` ships need no
        folder.
    - `double`: train in double precision.
    """

    data: Literal["BasicMotions", "JapaneseVowels", "PPG-DaLiA"] = "JapaneseVowels"
    folder: str | None = None
    hidden: int = 16
    window: int = 4
    double: bool = True
    learning_rate: float = 3e-3
    schedule: Literal["cosine", "constant"] = "constant"
    batch: int = 64
    iterations: int = 150
    validations: int = 5

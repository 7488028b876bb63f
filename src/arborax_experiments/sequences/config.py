"""The configuration of the experiment `sequences`."""

import dataclasses

from ..harness import TrainingConfig


@dataclasses.dataclass(frozen=True)
class Config(TrainingConfig):
    """One run, but for the seed.

    **Fields** beside those of `TrainingConfig`:

    - `data`: name of a set of the UEA archive.
    - `folder`: with the files of the set, as [`arborax.datasets.read_aeon`][] takes it;
        `None` for those that `aeon` ships.
    - `split`: 0 for the official split; `k` for the `k`-th random one into 70, 15 and
        15 per cent for training, validation and test.
        `split=seed` on the command line takes the number of the seed.
    - `fold`: `k` from 1 to 5 scores the `k`-th fifth of the official training part and
        trains on the rest: to choose a recipe without the test part.
    - `windows`: of a series, about, for models of windows.
    - `block`, `layers`, `damped`, `contractive`: of a linear equation.
    - `plain`: whether the last state alone of a linear equation is read, without gates,
        normalisation or a mean over time, so that all but the equation is linear.
    - `features`: numbers that a trained model gives to its readout.
    - `states`: of a reservoir.
    - `kernels`: of the convolutions of MiniRocket and MultiRocket.
    """

    model: str = "linear-ito"
    data: str = "JapaneseVowels"
    folder: str | None = None
    split: int = 0
    fold: int = 0
    windows: int = 32
    block: int = 4
    layers: int = 1
    damped: bool = True
    contractive: bool = False
    plain: bool = False
    features: int = 64
    states: int = 512
    kernels: int = 10_000

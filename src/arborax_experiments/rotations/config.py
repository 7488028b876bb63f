"""The configuration of the experiment `so-rotation`."""

import dataclasses
from typing import Literal

from ..harness import TrainingConfig


@dataclasses.dataclass(frozen=True)
class Config(TrainingConfig):
    """One run of the experiment `so-rotation`, but for the seed.

    **Fields** beside those of `TrainingConfig`; `window` is that of window models
    without one in their name:

    - `trajectories`, `data_seed`, `kinematics`: of free rotation.
    - `law`: training windows: `"broad"`: all kinds of motion at all `rates`
        (`broad_motion`); `"free"`: free rotation alone, as published.
    - `seconds`: whether models are told times in seconds, and so the rate; otherwise
        times count samples.
    - `split`: of free rotation, `"trajectory"`, or `"time"` as published.
    - `points`, `observed`, `stride`: of windows.
    - `train_noise`, `train_drop`: largest observation noise (rad), and the part of
        observations missing in half of the windows, in training and validation.
    - `noise`, `drop`: levels at which the test windows are scored; the drop is applied
        beside the full windows.
    - `test_windows`, `real_windows`: largest number of each test set.
    - `folder`: recordings ([`arborax.datasets.read_recordings`][]) but those that are
        kept for the final test; without it there is no sim-to-real evaluation.
    - `final`: the same folder: scores what is kept for the final test as well.
    - `motions`: folder of aeon's `BasicMotions`, as
        [`arborax.datasets.read_aeon`][] takes it.
    - `rates`, `gap`: samples per second of recordings and of the broad law; gaps (s)
        that are not bridged.
    - `real_noise`: added to recordings.
    - `front`: a name of `FRONTS`, or `"published"`: that of the published row.
    - `relative`, `driver`, `correct`: as `RotationForecaster`.
    - `hidden`: also the size of the memory beside the state of the B-NRDE on SO(3).
    - `substeps`: of `MNODE`.
    - `objective`: `"angle"`: the mean angle of the forecast; `"frobenius"`: as
        published.
    """

    trajectories: int = 2000
    data_seed: int = 42
    kinematics: Literal["body", "mixed"] = "body"
    law: Literal["broad", "free"] = "broad"
    seconds: bool = True
    split: Literal["trajectory", "time"] = "trajectory"
    points: int = 21
    observed: int = 12
    stride: int = 5
    train_noise: float = 0.05
    train_drop: float = 0.3
    noise: tuple[float, ...] = (0.0, 0.02, 0.05)
    drop: float = 0.3
    test_windows: int = 3072
    real_windows: int = 384
    folder: str | None = None
    final: str | None = None
    motions: str | None = None
    rates: tuple[float, ...] = (10.0, 40.0)
    gap: float = 0.1
    real_noise: tuple[float, ...] = (0.0, 0.02, 0.05)
    front: str = "bank"
    relative: bool = True
    driver: Literal["chart", "matrix"] = "chart"
    correct: bool = True
    hidden: int = 16
    depth: int = 2
    window: int = 5
    substeps: int = 1
    objective: Literal["angle", "frobenius"] = "angle"
    learning_rate: float = 5e-3
    iterations: int = 600
    validations: int = 6

    def __post_init__(self):
        if not 2 <= self.observed < self.points:
            raise ValueError(
                f"`observed` must be in 2..{self.points - 1} of {self.points} points, "
                f"got {self.observed}."
            )

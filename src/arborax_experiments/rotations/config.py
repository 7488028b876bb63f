"""The configuration of the experiment `so-rotation`."""

import dataclasses
from typing import Literal

from ..harness import TrainingConfig


@dataclasses.dataclass(frozen=True)
class Config(TrainingConfig):
    """One run of the experiment `so-rotation`, without the seed.

    **Fields**, in addition to those of `TrainingConfig`; `window` is for window models
    whose name does not give one:

    - `trajectories`, `data_seed`, `kinematics`: of free rotation.
    - `driven`: share of the training windows that come from
        [`arborax.datasets.DrivenRotation`][] instead of free rotation.
    - `train_rates`, `correlation`: samples per second at which driven rotation
        is simulated, in equal shares, and the range of its correlation times (s). Free
        rotation has 10 samples per second.
    - `seconds`: whether models are told times in seconds, and so the rate; otherwise
        times count samples.
    - `split`: `"trajectory"`, or `"time"` as published.
    - `points`, `observed`, `stride`: of windows.
    - `train_noise`, `train_drop`: largest observation noise (rad), and the share
        of observations missing in half of the windows, in training and validation.
    - `noise`, `drop`: levels at which test windows are scored; windows with dropped
        observations are scored in addition to full ones.
    - `test_windows`, `real_windows`: largest number of each test set.
    - `folder`: recordings ([`arborax.datasets.read_recordings`][]); without it there is
        no sim-to-real evaluation.
    - `motions`: folder of aeon's `BasicMotions`, as
        [`arborax.datasets.read_aeon`][] takes it.
    - `rates`, `gap`: samples per second of recordings; gaps (s) that are not bridged.
    - `real_noise`: added to recordings.
    - `extrapolator`: the front of the model, a name of `EXTRAPOLATORS`, or
        `"default"`: that of the model.
    - `bodies`: whether the bank of the B-NRDE on SO(3) and of the mixture has rigid
        bodies of the simulated kind among its laws of motion.
    - `inertia`: whether the equation of the B-NRDE on SO(3) can learn moments of
        inertia, see `Torque`.
    - `relative`, `driver`: as `RotationForecaster`.
    - `substeps`: of `MNODE`.
    - `objective`: `"relative"`: angle, mostly of the forecast, over the error of the
        better of holding and continuing; `"frobenius"`: as published.
    """

    trajectories: int = 2000
    data_seed: int = 42
    kinematics: Literal["body", "mixed"] = "body"
    driven: float = 0.35
    train_rates: tuple[float, ...] = (10.0, 40.0)
    correlation: tuple[float, float] = (0.1, 0.5)
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
    motions: str | None = None
    rates: tuple[float, ...] = (10.0, 40.0)
    gap: float = 0.1
    real_noise: tuple[float, ...] = (0.0, 0.02, 0.05)
    extrapolator: str = "default"
    bodies: bool = True
    inertia: bool = False
    relative: bool = True
    driver: Literal["chart", "matrix"] = "chart"
    hidden: int = 16
    depth: int = 3
    window: int = 10
    substeps: int = 1
    objective: Literal["relative", "frobenius"] = "relative"
    learning_rate: float = 5e-3
    iterations: int = 700
    validations: int = 7

    def __post_init__(self):
        if not 2 <= self.observed < self.points:
            raise ValueError(
                f"`observed` must be in 2..{self.points - 1} of {self.points} points, "
                f"got {self.observed}."
            )

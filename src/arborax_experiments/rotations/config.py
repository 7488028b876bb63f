"""The configuration of the experiment `so-rotation`."""

import dataclasses
from typing import Any, Literal

from .._presets import read_preset


@dataclasses.dataclass(frozen=True)
class Config:
    """One run of the experiment `so-rotation`, but for the seed.

    **Fields:**

    - `trajectories`, `data_seed`, `kinematics`: of free rotation.
    - `driven`: part of training windows that come from
        [`arborax.datasets.DrivenRotation`][] instead of free rotation.
    - `train_rates`, `correlation`: samples a second at which driven rotation is
        simulated, in equal shares, and the range of its correlation times (s). Free
        rotation has 10 samples a second.
    - `seconds`: whether models are told times in seconds, and so the rate; otherwise
        times count samples.
    - `split`: `"trajectory"`, or `"time"` as published.
    - `points`, `observed`, `stride`: of windows.
    - `train_noise`, `train_drop`: largest observation noise (rad), and the part of
        observations missing in half of the windows, in training and validation.
    - `noise`, `drop`: levels at which the test windows are scored; the drop is applied
        beside the full windows.
    - `test_windows`, `real_windows`: largest number of each test set.
    - `folder`: recordings ([`arborax.datasets.read_recordings`][]); without it there is
        no sim-to-real evaluation.
    - `motions`: folder of aeon's `BasicMotions`, as
        [`arborax.datasets.read_aeon`][] takes it.
    - `rates`, `gap`: samples a second of recordings; gaps (s) that are not bridged.
    - `real_noise`: added to recordings.
    - `model`: a name of `MODELS`.
    - `extrapolator`: the front of the model, a name of `EXTRAPOLATORS`, or
        `"default"`: that of the model.
    - `bodies`: whether the bank of the B-NRDE on SO(3) and of the mixture has rigid
        bodies of the simulated kind among its laws of motion.
    - `inertia`: whether the equation of the B-NRDE on SO(3) can learn of a body's
        moments of inertia, see [`arborax.models.Torque`][].
    - `relative`, `driver`: as [`arborax.models.RotationForecaster`][].
    - `hidden`, `width`, `depth`, `window`, `substeps`: sizes; the window is that of
        window models without one in their name.
    - `objective`: `"relative"`: the angle, mostly of the forecast, in units of what the
        better of holding and continuing would miss; `"frobenius"`: as published.
    - `optimiser`, `learning_rate`, `schedule`, `batch`, `iterations`, `validations`: of
        training.
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
    model: str = "bnrde"
    extrapolator: str = "default"
    bodies: bool = True
    inertia: bool = False
    relative: bool = True
    driver: Literal["chart", "matrix"] = "chart"
    hidden: int = 16
    width: int = 32
    depth: int = 3
    window: int = 10
    substeps: int = 1
    objective: Literal["relative", "frobenius"] = "relative"
    optimiser: str = "adamw"
    learning_rate: float = 5e-3
    schedule: Literal["cosine", "constant"] = "cosine"
    batch: int = 128
    iterations: int = 700
    validations: int = 7


def load_config(
    experiment: str = "so-rotation",
    setting: str = "arborax",
    preset: str = "quick",
    **changes: Any,
) -> Config:
    """The configuration of a setting and a preset.

    **Arguments:**

    - `experiment`: `"so-rotation"`.
    - `setting`: `"arborax"` (our reading) or `"paper"` (as published).
    - `preset`: `"smoke"`, `"quick"` or `"paper"`.
    - `changes`: fields of `Config` to set otherwise.

    **Returns:**

    A `Config`.
    """
    if experiment != "so-rotation":
        raise ValueError(f"`experiment` must be 'so-rotation', got {experiment!r}.")
    config = read_preset(Config, experiment, setting, preset, changes)
    if not 2 <= config.observed < config.points:
        raise ValueError(
            f"`observed` must be in 2..{config.points - 1} of {config.points} points, "
            f"got {config.observed}."
        )
    return config

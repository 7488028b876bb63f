"""The configuration of the experiment `rough-bergomi`."""

import dataclasses
from typing import Any, Literal

from .._presets import read_preset


@dataclasses.dataclass(frozen=True)
class Config:
    """One run of the experiment `rough-bergomi`, but for the seed.

    **Fields:**

    - `hurst`, `paths`, `steps`, `data_seed`: of the data set.
    - `horizons`: indices of times at which marginals are compared.
    - `model`: a name of `MODELS`.
    - `hidden`, `width`, `depth`, `window`: sizes of the model.
    - `noise`: Brownian channels of the driver.
    - `calculus`, `interpolation`, `basepoint`: of B-NRDE.
    - `anchor`: let every path begin at zero, and measure it in standard deviations of
        the data.
    - `objective`: `"fourier-path"` (random Fourier features of the signature, of
        levels and of realised variances), `"fourier-branched"` (the same with trees and
        brackets), `"fourier"` (random Fourier signature features of levels only),
        `"signature"` (depth 5, as published), `"signature-robust"` (the same of scaled
        paths, with tensor normalisation and standardised) or `"branched"` (trees of
        weight 3 with brackets, as published).
    - `target`: `"all"` compares with mean features of `target_paths` training paths,
        `"batch"` with a batch of them.
    - `stride`: the objective looks at every so many-th sample.
    - `features`, `cylinders`: random functions for each level of the signature, and
        random functions of levels and variances at single times.
    - `optimiser`, `learning_rate`, `schedule`, `batch`, `iterations`: of training.
    - `average`: decay of the moving average of weights that is validated and kept; zero
        for none.
    - `validations`, `validation_paths`: how often and with how many generated paths (at
        most as many as are held out) the validation metric is taken.
    - `price_paths`: how many generated paths price options (at least the test paths).
    - `selection`: the validation metric: median KS of the `"marginals"`, or the mean KS
        of marginals and path functionals, `"path"`.
    - `keep`: the weights that are kept: those of the `"best"` validation, or the
        `"last"` ones of a schedule that ends in small steps, unless the metric tells
        them from the truth; then the best ones.
    - `finetune_objective`, `finetune_learning_rate`, `finetune_iterations`: of the
        second stage of `bnrde-bk`.
    """

    hurst: float = 0.25
    paths: int = 32768
    steps: int = 512
    data_seed: int = 42
    horizons: tuple[int, ...] = (128, 256, 384, 512)
    model: str = "bnrde"
    hidden: int = 32
    width: int = 32
    depth: int = 2
    window: int = 16
    noise: int = 2
    calculus: Literal["ito", "stratonovich"] = "ito"
    interpolation: Literal["taylor", "log-ode", "linear"] | None = None
    basepoint: bool = True
    anchor: bool = True
    objective: str = "fourier-path"
    target: Literal["all", "batch"] = "all"
    target_paths: int = 8192
    stride: int = 8
    features: int = 96
    cylinders: int = 768
    optimiser: str = "adamw"
    learning_rate: float = 4e-3
    schedule: Literal["cosine", "constant"] = "cosine"
    batch: int = 256
    iterations: int = 360
    average: float = 0.0
    validations: int = 12
    validation_paths: int = 4096
    price_paths: int = 13108
    selection: Literal["path", "marginals"] = "path"
    keep: Literal["best", "last"] = "best"
    finetune_objective: str = "fourier-branched"
    finetune_learning_rate: float = 1e-3
    finetune_iterations: int = 40


def load_config(
    experiment: str = "rough-bergomi",
    setting: str = "arborax",
    preset: str = "quick",
    **changes: Any,
) -> Config:
    """The configuration of a setting and a preset.

    **Arguments:**

    - `experiment`: `"rough-bergomi"`.
    - `setting`: `"arborax"` (our reading) or `"paper"` (as published).
    - `preset`: `"smoke"`, `"quick"` or `"paper"`.
    - `changes`: fields of [`arborax.experiments.Config`][] to set otherwise.

    **Returns:**

    A `Config`.
    """
    if experiment != "rough-bergomi":
        raise ValueError(f"`experiment` must be 'rough-bergomi', got {experiment!r}.")
    return read_preset(Config, experiment, setting, preset, changes)

"""The configuration of the experiment `rough-bergomi`."""

import dataclasses
from typing import Any, Literal

from ..harness import TrainingConfig


@dataclasses.dataclass(frozen=True)
class Config(TrainingConfig):
    r"""One run of the experiment `rough-bergomi`, but for the seed.

    **Fields** beside those of `TrainingConfig`:

    - `data`: `"simulated"`, or `"sp500"`: daily returns of the S&P 500 in windows, see
        `read_windows`.
    - `hurst`, `paths`, `steps`, `data_seed`: of the simulated data set.
    - `horizons`: indices of times at which marginals are compared.
    - `noise`: Brownian channels of the driver.
    - `rates`: the driver also has Ornstein-Uhlenbeck processes of its first Brownian
        channel, one for each of these rates, of stationary variance one: a bank that
        can follow a rough process. Every model gets them.
    - `bound`: of the fields, where there is a bank, $a \tanh(u / a)$.
    - `lift`: depth of the log-signatures.
    - `calculus`, `interpolation`, `basepoint`: of B-NRDE.
    - `anchor`: let every path begin at zero, and measure it in standard deviations of
        the data.
    - `objective`: `"fourier-path"` (random Fourier features of the signature, of
        levels and of realised variances), `"fourier-local"` (these, and features of
        the realised variance of blocks of `block` steps and of its changes),
        `"fourier-branched"` (the same with trees and
        brackets), `"fourier"` (random Fourier signature features of levels only),
        `"signature"` (depth 5, as published), `"signature-robust"` (the same of scaled
        paths, with tensor normalisation and standardised) or `"branched"` (trees of
        weight 3 with brackets, as published).
    - `target`: `"all"` compares with mean features of `target_paths` training paths,
        `"batch"` with a batch of them.
    - `stride`: the objective looks at every `stride`-th sample.
    - `features`, `cylinders`: random functions for each level of the signature, and
        random functions of levels and variances at single times.
    - `validation_paths`: generated paths of the validation metric, at most as many as
        are held out.
    - `price_paths`: how many generated paths price options (at least the test paths).
    - `block`: steps per block of local realised variance.
    - `selection`: the validation metric: median KS of the `"marginals"`, or the mean KS
        of marginals and path functionals, `"path"`, and of local realised variances
        too, `"local"`.
    - `keep`: the weights that are kept: those of the `"best"` validation, or the
        `"last"` ones of a schedule that ends in small steps, unless the metric tells
        them from the truth; then the best ones.
    - `finetune_objective`, `finetune_learning_rate`, `finetune_iterations`: of the
        second stage of `bnrde-bk`.
    """

    data: Literal["simulated", "sp500"] = "simulated"
    hurst: float = 0.25
    paths: int = 32768
    steps: int = 512
    data_seed: int = 42
    horizons: tuple[int, ...] = (128, 256, 384, 512)
    noise: int = 2
    rates: tuple[float, ...] = ()
    bound: float = 1.0
    lift: int = 2
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
    block: int = 16
    batch: int = 256
    iterations: int = 360
    validations: int = 12
    validation_paths: int = 4096
    price_paths: int = 13108
    selection: Literal["path", "marginals", "local"] = "path"
    keep: Literal["best", "last"] = "best"
    finetune_objective: str = "fourier-branched"
    finetune_learning_rate: float = 1e-3
    finetune_iterations: int = 40


# Real data bring sizes of their own: windows of 128 days, blocks of four.
SP500: dict[str, Any] = dict(
    steps=128,
    horizons=(32, 64, 96, 128),
    window=1,
    block=4,
    stride=4,
    price_paths=4096,
    selection="local",
)

"""The configuration of the experiment `spd`."""

import dataclasses
from typing import Any, Literal

from ..harness import TrainingConfig


@dataclasses.dataclass(frozen=True)
class Config(TrainingConfig):
    """One run of the experiment `spd`, without the seed.

    **Fields**, beside those of `TrainingConfig`; `window` counts thinned points:

    - `data`: `"simulated"`, or real covariances: `"stocks"` (skfolio) or `"emg"`
        (geomstats), cut into windows that are whitened to start at the identity.
    - `reading`, `paths`, `steps`, `data_seed`: of the simulated diffusion.
    - `train`, `validation`: fractions of the simulated paths, in order; of real data by
        time with a gap, and the rest is the test set.
    - `test_paths`, `test_seed`: simulated test paths, drawn separately and used
        only for the final scores.
    - `thin`: drivers and outputs of models are at every `thin`-th point of the grid.
    - `horizons`, `early`: indices of the full grid at which eigenvalues are compared;
        `early` are those near the start, shown separately.
    - `noise`: Brownian channels of the baselines. B-NRDE and log-NCDE have one for each
        coordinate, as published.
    - `calculus`, `interpolation`, `basepoint`: of B-NRDE. `interpolation="joined"`:
        geodesics on the cone, lines elsewhere.
    - `field`: how the fields of B-NRDE read their point: `"entries"`, as published,
        or `"log-cholesky"`, see `LogCholeskyField`.
    - `amplitude`, `reach`: of that field: its bound, and the distance
        from the identity at which noise begins to fade; zero: it does not fade.
    - `start`: `"identity"` fixes the first point there; `"learned"` as published.
    - `head`: how baselines make a matrix: `"vech"` linear, as published, or `"log"`,
        through the exponential.
    - `objective`: `"fourier"` (bounded features of paths with left-point sums, see
        `PathFeatures`), `"fourier-branched"` (with trees and brackets), `"signature"`
        (as published) or `"branched"` (trees with brackets).
    - `coordinates`: of paths in the objective: `"log"`, the lower triangle of
        the logarithm (that is log-Euclidean, and the normal chart of the
        affine-invariant metric at the start), or `"vech"`, entries.
    - `signature_depth`, `branched_depth`: of the published objectives.
    - `target`: `"all"` compares with mean features of `target_paths` training paths,
        `"batch"` with a batch of them.
    - `stride`: the objective looks at every `stride`-th thinned point.
    - `features`, `scales`, `weights`: random functions for each level, their
        frequencies, and the weights of those of single times and of steps.
    - `mirrored`: train with pairs of drivers `W`, `-W`, which halves the noise of mean
        features; `batch` counts both.
    - `selection`: the validation metric: W1 at the horizons, `"mean"` or `"median"`.
    - `finetune_objective`, `finetune_learning_rate`, `finetune_iterations`: of the
        second stage of `bnrde-bk`.
    """

    data: Literal["simulated", "stocks", "emg"] = "simulated"
    reading: Literal["manifold", "ambient"] = "manifold"
    paths: int = 16384
    steps: int = 1024
    data_seed: int = 42
    train: float = 0.8
    validation: float = 0.2
    test_paths: int = 4096
    test_seed: int = 1042
    thin: int = 4
    horizons: tuple[int, ...] = (128, 256, 384, 512, 768, 1024)
    early: tuple[int, ...] = (16, 32, 64)
    window: int = 8
    noise: int = 6
    calculus: Literal["ito", "stratonovich"] = "ito"
    interpolation: Literal["taylor", "log-ode", "joined"] | None = None
    basepoint: bool = False
    field: Literal["entries", "log-cholesky"] = "log-cholesky"
    amplitude: float = 1.0
    reach: float = 0.0
    start: Literal["identity", "learned"] = "identity"
    head: Literal["vech", "log"] = "vech"
    objective: str = "fourier"
    coordinates: Literal["log", "vech"] = "log"
    signature_depth: int = 3
    branched_depth: int = 2
    target: Literal["all", "batch"] = "all"
    target_paths: int = 8192
    stride: int = 8
    features: int = 192
    scales: tuple[float, ...] = (0.3, 1.0, 2.0)
    weights: tuple[float, ...] = (1.0, 3.0)
    mirrored: bool = True
    selection: Literal["mean", "median"] = "mean"
    finetune_objective: str = "fourier-branched"
    finetune_learning_rate: float = 2e-3
    finetune_iterations: int = 30


# Real data have sizes of their own: 64 steps per path, all of them seen by the model,
# eight or sixteen windows. Real covariances move several times as much as the simulated
# ones over a path.
_REAL = dict(
    steps=64,
    thin=1,
    horizons=(8, 16, 32, 48, 64),
    early=(1, 2, 4),
    window=4,
    stride=4,
    train=0.7,
    validation=0.1,
    amplitude=4.0,
    reach=4.0,
)
REAL: dict[str, dict[str, Any]] = {
    "smoke": {**_REAL, "window": 8, "stride": 8},
    "quick": _REAL,
    "paper": _REAL,
}

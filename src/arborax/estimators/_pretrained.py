"""Small trained estimators that come with the package."""

import importlib.resources
from typing import Any

from .._inputs import as_choice
from ._saving import load_estimator


_PACKAGE = "arborax.estimators"


def pretrained_names() -> tuple[str, ...]:
    """The names that [`arborax.pretrained`][] knows."""
    folder = importlib.resources.files(_PACKAGE) / "trained_files"
    files = [file.name for file in folder.iterdir() if file.name.endswith(".abx")]
    return tuple(sorted(name.removesuffix(".abx") for name in files))


def pretrained(name: str) -> Any:
    """A small estimator that was trained on the data of one of our experiments.

    | name | estimator | trained on |
    |---|---|---|
    | `"rough-bergomi"` | [`arborax.estimators.PathGenerator`][] | log-prices of [`arborax.datasets.RoughBergomi`][], 512 steps, Hurst exponent 0.25 |
    | `"spd"` | [`arborax.estimators.PathGenerator`][] on `SPD(3)` | covariance matrices of [`arborax.datasets.SPDDiffusion`][], 128 steps |
    | `"so-rotation"` | [`arborax.estimators.Forecaster`][] on `SO(3)` | rotations of [`arborax.datasets.FreeRotation`][], nine samples of 0.1 s ahead |

    The attribute `about_` is a dictionary with the data, the command that made the file
    and the scores on test data, each beside its floor: what two samples of the true law
    score, or for forecasts the error of "no change". `model_` is the JAX model. For the
    numbers of the experiments themselves, whose models are larger, run `arborax run`.

    The generators are small, and far from their floors in places. Kolmogorov-Smirnov
    distances of that of log-prices are near 0.02, the floor, for levels and realised
    variance. It misses what is special to rough volatility: leverage 0.62, tails 0.25,
    autocorrelation of squares 0.10. That of covariances has 0.15 to 0.23 for levels and
    0.11 for realised variance, against 0.03.

    **Arguments:**

    - `name`: of the experiment.

    **Returns:**

    A fitted estimator; needs the extra `sklearn`.

    !!! example

        ```python
        generator = abx.pretrained("rough-bergomi")
        paths = generator.sample(1000, random_state=0)
        generator.about_["scores"]
        ```
    """  # noqa: E501
    as_choice("name", name, pretrained_names())
    folder = importlib.resources.files(_PACKAGE) / "trained_files"
    with importlib.resources.as_file(folder / f"{name}.abx") as file:
        return load_estimator(file)

"""Paths of covariances: simulated, or real ones cut into windows."""

import dataclasses
import os
from typing import Any

import numpy as np
from jaxtyping import Float

from arborax.datasets import (
    covariance_windows,
    dataset,
    emg_covariances,
    SPDDiffusion,
    stock_covariances,
)

from .config import Config


@dataclasses.dataclass(frozen=True)
class Parts:
    """Paths as lower triangles on the thinned grid, by split.

    - `known`: paths from which floors are drawn: all simulated ones, or the training
        windows.
    - `law`: the law on the thinned grid, or `None` for real data.
    """

    ts: Float[np.ndarray, " times"]
    train: Float[np.ndarray, "paths times k"]
    validation: Float[np.ndarray, "others times k"]
    test: Float[np.ndarray, "more times k"]
    known: Float[np.ndarray, "all times k"]
    law: SPDDiffusion | None


def load(config: Config, cache: str | os.PathLike | None = None) -> Parts:
    """The data of a run."""
    if config.data == "simulated":
        law = SPDDiffusion(steps=config.steps, reading=config.reading)
        data = dataset(law, config.paths, seed=config.data_seed, folder=cache)
        values = np.ascontiguousarray(data.values[:, :: config.thin])
        first = int(round(config.train * len(values), 6))
        second = int(round((config.train + config.validation) * len(values), 6))
        if config.test_seed == config.data_seed:
            raise ValueError("`test_seed` must differ from `data_seed`.")
        fresh = dataset(law, config.test_paths, seed=config.test_seed, folder=cache)
        return Parts(
            data.ts[:: config.thin],
            values[:first],
            values[first:second],
            np.ascontiguousarray(fresh.values[:, :: config.thin]),
            values,
            dataclasses.replace(law, steps=config.steps // config.thin),
        )
    source: Any = {"stocks": stock_covariances, "emg": emg_covariances}[config.data]
    parts = covariance_windows(
        source(), config.steps, train=config.train, validation=config.validation
    )
    ts = np.linspace(0, 1, config.steps + 1, dtype=np.float32)[:: config.thin]
    train, validation, test = (part[:, :: config.thin] for part in parts)
    return Parts(ts, train, validation, test, train, None)

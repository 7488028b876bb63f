"""Scores: laws of eigenvalues, and how far paths leave the cone."""

from typing import Any

import numpy as np
from jaxtyping import Float

from arborax.training import metrics

from ..generation import batch_mean, numbers
from .config import Config
from .coordinates import matrices


BATCH = 16  # of the published metric

Paths = Float[np.ndarray, "_ times k"]


def columns(config: Config) -> list[str]:
    """Names of the times at which eigenvalues are compared, early ones first."""
    return [f"t={h}" for h in (*config.early, *config.horizons)]


def places(config: Config) -> list[int]:
    """The same times as indices of the thinned grid."""
    times = (*config.early, *config.horizons)
    if odd := [t for t in times if t % config.thin or t > config.steps]:
        raise ValueError(
            f"horizon {odd[0]} is not one of the {config.steps} steps thinned by "
            f"{config.thin}."
        )
    return [t // config.thin for t in times]


def spectra(paths: Paths) -> Float[np.ndarray, "_ times n"]:
    """Sorted eigenvalues."""
    return np.linalg.eigvalsh(matrices(np.asarray(paths, np.float64)))


def wasserstein(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """W1 of sorted eigenvalues `(samples, times, n)`, clipped at 1e-12, mean over them:
    one number per time."""
    x, y = (np.maximum(v, 1e-12) for v in (x, y))
    return np.asarray(metrics.wasserstein1(x, y)).mean(axis=-1)


def by_batch(x: np.ndarray, y: np.ndarray, size: int = BATCH) -> np.ndarray:
    """The published metric: mean over consecutive batches."""
    return batch_mean(wasserstein, x, y, size)


def variation(paths: Paths, stride: int) -> Float[np.ndarray, " paths"]:
    """Realised quadratic variation of all entries, on every `stride`-th point."""
    coarse = np.asarray(paths[:, ::stride], np.float64)
    return (np.diff(coarse, axis=1) ** 2).sum(axis=(1, 2))


def cone(paths: Paths) -> dict[str, float]:
    """Departures from the cone: share of points and of paths with an eigenvalue that is
    not positive, and the least eigenvalue."""
    least = spectra(paths)[..., 0]
    off = ~(least > 0)
    return {
        "points_off": float(off.mean()),
        "paths_off": float(off.any(axis=1).mean()),
        "least_eigenvalue": float(least.min()),
    }


def score(generated: Paths, true: Paths, known: Paths, config: Config) -> dict:
    """All scores, as plain numbers.

    **Arguments:**

    - `generated`, `true`: generated paths and test paths on the thinned grid.
    - `known`: paths from which floors are drawn: all of the law, or, for real data,
        training windows.
    - `config`: times, window.

    **Returns:**

    A dictionary: `columns`; by column `w1`, `floor` (mean W1 of two samples of `known`,
    of the size of the test set or half of what there is), `floor_upper` (95 %
    quantile), `floor_here` (simulated data: mean W1 of samples of `known` of the size
    of the test set against this very one, which may be unusual), `identity` and
    `mean_path` (constant identity; deterministic path at the mean eigenvalues of
    `known`), `past` (`known` against test, for real data), and
    `batch_w1`, `batch_floor` with batches of 16; `variation`, a KS of realised
    variation on the grid of windows, with its floor; `cone`.
    """
    index = places(config)
    a, b, pool = (spectra(p[:, index]) for p in (generated, true, known))
    size = min(len(b), len(pool) // 2)
    floor = metrics.self_floor(wasserstein, pool, size=size, repeats=20)
    batches = min(len(b), len(pool)) // 2 // BATCH * BATCH
    batch_floor = metrics.self_floor(by_batch, pool, size=batches, repeats=2)
    still = np.ones_like(b[:1])
    middle = pool.mean(axis=0, keepdims=True)
    moves = [variation(p, config.window) for p in (generated, true, known)]
    move_floor = metrics.self_floor(metrics.ks, moves[2], size=size, repeats=20)
    out: dict[str, Any] = {
        "columns": columns(config),
        "w1": numbers(wasserstein(a, b)),
        "floor": numbers(floor.mean),
        "floor_upper": numbers(floor.upper),
        "identity": numbers(wasserstein(still, b)),
        "mean_path": numbers(wasserstein(middle, b)),
        "test_paths": len(b),
        "batch_w1": numbers(by_batch(a, b)),
        "batch_floor": numbers(batch_floor.mean),
        "batch_size": BATCH,
        "variation": float(np.asarray(metrics.ks(moves[0], moves[1]))),
        "variation_floor": float(move_floor.mean),
        "cone": cone(generated),
    }
    if config.data == "simulated":
        parts = [pool[i : i + size] for i in range(0, len(pool) - size + 1, size)]
        out["floor_here"] = numbers(np.mean([wasserstein(p, b) for p in parts], 0))
    else:
        out["past"] = numbers(wasserstein(pool, b))
    return out

"""Scores of a generator: marginals, path functionals, floors and references."""

from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float

from arborax.datasets import PathData
from arborax.kernels import RandomFourierSignature, two_sample_test
from arborax.training import metrics

from ..generation import batch_mean, numbers
from .config import Config
from .smiles import smile_errors


Paths = Float[np.ndarray, "_ times 1"]
FUNCTIONALS = ("realised variance", "bracket", "running maximum", "clustering")


def columns(config: Config) -> list[str]:
    """Names of what is compared, in order: marginals, then path functionals."""
    return [f"t={h}" for h in config.horizons] + list(FUNCTIONALS)


def summaries(
    paths: Paths,
    config: Config,
    brackets: Float[np.ndarray, "_ steps 1 1"] | None = None,
) -> Float[np.ndarray, "paths columns"]:
    """The numbers of each path whose laws are compared.

    Values at the horizons; realised variance, running maximum and lag-1
    autocorrelation of squared returns, on the grid of windows, which even a model whose
    paths are linear within windows can get right. The bracket is the sum of those
    given, or of all squared steps, which such a model does not get right.
    """
    x = np.asarray(paths[..., 0], np.float64)
    coarse = x[:, :: config.window]
    steps = np.diff(x, axis=1) ** 2 if brackets is None else brackets[..., 0, 0]
    return np.column_stack(
        [
            x[:, list(config.horizons)],
            metrics.realised_variance(coarse),
            steps.sum(axis=1, dtype=np.float64),
            metrics.running_maximum(coarse),
            metrics.squared_return_autocorrelation(coarse),
        ]
    )


def known_summaries(data: PathData, config: Config) -> np.ndarray:
    """Those of data, with the brackets of the simulator."""
    return summaries(data.values, config, data.brackets)


def gaussian_reference(paths: Paths, count: int, seed: int = 0) -> Paths:
    """Gaussian paths with independent increments and the mean and variance of the data
    at every time: what a model without any volatility of volatility could reach."""
    x = np.asarray(paths[..., 0], np.float64)
    steps = np.maximum(np.diff(x.var(axis=0)), 0.0)
    normal = np.random.default_rng(seed).standard_normal((count, steps.size))
    noise = np.cumsum(np.sqrt(steps) * normal, axis=1)
    noise = np.pad(noise, [(0, 0), (1, 0)])
    # Where the sample variance fell by chance, the sum of steps is a little too large.
    noise = noise * (x.std(axis=0) / np.maximum(noise.std(axis=0), 1e-300))
    return (x.mean(axis=0) + noise)[..., None]


def score(
    generated: Paths,
    true: PathData,
    known: PathData,
    config: Config,
    *,
    fresh: PathData,
    seed: int = 0,
) -> dict[str, Any]:
    """All scores, as plain numbers.

    **Arguments:**

    - `generated`: at least as many paths as there are test paths. Further ones only
        make option prices more accurate.
    - `true`: the test set.
    - `known`: further paths of the true law, from which floors are drawn: at least
        twice as many as there are test paths.
    - `config`: horizons, window.
    - `fresh`: further paths of the true law that nothing has seen, a few test sets.
        A single test set may be an unusual sample; the mean over several is less so.
    - `seed`: of the permutation test.

    **Returns:**

    A dictionary: `columns`; by column `ks`, `floor` (mean KS of two samples of the true
    law, of the size of the test set), `floor_upper` (95 % quantile), `floor_here` (mean
    KS of samples of the true law against this very test set), `gaussian`, `fresh_ks`
    (mean KS against the fresh test sets, of other generated paths where there are
    enough; its floor is `floor`) and `fresh_sets`, their number; `batch_ks`,
    `batch_floor`, `batch_size` (the published metric: mean over batches of at most
    1,024, marginals only); `p_value` of a permutation test of up to 1,000 against 1,000
    paths with a kernel that is not trained on; `smile`.
    """
    few = generated[: len(true)]
    a, b = summaries(few, config), known_summaries(true, config)
    pool = known_summaries(known, config)
    size = min(len(b), len(pool) // 2)
    floor = metrics.self_floor(metrics.ks, pool, size=size, repeats=20)
    starts = range(0, len(pool) - size + 1, size)
    here = [np.asarray(metrics.ks(pool[i : i + size], b)) for i in starts]
    reference = summaries(gaussian_reference(known.values, len(b)), config)
    batch = min(1024, len(b) // 2)
    count = len(config.horizons)
    batch_floor = metrics.self_floor(metrics.ks, pool, size=batch, repeats=20)
    return {
        "columns": columns(config),
        "ks": numbers(metrics.ks(a, b)),
        "floor": numbers(floor.mean),
        "floor_upper": numbers(floor.upper),
        "floor_here": numbers(np.mean(here, axis=0)),
        "gaussian": numbers(metrics.ks(reference, b)),
        "fresh_ks": numbers(fresh_ks(generated, fresh, len(b), config)),
        "fresh_sets": len(fresh) // len(b),
        "test_paths": len(b),
        "batch_ks": numbers(batch_mean(metrics.ks, a, b, batch)[:count]),
        "batch_floor": numbers(batch_floor.mean[:count]),
        "batch_size": batch,
        "p_value": permutation_p_value(few, true.values, config, seed),
        "smile": smile_errors(generated, true.values, known.values, config),
    }


def fresh_ks(
    generated: Paths, fresh: PathData, size: int, config: Config
) -> Float[np.ndarray, " columns"]:
    """Mean KS of test sets of `size` fresh paths and as many generated ones.

    Where fewer paths were generated than there are fresh ones they are used again.
    """
    known, sets = known_summaries(fresh, config), len(generated) // size
    made = summaries(generated[: sets * size], config)
    made = np.concatenate([made] * -(-len(known) // len(made)))
    return batch_mean(metrics.ks, made, known, size)


def permutation_p_value(generated: Paths, true: Paths, config: Config, seed: int):
    """A two-sample test with features of other frequencies, kind and grid."""
    stride, count = max(1, config.window // 4), min(1000, len(true), len(generated))
    x, y = (jnp.asarray(p[:count, ::stride], jnp.float32) for p in (generated, true))
    features = RandomFourierSignature(
        1,
        key=jr.PRNGKey(12345),
        kind="geometric",
        levels=3,
        features=64,
        scales=(0.7, 2.0, 5.0),
        dtype=np.dtype(np.float32),
    ).fit(y)
    result = two_sample_test(x, y, features, key=jr.PRNGKey(seed), permutations=500)
    return float(result.p_value)

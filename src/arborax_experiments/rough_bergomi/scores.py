"""Scores of a generator: marginals, path functionals, floors and references."""

import functools as ft
from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from arborax.datasets import PathData
from arborax.kernels import RandomFourierSignature, two_sample_test
from arborax.training import metrics

from ..generation import batch_mean, numbers
from .config import Config
from .smiles import left_wing, smile_errors


Paths = Float[np.ndarray, "_ times 1"]
FUNCTIONALS = ("realised variance", "bracket", "running maximum", "clustering")
LOCAL = "local realised variance"
LAGS = (1, 4, 16)  # blocks between two local realised variances


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
    autocorrelation of squared returns, on the grid of blocks, which even a model whose
    paths are linear within such windows can get right. The bracket is the sum of those
    given, or of all squared steps, which such a model does not get right.
    """
    x = np.asarray(paths[..., 0], np.float64)
    coarse = x[:, :: config.block]
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


def local_logs(paths: Paths, config: Config) -> Float[np.ndarray, "paths blocks"]:
    """Logarithms of realised variances, all steps, of blocks of `config.block`."""
    steps = np.diff(np.asarray(paths[..., 0], np.float64), axis=1) ** 2
    blocks = steps.reshape(len(steps), -1, config.block).sum(axis=2)
    return np.log(np.maximum(blocks, 1e-12))


def structure(logs: Float[np.ndarray, "paths blocks"]) -> list[float]:
    """Mean squared changes of local logarithms at `LAGS`: how rough volatility is."""
    lags = [lag for lag in LAGS if lag < logs.shape[1]]
    return [float(np.mean((logs[:, k:] - logs[:, :-k]) ** 2)) for k in lags]


def all_summaries(paths: Paths, config: Config, brackets: Any = None) -> np.ndarray:
    """`summaries`, and the local logarithms of the blocks that end at the horizons."""
    ends = np.array(config.horizons) // config.block - 1
    logs = local_logs(paths, config)[:, ends]
    return np.column_stack([summaries(paths, config, brackets), logs])


def column_ks(x: np.ndarray, y: np.ndarray, config: Config) -> np.ndarray:
    """KS by column of `all_summaries`; local realised variances are one column, the
    mean over the horizons."""
    found, count = np.asarray(metrics.ks(x, y)), len(config.horizons)
    return np.append(found[:-count], found[-count:].mean())


def large_scores(
    generated: Paths, fresh: PathData, known: PathData, config: Config, seed: int
) -> dict[str, Any]:
    """Scores of as many generated paths as there are fresh ones, with floors of that
    size: `columns`, `ks`, `floor`, `floor_upper`; `structure`, a model's mean squared
    changes of local logarithms over those of the fresh paths, and `structure_floor`,
    the same of known paths; for real data `past`, the KS of all known paths; `p_value`
    of a permutation test with all these paths; `left_wing`."""
    size = min(len(generated), len(fresh), len(known) // 2)
    ours, true = generated[:size], fresh[:size]
    pool = all_summaries(known.values, config, known.brackets)
    distance = ft.partial(column_ks, config=config)
    floor = metrics.self_floor(distance, pool, size=size, repeats=20)
    both = (
        all_summaries(ours, config),
        all_summaries(true.values, config, true.brackets),
    )
    # Windows of one series overlap: no second sample, but the past is a reference.
    past = {} if known.brackets is not None else {"past": distance(pool, both[1])}
    parts = (ours, known.values if past else known.values[:size], true.values)
    mine, other, truth = (np.array(structure(local_logs(x, config))) for x in parts)
    return {
        "paths": size,
        "columns": [*columns(config), LOCAL],
        "ks": numbers(distance(*both)),
        "floor": numbers(floor.mean),
        "floor_upper": numbers(floor.upper),
        "structure": numbers(mine / truth),
        "structure_floor": numbers(other / truth),
        "p_value": large_p_value(ours, true.values, config, seed),
        "left_wing": left_wing(ours, known.values, config),
        **{name: numbers(values) for name, values in past.items()},
    }


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
    paths with a kernel that is not trained on; `smile`; `large`, see `large_scores`.
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
        "large": large_scores(generated, fresh, known, config, seed),
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


def unseen_features(fitted: Array) -> RandomFourierSignature:
    """Features of other frequencies and kind than those trained on."""
    return RandomFourierSignature(
        1,
        key=jr.PRNGKey(12345),
        kind="geometric",
        levels=3,
        features=64,
        scales=(0.7, 2.0, 5.0),
        dtype=np.dtype(np.float32),
    ).fit(fitted)


def permutation_p_value(generated: Paths, true: Paths, config: Config, seed: int):
    """A two-sample test with features of other frequencies, kind and grid."""
    stride, count = max(1, config.block // 4), min(1000, len(true), len(generated))
    x, y = (jnp.asarray(p[:count, ::stride], jnp.float32) for p in (generated, true))
    features = unseen_features(y)
    result = two_sample_test(x, y, features, key=jr.PRNGKey(seed), permutations=500)
    return float(result.p_value)


def large_p_value(
    generated: Paths, true: Paths, config: Config, seed: int, permutations: int = 500
) -> float:
    """A permutation test of all paths, with `unseen_features` of every fourth sample
    and cosines of local logarithms and their changes, fitted to both samples together.
    Memory and cost are linear in the number of paths."""
    pooled, count = np.concatenate([generated, true]), len(generated)
    rows = np.random.default_rng(seed).permutation(len(pooled))[:2048]
    thin = jnp.asarray(pooled[:, ::4], jnp.float32)
    signature = unseen_features(thin[rows])
    blocks = range(0, len(pooled), 1024)
    found = np.concatenate([signature.features(thin[i : i + 1024]) for i in blocks])
    logs = local_logs(pooled, config)
    logs = np.column_stack([logs, logs[:, 1:] - logs[:, :-1]])
    logs = (logs - logs[rows].mean(axis=0)) / logs[rows].std(axis=0)
    rng = np.random.default_rng(54321)
    places, phases = rng.integers(0, logs.shape[1], 96), rng.uniform(0, 2 * np.pi, 96)
    local = np.cos(1.5 * rng.standard_normal(96) * logs[:, places] + phases)
    # Each of the two groups has total variance one.
    parts = [x / np.sqrt(x.var(axis=0).sum()) for x in (found, local)]
    features = np.column_stack([x - x.mean(axis=0) for x in parts]).astype(np.float32)
    rng = np.random.default_rng((seed, 1))
    first = np.arange(len(pooled)) < count
    labels = np.stack([first, *(rng.permutation(first) for _ in range(permutations))])
    # Features are centred: the sum of the first sample fixes that of the second.
    gaps = np.sum((labels.astype(np.float32) @ features) ** 2, axis=1)
    return float(np.mean(gaps >= gaps[0] * (1 - 1e-6)))

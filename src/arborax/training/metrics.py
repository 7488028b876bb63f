"""Metrics of generated paths and of rotations, with the floors of finite samples.

All functions take NumPy or JAX arrays and return the same kind; with JAX arrays they
work under `jit` and `vmap`. Samples (paths) run along the first axis, times along the
second. A metric of two samples is never zero, even for a perfect model: report it
together with `self_floor`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._inputs import as_count, as_real
from .._values import shown


Samples = Float[Array | np.ndarray, "samples *shape"]
Others = Float[Array | np.ndarray, "others *shape"]
Result = Float[Array | np.ndarray | np.generic, "*shape"]
Matrices = Float[Array | np.ndarray, "*batch n n"]
Batched = Float[Array | np.ndarray | np.generic, "*batch"]
Paths = Float[Array | np.ndarray, "*batch times"]


def _namespace(*arrays: Any) -> Any:
    return jnp if any(isinstance(x, jax.Array) for x in arrays) else np


def _real(name: str, value: Any, axes: int = 1, empty: bool = False) -> Any:
    """Real floating numbers with at least `axes` axes, in NumPy or JAX as they came."""
    array = as_real(name, value)
    if array.ndim < axes or (0 in array.shape and not empty):
        raise ValueError(
            f"`{name}` must have at least {axes} axes, none of them empty, got shape "
            f"{array.shape}."
        )
    return array


def _distribution_gap(x: Any, y: Any) -> tuple[Any, Any]:
    """Sorted pooled values and `F_x - F_y` just after each of them, along axis 0."""
    x, y = _real("x", x, empty=True), _real("y", y, empty=True)
    xp = _namespace(x, y)
    n, m = x.shape[0], y.shape[0]
    if x.shape[1:] != y.shape[1:] or 0 in (*x.shape, *y.shape):
        raise ValueError(
            "two samples need equal shapes but for their sizes, which must not be 0; "
            f"got {x.shape} and {y.shape}."
        )
    pooled = xp.concatenate([xp.asarray(x), xp.asarray(y)], axis=0)
    order = xp.argsort(pooled, axis=0)
    values = xp.take_along_axis(pooled, order, axis=0)
    # Counts, not sums of weights: exact for any size and precision.
    from_x = xp.cumsum(order < n, axis=0)
    from_y = xp.cumsum(order >= n, axis=0)
    return values, from_x.astype(values.dtype) / n - from_y.astype(values.dtype) / m


def ks(x: Samples, y: Others) -> Result:
    """Two-sample Kolmogorov-Smirnov statistic `sup |F_x - F_y|`, along the first axis.

    **Arguments:**

    - `x`, `y`: samples of any two sizes; further axes are compared one by one.

    **Returns:**

    An array of the shape of the further axes, NaN where a sample has NaN. Ties are
    handled exactly. Cost: one sort.
    """
    xp = _namespace(x, y)
    values, gap = _distribution_gap(x, y)
    last_of_ties = xp.concatenate(
        [values[1:] != values[:-1], xp.ones_like(values[:1], dtype=bool)], axis=0
    )
    largest = xp.max(xp.where(last_of_ties, xp.abs(gap), xp.zeros_like(gap)), axis=0)
    # Sorting puts NaN last, where it would count as the largest number.
    return xp.where(xp.isnan(values[-1]), xp.full_like(largest, np.nan), largest)


def wasserstein1(x: Samples, y: Others) -> Result:
    """One-dimensional Wasserstein distance `int |F_x - F_y|`, along the first axis.

    Arguments and result as `ks`.
    """
    xp = _namespace(x, y)
    values, gap = _distribution_gap(x, y)
    return xp.sum(xp.abs(gap[:-1]) * xp.diff(values, axis=0), axis=0)


def window_returns(
    paths: Paths, window: int = 1
) -> Float[Array | np.ndarray, "*batch windows"]:
    """Increments over whole windows of `window` steps, along the last axis.

    A last partial window is left out.
    """
    paths, window = _real("paths", paths), as_count("window", window)
    if not 1 <= window < paths.shape[-1]:
        raise ValueError(
            f"window must be between 1 and {paths.shape[-1] - 1} steps, got {window}."
        )
    return _namespace(paths).diff(paths[..., ::window], axis=-1)


def realised_variance(paths: Paths, window: int = 1) -> Batched:
    """Sum of squared window returns of each path, along the last axis.

    **Arguments:**

    - `paths`: for example log-prices.
    - `window`: steps per window. A model whose paths are linear within windows must be
        compared on its window grid: the fine grid shows a fraction `1 / window`.
    """
    xp = _namespace(paths)
    return xp.sum(window_returns(paths, window) ** 2, axis=-1)


def running_maximum(paths: Paths) -> Batched:
    """Largest value of each path above its start, along the last axis."""
    paths = _real("paths", paths)
    xp = _namespace(paths)
    return xp.max(paths, axis=-1) - paths[..., 0]


def squared_return_autocorrelation(
    paths: Paths, window: int = 1, lag: int = 1
) -> Batched:
    """Autocorrelation of the squared window returns of each path (volatility clusters).

    `sum_i c_i c_{i+lag} / sum_i c_i^2` with `c` the squared returns less their mean
    over the path; zero for a path whose squared returns are all equal.
    """
    squares = window_returns(paths, window) ** 2
    centred = squares - _namespace(paths).mean(squares, axis=-1, keepdims=True)
    return _lagged_correlation(centred, centred, lag)


def leverage(paths: Paths, window: int = 1, lag: int = 1) -> Batched:
    """Correlation of window returns with squared returns `lag` windows later, of each
    path: negative where falls raise the volatility that follows.

    `sum_i r_i c_{i+lag} / sqrt(sum_i r_i^2 sum_i c_i^2)` with `r` the returns and `c`
    the squared returns, both less their means over the path.
    """
    xp, returns = _namespace(paths), window_returns(paths, window)
    parts = returns, returns**2
    moves, squares = (x - xp.mean(x, axis=-1, keepdims=True) for x in parts)
    return _lagged_correlation(moves, squares, lag)


def _lagged_correlation(a: Any, b: Any, lag: int) -> Any:
    """`sum_i a_i b_{i+lag} / sqrt(sum a^2 sum b^2)`, and 0 where one of them is 0."""
    lag = as_count("lag", lag)
    if not 1 <= lag < a.shape[-1]:
        raise ValueError(
            f"lag must be between 1 and {a.shape[-1] - 1} windows, got {lag}."
        )
    xp = _namespace(a)
    above = xp.sum(a[..., :-lag] * b[..., lag:], axis=-1)
    below = xp.sqrt(xp.sum(a**2, axis=-1) * xp.sum(b**2, axis=-1))
    flat = below == 0
    ratio = above / xp.where(flat, xp.ones_like(below), below)
    return xp.where(flat, xp.zeros_like(below), ratio)


def excess_kurtosis(paths: Paths, window: int = 1) -> Batched:
    """Fourth central moment of the window returns of each path over the squared second
    one, less 3: above zero for heavy tails. Zero for a path without variance."""
    xp, returns = _namespace(paths), window_returns(paths, window)
    centred = returns - xp.mean(returns, axis=-1, keepdims=True)
    second, fourth = (xp.mean(centred**k, axis=-1) for k in (2, 4))
    flat = second == 0
    ratio = fourth / xp.where(flat, xp.ones_like(second), second) ** 2 - 3
    return xp.where(flat, xp.zeros_like(second), ratio)


def path_statistics(
    paths: Float[Array | np.ndarray, "paths times channels"], window: int = 1
) -> dict[str, Any]:
    """Statistics of each path and channel whose laws are compared, `(paths, channels)`.

    The level at a half and at the end of the time and the largest level, less the
    start; realised variance, tails (excess kurtosis of returns), autocorrelation of
    squared returns and leverage, on windows of `window` steps.
    """
    paths = _real("paths", paths, 3)
    xp = _namespace(paths)
    x = xp.swapaxes(paths, -1, -2)
    return {
        "middle": x[..., x.shape[-1] // 2] - x[..., 0],
        "end": x[..., -1] - x[..., 0],
        "maximum": running_maximum(x),
        "realised variance": realised_variance(x, window),
        "tails": excess_kurtosis(x, window),
        "autocorrelation of squares": squared_return_autocorrelation(x, window),
        "leverage": leverage(x, window),
    }


def compare_paths(
    generated: Float[Array | np.ndarray, "paths times channels"],
    true: Float[Array | np.ndarray, "others times channels"],
    window: int = 1,
    seed: int = 0,
) -> dict[str, dict[str, np.ndarray]]:
    """Kolmogorov-Smirnov distances of the statistics of two samples of paths.

    **Arguments:**

    - `generated`, `true`: paths on one grid.
    - `window`: steps per window, as in `path_statistics`.
    - `seed`: of the random halves of `true` from which the floor is taken.

    **Returns:**

    For each statistic `ks` and `floor`, by channel: the floor is the mean distance of
    two halves of `true`, scaled to the two sample sizes.
    """
    found, known = (path_statistics(np.asarray(x), window) for x in (generated, true))
    n, m = len(generated), len(true)
    half = m // 2
    # A distance of samples of sizes n and m is of size sqrt(1 / n + 1 / m).
    shrink = ((1 / n + 1 / m) / (2 / half)) ** 0.5
    return {
        name: {
            "ks": np.asarray(ks(found[name], values)),
            "floor": self_floor(ks, values, seed=seed).mean * shrink,
        }
        for name, values in known.items()
    }


class Floor(NamedTuple):
    """The distribution of a statistic between two samples of the same law."""

    mean: np.ndarray
    std: np.ndarray
    upper: np.ndarray
    values: np.ndarray


def self_floor(
    statistic: Callable[[Any, Any], Any],
    samples: Float[Array | np.ndarray, "samples ..."],
    *,
    size: int | None = None,
    repeats: int = 20,
    seed: int = 0,
) -> Floor:
    """The score of a perfect model: the statistic between disjoint random halves.

    **Arguments:**

    - `statistic`: a function of two samples, for example `ks`.
    - `samples`: draws of the true law along the first axis.
    - `size`: size of each of the two samples, at most half of all (the default). The
        floor falls as `size ** -1/2`: take the size at which models are compared.
    - `repeats`, `seed`: number of random splits, and the NumPy seed.

    **Returns:**

    A `Floor`: mean, standard deviation and 95 % quantile over the splits, and all
    values.
    """
    if not callable(statistic):
        raise TypeError(
            "`statistic` must be a function of two samples, such as `ks`, got "
            f"{shown(statistic)}."
        )
    samples, repeats = _real("samples", samples), as_count("repeats", repeats)
    total = samples.shape[0]
    half = total // 2 if size is None else as_count("size", size)
    if not 1 <= half <= total // 2:
        raise ValueError(
            f"size must be between 1 and half of the {total} samples, got {half}."
        )
    rng = np.random.default_rng(as_count("seed", seed, 0))
    orders = [rng.permutation(total) for _ in range(repeats)]
    stacked = np.stack(
        [
            np.asarray(statistic(samples[k[:half]], samples[k[half : 2 * half]]))
            for k in orders
        ]
    )
    return Floor(
        stacked.mean(axis=0),
        stacked.std(axis=0, ddof=1 if repeats > 1 else 0),
        np.quantile(stacked, 0.95, axis=0),
        stacked,
    )


def frobenius(a: Matrices, b: Matrices) -> Batched:
    """Frobenius norm of `a - b` over the last two axes; its gradient at 0 is 0."""
    a, b = _real("a", a, 2), _real("b", b, 2)
    xp = _namespace(a, b)
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise ValueError(f"matrices do not fit: {a.shape} and {b.shape}.") from None
    squared = xp.sum((a - b) ** 2, axis=(-2, -1))
    zero = squared == 0
    root = xp.sqrt(xp.where(zero, xp.ones_like(squared), squared))
    return xp.where(zero, xp.zeros_like(squared), root)


def rotation_error(
    a: Float[Array | np.ndarray, "*batch 3 3"],
    b: Float[Array | np.ndarray, "*batch 3 3"],
) -> Batched:
    """Geodesic error of rotations (RGE), in degrees:
    `2 arcsin(|a - b|_F / (2 sqrt 2))`.

    The angle of `a^T b`. The ratio is clipped to `1 - 1e-5` (179.5 degrees), where the
    arcsine loses its derivative.
    """
    xp = _namespace(a, b)
    ratio = xp.divide(frobenius(a, b), 2 * 2**0.5)
    ratio = xp.minimum(ratio, xp.full_like(ratio, 1 - 1e-5))
    return 2 * xp.arcsin(ratio) * (180 / np.pi)

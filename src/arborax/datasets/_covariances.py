"""Covariances of real recordings: stocks and muscles, cut into windows by time."""

import dataclasses
import itertools as it
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from .._inputs import as_count, as_numbers
from .._values import shown
from ._files import existing_file, read_csv, shipped
from ._law import check_fractions


@dataclasses.dataclass(frozen=True)
class CovarianceSeries:
    """A series of covariance matrices.

    **Fields:**

    - `values`: lower triangles by rows, `(times, n (n + 1) / 2)`.
    - `overlap`: two matrices fewer places apart than this share observations.
    - `breaks`: places at which a new recording begins; no window crosses them.
    """

    values: Float[np.ndarray, "times k"]
    overlap: int
    breaks: tuple[int, ...] = ()


def ledoit_wolf(x: Float[np.ndarray, "*batch samples n"]) -> np.ndarray:
    r"""Covariances shrunk towards a multiple of the identity,
    $(1 - \rho) S + \rho \frac{\mathrm{tr} S}{n} I$ with the asymptotically best $\rho$.

    **Arguments:**

    - `x`: observations, any batch; their mean is subtracted.

    **Returns:**

    Positive definite matrices `(*batch, n, n)` (if not all observations are equal).

    ??? cite "Reference"

        O. Ledoit, M. Wolf, A well-conditioned estimator for large-dimensional
        covariance matrices, Journal of Multivariate Analysis 88 (2004), lemma 3.3.
    """
    x = _observations(x)
    x = x if x.dtype.itemsize >= 4 and x.dtype.kind == "f" else x.astype(float)
    samples, n = x.shape[-2:]
    x = x - x.mean(axis=-2, keepdims=True)
    s = np.swapaxes(x, -1, -2) @ x / samples
    mean = np.trace(s, axis1=-2, axis2=-1)[..., None, None] / n
    target = mean * np.eye(n)
    distance = ((s - target) ** 2).sum(axis=(-2, -1))
    # |x x^T - S|^2 summed over samples, without forming the outer products.
    fourth = ((x**2).sum(axis=-1) ** 2).sum(axis=-1)
    error = (fourth / samples - (s**2).sum(axis=(-2, -1))) / samples
    rate = np.clip(error / np.where(distance > 0, distance, 1), 0, 1)
    rate = np.where(distance > 0, rate, 1)[..., None, None]
    return (1 - rate) * s + rate * target


def _observations(x: Any) -> np.ndarray:
    x = np.asarray(as_numbers("x", x))
    if x.dtype.kind not in "fiu":
        raise TypeError(f"`x` must hold real numbers, got dtype {x.dtype}.")
    if x.ndim < 2 or 0 in x.shape:
        raise ValueError(
            f"`x` must be observations (..., samples, n), got shape {x.shape}: give a "
            "single channel as `x[:, None]`."
        )
    bad = ~np.isfinite(x).all(axis=-1)
    if bad.any():
        raise ValueError(
            f"{bad.sum()} of {bad.size} observations have NaN or infinity, the first "
            f"at {np.flatnonzero(bad)[0]}. Fill them or leave them out."
        )
    return x


def rolling_covariances(
    x: Float[np.ndarray, "times n"], window: int, hop: int = 1
) -> Float[np.ndarray, "some k"]:
    """Ledoit-Wolf covariances of the last `window` observations, at every `hop`-th
    observation, as lower triangles."""
    x = _observations(x)
    window, hop = as_count("window", window, 2), as_count("hop", hop)
    if x.ndim != 2:
        raise ValueError(f"`x` must have shape (times, n), got {x.shape}.")
    if window > len(x):
        raise ValueError(
            f"`window` must be between 2 and the {len(x)} observations, got {window}."
        )
    views = np.lib.stride_tricks.sliding_window_view(x, window, axis=0)[::hop]
    matrices = ledoit_wolf(np.swapaxes(views, 1, 2))
    return matrices[:, *np.tril_indices(x.shape[1])]


def stock_covariances(
    names: tuple[str, ...] = ("AAPL", "JPM", "XOM"),
    window: int = 20,
    file: str | pathlib.Path | None = None,
) -> list[CovarianceSeries]:
    """Covariances of daily log-returns of stocks, in percent, over `window` days.

    **Arguments:**

    - `names`: of the 20 stocks in the data set of skfolio, daily from 1990 to 2022.
    - `window`: days in each covariance; one for each day.
    - `file`: another file of that format: dates, then one column of prices per stock.

    **Returns:**

    One series, in time order.
    """
    if file is None:
        file = shipped("skfolio", "datasets/data/sp500_dataset.csv.gz")
    file = existing_file(file)
    header, *rows = read_csv(file) or [[]]
    if missing := [name for name in names if name not in header[1:]]:
        raise ValueError(
            f"no stock {shown(missing[0])}; there are {shown(header[1:])}."
        )
    columns = [header.index(name) for name in names]
    prices = _columns(file, rows, columns)
    _refuse_rows(file, prices <= 0, "prices must be positive")
    returns = 100 * np.diff(np.log(prices), axis=0)
    return [CovarianceSeries(rolling_covariances(returns, window), window)]


def emg_covariances(
    channels: tuple[int, ...] = (0, 3, 6),
    window: int = 50,
    file: str | pathlib.Path | None = None,
) -> list[CovarianceSeries]:
    """Covariances of an eight-channel armband during gestures (data of geomstats).

    Consecutive stretches of `window` samples, which do not overlap; a recording ends
    where its clock jumps back.

    **Arguments:**

    - `channels`: which of the eight.
    - `window`: samples in each covariance, about 4 ms apart.
    - `file`: another file of that format: time, eight channels, label, experiment.

    **Returns:**

    One series for each experiment (subject and session), in time order.
    """
    if file is None:
        file = shipped("geomstats", "datasets/data/emg/emg.csv")
    file = existing_file(file)
    _, *rows = read_csv(file) or [[]]
    clock = _columns(file, rows, [0])[:, 0]
    signal = _columns(file, rows, [1 + c for c in channels])
    name = np.array([row[-1] for row in rows])
    new = np.flatnonzero((np.diff(clock) < -1000) | (name[1:] != name[:-1])) + 1
    out: dict[str, list[np.ndarray]] = {}
    for first, last in zip([0, *new], [*new, len(rows)]):
        if last - first >= window:
            part = rolling_covariances(signal[first:last], window, window)
            out.setdefault(str(name[first]), []).append(part)
    series = []
    for parts in out.values():
        breaks = tuple(it.accumulate(len(part) for part in parts[:-1]))
        series.append(CovarianceSeries(np.concatenate(parts), 1, breaks))
    return series


def covariance_windows(
    series: Sequence[CovarianceSeries],
    steps: int,
    *,
    train: float = 0.7,
    validation: float = 0.1,
    hop: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Windows of covariance paths, split by time and whitened by their first point.

    Each series is cut in three by time. No two parts share an observation: windows lie
    in one part with all their points, and a part begins `overlap` places after the one
    before has ended. In a window $X_t$ becomes $L^{-1} X_t L^{-\top}$ with
    $X_0 = L L^\top$, so that all paths start at the identity: the affine-invariant
    metric does not see the difference.

    **Arguments:**

    - `series`: from `stock_covariances` or `emg_covariances`.
    - `steps`: of each window, which has one point more.
    - `train`, `validation`: fractions of time; the rest is the test part.
    - `hop`: places between starts of windows; default a sixteenth of a window.

    **Returns:**

    Training, validation and test windows as lower triangles, `(windows, steps + 1, k)`,
    single precision.
    """
    check_fractions(train, validation)
    steps = as_count("steps", steps)
    if not isinstance(series, list | tuple) or not all(
        isinstance(one, CovarianceSeries) for one in series
    ):
        raise TypeError(
            "`series` must be a list of CovarianceSeries, as `stock_covariances` and "
            f"`emg_covariances` give it, got {shown(series)}."
        )
    hop = max(1, steps // 16) if hop is None else as_count("hop", hop)
    if not series:
        raise ValueError("`series` must hold at least one series.")
    parts: tuple[list[np.ndarray], ...] = ([], [], [])
    for one in series:
        total = len(one.values)
        cuts = [0, int(train * total), int((train + validation) * total), total]
        breaks = np.asarray([*one.breaks, total])
        for k, part in enumerate(parts):
            first = cuts[k] + (one.overlap if k else 0)
            starts = np.arange(first, cuts[k + 1] - steps, hop)
            # The next break must not come before the window has ended.
            ends = breaks[np.searchsorted(breaks, starts, side="right")]
            starts = starts[starts + steps < ends]
            part.append(one.values[starts[:, None] + np.arange(steps + 1)[None]])
    joined = [np.concatenate(part) for part in parts]
    names = ("training", "validation", "test")
    if empty := [name for name, part in zip(names, joined) if not len(part)]:
        raise ValueError(
            f"no {empty[0]} window of {steps} steps fits: use shorter windows or other "
            "fractions."
        )
    first, second, third = (_whitened(part).astype(np.float32) for part in joined)
    return first, second, third


def _columns(
    file: pathlib.Path, rows: list[list[str]], columns: list[int]
) -> np.ndarray:
    """Columns of the rows below a line of column names as finite numbers."""
    out = np.empty((len(rows), len(columns)))
    for k, row in enumerate(rows):
        try:
            out[k] = [float(row[c]) for c in columns]
        except (ValueError, IndexError) as error:
            raise ValueError(
                f"{file.name}, line {k + 2}: {shown(str(error))}."
            ) from None
    if not len(rows):
        raise ValueError(f"{file.name} holds no rows below its column names.")
    _refuse_rows(file, ~np.isfinite(out), "NaN or infinity")
    return out


def _refuse_rows(file: pathlib.Path, bad: np.ndarray, what: str) -> None:
    if bad.any():
        row = int(np.flatnonzero(bad.any(axis=1))[0])
        raise ValueError(f"{file.name}, line {row + 2}: {what}.")


def _whitened(values: np.ndarray) -> np.ndarray:
    n = round((2 * values.shape[-1] + 0.25) ** 0.5 - 0.5)
    rows, columns = np.tril_indices(n)
    place = np.zeros((n, n), int)
    place[rows, columns] = place[columns, rows] = np.arange(rows.size)
    x = values[..., place]
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(x[:, :1]))
    except np.linalg.LinAlgError:
        raise ValueError(
            "a window starts with a matrix that is not positive definite: are some "
            "channels constant?"
        ) from None
    white = inverse @ x @ np.swapaxes(inverse, -1, -2)
    return white[..., rows, columns]

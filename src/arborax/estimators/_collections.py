"""Collections of series, as all estimators take them."""

import dataclasses
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._inputs import as_numbers
from .._values import rounded, shown
from ..paths import SampledPath
from ._blocks import observed


def as_paths(X: Any, *, channels_last: bool = True) -> SampledPath:
    """A batch of paths from any collection of series.

    **Arguments:**

    - `X`: one of

        | what | shape |
        |---|---|
        | array | `(n, times, channels)`, or `(n, times)` for one channel |
        | list of arrays or data frames, of unequal length | each `(times, channels)` |
        | [`arborax.SampledPath`][] | batch shape `(n,)` |
        | pandas frame with a series in each cell (sktime, `nested_univ`) | one row per sample, one column per channel |
        | pandas frame with an index of pairs (sktime, `pd-multiindex`) | one row per sample and time |

        NaN marks a missing value.
    - `channels_last`: `False` for arrays and lists with channels first, as aeon and
        sktime have them: `(n, channels, times)`.

    **Returns:**

    A [`arborax.SampledPath`][] with batch shape `(n,)`.
    """  # noqa: E501
    found = _series(X, channels_last)
    if not isinstance(found, SampledPath):
        found = SampledPath.from_list(*found)
    return _with_values(found)


def centred_paths(
    X: Any, channels_last: bool, origin: np.ndarray | None
) -> tuple[SampledPath, np.ndarray]:
    """A batch of paths less `origin`, which is subtracted in double precision.

    **Arguments:**

    - `X`, `channels_last`: as for `as_paths`.
    - `origin`: a number for each channel, or `None`: the first value of channels that
        float32 would round, where that is what JAX stores, otherwise zero.

    **Returns:**

    The paths, and the origin.
    """
    found = _series(X, channels_last)
    if isinstance(found, SampledPath):
        if origin is None:
            origin = np.zeros(found.dim)
        if np.any(origin) and len(origin) == found.dim:
            xs = (np.asarray(found.xs, np.float64) - origin).astype(found.xs.dtype)
            found = dataclasses.replace(found, xs=xs, check=False)
        return _with_values(found), origin
    series, clocks = found
    if origin is None:
        origin = _origin(series)
    if np.any(origin):
        series = [
            np.asarray(part, np.float64).reshape(len(part), -1) - origin
            if np.size(part) == len(part) * len(origin)
            else part  # refused further on
            for part in series
        ]
    return _with_values(SampledPath.from_list(series, clocks)), origin


def _origin(series: list[Any]) -> np.ndarray:
    """The first observed value of channels that would be rounded, otherwise zero."""
    parts = [np.asarray(part) for part in series]
    parts = [part.reshape(len(part), -1) for part in parts if part.ndim and part.size]
    if not parts or len({part.shape[1] for part in parts}) > 1:
        return np.zeros(1)  # refused further on
    rows = np.concatenate(parts)
    if rows.dtype.kind not in "fiu":
        return np.zeros(rows.shape[1])
    first = rows[np.argmax(~np.isnan(rows), axis=0), np.arange(rows.shape[1])]
    return np.where(rounded(rows), first, 0.0)


def _series(X: Any, channels_last: bool) -> Any:
    """Paths as they are, or a list of arrays `(times, channels)` and their times."""
    if isinstance(X, SampledPath):
        if len(X.batch_shape) != 1 or not X.batch_shape[0]:
            raise ValueError(
                "an estimator takes a batch of paths, with one batch axis, got batch "
                f"shape {X.batch_shape}. For one path use `xs[None]`."
            )
        return X
    if hasattr(X, "columns"):
        return _from_frame(X)
    first = X[0] if isinstance(X, list | tuple) and len(X) else None
    if hasattr(first, "__len__") and not isinstance(first, str | bytes):
        series: list[Any] = [
            part.to_numpy() if hasattr(part, "to_numpy") else part for part in X
        ]
        if not channels_last:
            series = [np.asarray(as_numbers("X", part)).T for part in series]
        shapes = [getattr(part, "shape", ()) for part in series]
        widths = [shape[1] if len(shape) == 2 else 0 for shape in shapes]
        for k, width in enumerate(widths):
            if width and widths[0] and width != widths[0]:
                raise ValueError(
                    f"`X[{k}]` has {width} channels and `X[0]` has {widths[0]}; all "
                    "series need the same ones. If channels come first, pass "
                    "channels_last=False."
                )
        return series, None
    if hasattr(X, "toarray"):
        raise TypeError(
            "a sparse matrix is not a collection of series; use `.toarray()`."
        )
    array = np.asarray(as_numbers("X", X))
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported; `X` must be real.")
    if array.ndim not in (2, 3):
        raise ValueError(
            f"`X` must have shape (n, times, channels), got {array.shape}. Reshape "
            "your data: one series is `x[None]`, one channel is `x[..., None]`."
        )
    if 0 in array.shape:
        what = "feature" if len(array) else "sample"
        raise ValueError(
            f"Found array with 0 {what}(s) (shape={array.shape}) while a minimum of 1 "
            "is required: `X` needs series with times and channels."
        )
    array = array[..., None] if array.ndim == 2 else array
    return list(array if channels_last else np.swapaxes(array, 1, 2)), None


def _with_values(path: SampledPath) -> SampledPath:
    """Refuses a series without any observed value."""
    seen = observed(path).any(axis=(1, 2))
    if not seen.all():
        raise ValueError(
            f"series {int(np.argmin(seen))} has no values, all are missing. Drop it."
        )
    return path


def _from_frame(X: Any) -> tuple[list, list | None]:
    """Series, and their times, of the frames that sktime uses."""
    index = X.index
    if getattr(index, "nlevels", 1) == 2:
        labels = index.get_level_values(0)
        parts = [X.loc[label] for label in dict.fromkeys(labels)]
        clocks = [part.index.to_numpy() for part in parts]
        return [part.to_numpy() for part in parts], clocks
    nested = hasattr(X, "iloc") and X.size > 0 and np.ndim(X.iloc[0, 0]) == 1
    if not nested:
        raise TypeError(
            "a data frame does not say which rows belong together: use "
            "`SampledPath.from_dataframe(df, time=..., group=...)`."
        )
    rows = ([np.asarray(cell, float) for cell in row] for row in X.to_numpy())
    return [np.stack(row, axis=1) for row in rows], None


def training_paths(estimator: Any, X: Any, centred: bool) -> SampledPath:
    """Paths for `fit`. Keeps their origin, zero unless they may be `centred`."""
    origin = None if centred else np.zeros(1)
    path, estimator.origin_ = centred_paths(X, estimator.channels_last, origin)
    learn_names(estimator, X)
    return path


def known_paths(estimator: Any, X: Any) -> SampledPath:
    """Paths for a fitted estimator, less the origin of its training data."""
    check_is_fitted(estimator)
    origin = getattr(estimator, "origin_", np.zeros(1))
    path, _ = centred_paths(X, estimator.channels_last, origin)
    check_channels(estimator, path)
    check_names(estimator, X)
    return path


def _names(X: Any) -> list[str] | None:
    """Names of the channels, if frames have them."""
    parts = X if isinstance(X, list | tuple) else [X]
    found = [list(part.columns) for part in parts if hasattr(part, "columns")]
    if not found or not all(isinstance(name, str) for name in found[0]):
        return None
    for k, names in enumerate(found):
        if names != found[0]:
            raise ValueError(
                f"frame {k} has columns {shown(names)}, but frame 0 has "
                f"{shown(found[0])}; all need the same, in one order."
            )
    return found[0]


def learn_names(estimator: Any, X: Any) -> None:
    """Keeps the names of the channels, if frames have them, as scikit-learn does."""
    names = _names(X)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def check_names(estimator: Any, X: Any) -> None:
    """Refuses frames with other channels than in training, or in another order."""
    names, known = _names(X), getattr(estimator, "feature_names_in_", None)
    if names is not None and known is not None and names != known.tolist():
        raise ValueError(
            f"the series have channels {shown(names)}, but {type(estimator).__name__} "
            f"was fitted with {shown(known.tolist())}, in this order."
        )


def check_channels(estimator: Any, path: SampledPath) -> None:
    """Refuses other channels than in training."""
    if path.dim != estimator.n_features_in_:
        raise ValueError(
            f"the series have {path.dim} channels, but {type(estimator).__name__} was "
            f"fitted with {estimator.n_features_in_}."
        )

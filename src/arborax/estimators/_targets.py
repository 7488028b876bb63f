"""Targets of classifiers and regressors."""

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from ..paths import SampledPath


def _one_per_path(path: SampledPath, y: Any) -> np.ndarray:
    if y is None:
        raise ValueError(
            "This estimator requires y to be passed, but the target y is None"
        )
    y = np.asarray(y)
    if y.ndim < 1 or len(y) != path.batch_shape[0]:
        raise ValueError(
            f"`y` must have one target for each of the {path.batch_shape[0]} paths, "
            f"got shape {y.shape}."
        )
    return y


def as_labels(path: SampledPath, y: Any) -> np.ndarray:
    """Labels `(n,)`, one for each path, of two classes at least."""
    y = _one_per_path(path, y)
    for row, label in enumerate(y.ravel().tolist()):
        if label is None or label != label:
            raise ValueError(f"`y` has no label in row {row}. Drop the series.")
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    if len(np.unique(y)) < 2:
        raise ValueError(
            f"`y` has only one class, {y[0]!r}; a classifier needs at least two."
        )
    return y


def as_targets(path: SampledPath, y: Any) -> np.ndarray:
    """Numbers `(n, ...)` in double precision, all finite, one row for each path."""
    y = _one_per_path(path, y)
    if y.dtype.kind not in "biuf":
        raise ValueError(f"`y` must hold numbers, got dtype {y.dtype}.")
    y = y.astype(np.float64)
    finite = np.isfinite(y.reshape(len(y), -1)).all(axis=1)
    if not finite.all():
        raise ValueError(f"`y` contains NaN or infinity in row {np.argmin(finite)}.")
    return y


class Regressor(RegressorMixin):
    """A regressor whose targets may have several outputs."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

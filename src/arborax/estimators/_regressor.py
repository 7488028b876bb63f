"""Regression on series, with targets in a vector space or on a manifold."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array
from sklearn.metrics import r2_score

from ..geometry import AbstractGeometry
from ._models import last_output
from ._points import belong
from ._sequence import SequenceEstimator
from ._targets import as_targets, Regressor


class _Objective:
    """Mean squared distance of outputs after the last sample from their targets."""

    def __init__(self, geometry: AbstractGeometry | None):
        self.geometry = geometry

    def __call__(self, model: Any, batch: Any, key: Any) -> Array:
        items, lengths, targets = batch
        found = jax.vmap(lambda item, n: last_output(model, item, n))(items, lengths)
        if self.geometry is None:
            return jnp.mean(jnp.square(found - targets))
        logs = jax.vmap(self.geometry.log)(found, targets)
        return jnp.mean(jnp.sum(jnp.square(logs), axis=-1))


@dataclasses.dataclass(eq=False, repr=False)
class SequenceRegressor(Regressor, SequenceEstimator):
    """Regression on series with a sequence model, B-NRDE by default.

    The target is the output of the model after the last sample: numbers, in units of
    the training targets, or a point of a manifold such as a rotation, a pose or a
    covariance matrix. It is trained by [`arborax.fit`][] on the mean squared (geodesic)
    distance; otherwise it is like [`arborax.estimators.SequenceClassifier`][].

    **Arguments:** as [`arborax.estimators.SequenceClassifier`][], and

    - `geometry`: the manifold of the targets, for example `abx.SO(3)`,
        `abx.SE(3)` or `abx.SPD(2)`. `None`: numbers.
    """

    model: Any = "bnrde"
    _: dataclasses.KW_ONLY
    geometry: AbstractGeometry | None = None

    def fit(self, X: Any, y: Any) -> "SequenceRegressor":
        """Trains on series `X` (see [`arborax.estimators.as_paths`][]) with targets
        `(n,)`, `(n, outputs)` or `(n, *point)`."""
        path, key = self._start(X, self.standardise)
        y = self._check_targets(path, y)
        init, train = jr.split(key)
        rows = self._split(path, train, self.standardise)
        self.target_shape_ = y.shape[1:]
        self.target_mean_ = np.zeros(y.shape[1:])
        self.target_deviation_ = np.ones(y.shape[1:])
        if self.geometry is None:
            self.target_mean_ = y[rows].mean(axis=0)
            deviation = y[rows].std(axis=0)
            self.target_deviation_ = np.where(deviation > 0, deviation, 1.0)
            y = ((y - self.target_mean_) / self.target_deviation_).reshape(len(y), -1)
        size = int(np.prod(self.target_shape_))
        output = size if self.geometry is None else self.geometry
        model = self._make(self.model, output, init)
        items, lengths = self._items(model, path)
        data = items, lengths, y.astype(path.xs.dtype)
        self._train(model, data, _Objective(self.geometry), train, rows)
        return self

    def _check_targets(self, path: Any, y: Any) -> np.ndarray:
        y = as_targets(path, y)
        if self.geometry is None:
            if y.ndim > 2:
                raise ValueError(
                    f"`y` of shape {y.shape} has more than two axes: give `geometry` "
                    "if targets are points of a manifold."
                )
            return y
        if y.shape[1:] != self.geometry.point_shape:
            raise ValueError(
                f"`y` must have shape (n, *{self.geometry.point_shape}), points of "
                f"{self.geometry}, got {y.shape}."
            )
        inside = belong(self.geometry, y)
        if not inside.all():
            raise ValueError(
                f"`y` in row {int(np.argmin(inside))} is not a point of "
                f"{self.geometry}."
            )
        return y

    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets, of the shape of those in `fit`."""
        out = self._outputs(X)
        if self.geometry is not None:
            return out
        out = out.reshape(len(out), *self.target_shape_)
        return out * self.target_deviation_ + self.target_mean_

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The coefficient of determination; on a manifold, minus the root mean square
        of geodesic distances."""
        found = self.predict(X)
        if self.geometry is None:
            return float(r2_score(y, found, sample_weight=sample_weight))
        distance = jax.vmap(self.geometry.distance)
        gaps = np.asarray(distance(jnp.asarray(found), jnp.asarray(y, found.dtype)))
        return -float(np.sqrt(np.average(gaps**2, weights=sample_weight)))

"""Regression on series, with targets in a vector space or on a manifold."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from ..geometry import AbstractGeometry
from ._models import last_output, make_model
from ._sequence import check_targets, SequenceEstimator


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


class SequenceRegressor(RegressorMixin, SequenceEstimator):
    """Regression on series by a sequence model, B-NRDE by default.

    The target is the output of the model after the last sample: numbers, in units of
    the training targets, or a point of a manifold such as a rotation, a pose or a
    covariance matrix. Trained by [`arborax.fit`][] on the mean squared (geodesic)
    distance. All else as [`arborax.estimators.SequenceClassifier`][].
    """

    def __init__(
        self,
        model: Any = "bnrde",
        *,
        options: Any = None,
        geometry: AbstractGeometry | None = None,
        steps: int = 1000,
        batch_size: int = 64,
        learning_rate: float | None = 3e-3,
        optimiser: Any = "adamw",
        validation: float | None = 0.2,
        patience: int | None = 20,
        average: float | None = 0.99,
        standardise: bool = True,
        time: bool = True,
        channels_last: bool = True,
        random_state: Any = None,
        progress: bool = False,
    ):
        """**Arguments:** as [`arborax.estimators.SequenceClassifier`][], and

        - `geometry`: the manifold of the targets, for example `abx.SO(3)`,
            `abx.SE(3)` or `abx.SPD(2)`. `None`: numbers.
        """
        self.model = model
        self.options = options
        self.geometry = geometry
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.optimiser = optimiser
        self.validation = validation
        self.patience = patience
        self.average = average
        self.standardise = standardise
        self.time = time
        self.channels_last = channels_last
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any) -> "SequenceRegressor":
        """Trains on series `X` (see [`arborax.estimators.as_paths`][]) with targets
        `(n,)`, `(n, outputs)` or `(n, *point)`."""
        path, key = self._start(X)
        y = self._check_targets(path, y)
        self.target_shape_ = y.shape[1:]
        self.target_mean_ = np.zeros(y.shape[1:])
        self.target_deviation_ = np.ones(y.shape[1:])
        if self.geometry is None:
            self.target_mean_ = y.mean(axis=0)
            deviation = y.std(axis=0)
            self.target_deviation_ = np.where(deviation > 0, deviation, 1.0)
            y = ((y - self.target_mean_) / self.target_deviation_).reshape(len(y), -1)
        init, train = jr.split(key)
        model = self._build(init)
        items, lengths = self._items(model, path)
        data = items, lengths, y.astype(path.xs.dtype)
        self._train(model, data, _Objective(self.geometry), train)
        return self

    def _check_targets(self, path: Any, y: Any) -> np.ndarray:
        y = check_targets(path, y)
        if y.dtype.kind not in "biuf":
            raise ValueError(f"`y` must hold numbers, got dtype {y.dtype}.")
        y = y.astype(np.float64)
        if not np.isfinite(y).all():
            row = int(np.argmin(np.isfinite(y.reshape(len(y), -1)).all(axis=1)))
            raise ValueError(f"`y` contains NaN or infinity in row {row}.")
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
        inside = np.asarray(jax.vmap(self.geometry.belongs)(jnp.asarray(y)))
        if not inside.all():
            raise ValueError(
                f"`y` in row {int(np.argmin(inside))} is not a point of "
                f"{self.geometry}."
            )
        return y

    def _build(self, key: Any) -> Any:
        size = int(np.prod(self.target_shape_))
        return make_model(
            self.model,
            self._channels,
            size if self.geometry is None else self.geometry,
            times=self.length_,
            options=self.options,
            dtype=self.scaling_.dtype,
            key=key,
        )

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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

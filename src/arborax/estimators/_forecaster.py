"""Forecasts of series, in a vector space or on a manifold."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array

from .._inputs import as_count
from ..geometry import AbstractGeometry, Euclidean
from ..models import AbstractCausalModel
from ..paths import SampledPath
from ._blocks import blocks, lengths_of
from ._sequence import BLOCK, prepare_paths, SequenceEstimator


def squared_error(model: Any, batch: Any, key: Any) -> Array:
    """Mean squared error of scaled moves ahead, at all samples that have a future."""
    items, targets, weights = batch
    found = jax.vmap(model)(items).reshape(targets.shape)
    errors = jnp.mean(jnp.square(found - targets), axis=-1)
    return jnp.sum(errors * weights) / jnp.sum(weights)


@eqx.filter_jit
def _outputs(model: Any, items: Any) -> Array:
    return jax.vmap(model)(items)


@dataclasses.dataclass(eq=False, repr=False)
class Forecaster(SequenceEstimator):
    """Forecasts the next samples of series by a causal sequence model.

    At each sample the model predicts the next `horizon` samples: for each of them a
    tangent vector at the current point, in units of a typical step, whose geodesic ends
    at the predicted point (in a vector space, the two are added). It learns from all
    samples of the training series. The baseline is the forecast "no change": `score` is
    the fraction of its squared error that the model removes.

    **Arguments:** as [`arborax.estimators.SequenceClassifier`][], and

    - `horizon`: samples ahead.
    - `geometry`: the manifold of the states, for example `abx.SO(3)`. Series are then
        arrays `(n, times, *point)`, and the model reads the entries of the points
        without standardising them. `None`: a vector space.
    """

    horizon: int = 1
    model: Any = "bnrde"
    _: dataclasses.KW_ONLY
    geometry: AbstractGeometry | None = None

    def fit(self, X: Any, y: Any = None) -> "Forecaster":
        """Trains on series `X`, see [`arborax.estimators.as_paths`][]; `y` is not
        used."""
        path, key = self._start(
            self._flat(X), self.standardise and self.geometry is None
        )
        horizon = as_count("horizon", self.horizon)
        if path.num_times <= horizon:
            raise ValueError(
                f"the longest series has {path.num_times} samples, too few to learn "
                f"forecasts {horizon} samples ahead."
            )
        moves, weights = self._moves(path)
        one = moves[:, :, 0][weights[:, :, 0] > 0]
        self.move_scale_ = np.sqrt(np.mean(one**2, axis=0))
        self.move_scale_ = np.where(self.move_scale_ > 0, self.move_scale_, 1.0)
        init, train = jr.split(key)
        model = self._make(self.model, horizon * moves.shape[-1], init)
        if not isinstance(model, AbstractCausalModel):
            raise TypeError(
                f"a forecast needs a causal model, but {type(model).__name__} reads "
                "the whole series."
            )
        items, _ = self._items(model, path)
        dtype = path.xs.dtype
        data = items, (moves / self.move_scale_).astype(dtype), weights.astype(dtype)
        self._train(model, data, squared_error, train)
        return self

    def _flat(self, X: Any) -> Any:
        """Points of a manifold as rows of numbers."""
        if self.geometry is None or isinstance(X, SampledPath):
            return X
        shape = self.geometry.point_shape
        X = np.asarray(X)
        if X.ndim != 2 + len(shape) or X.shape[2:] != shape:
            raise ValueError(
                f"`X` must have shape (n, times, *{shape}), points of {self.geometry}, "
                f"got {X.shape}."
            )
        return X.reshape(*X.shape[:2], -1)

    def _space(self, channels: int) -> AbstractGeometry:
        return Euclidean(channels) if self.geometry is None else self.geometry

    def _moves(self, path: SampledPath) -> tuple[np.ndarray, np.ndarray]:
        """Moves `(n, times, horizon, dim)` from each sample to the next ones, and
        which of them are known. Times are padded as those of the model are."""
        space, horizon = self._space(path.dim), self.horizon
        values = np.asarray(path.filled().xs)
        values = values.reshape(*values.shape[:2], *space.point_shape)
        times = np.arange(path.num_times)
        ahead = times[:, None] + 1 + np.arange(horizon)
        known = ahead < lengths_of(path)[:, None, None]
        later = values[:, np.minimum(ahead, path.num_times - 1)]
        log = jax.vmap(jax.vmap(jax.vmap(space.log, (None, 0))))
        found = np.asarray(jax.jit(log)(jnp.asarray(values), jnp.asarray(later)))
        return found, known.astype(found.dtype)

    def predict(self, X: Any) -> np.ndarray:
        """The next samples `(n, horizon, channels)`, or `(n, horizon, *point)`."""
        path = self._check(self._flat(X))
        space, shape = self._space(path.dim), (self.horizon, -1)
        go = jax.jit(jax.vmap(jax.vmap(space.exp, (None, 0))))
        parts = []
        for block, count in blocks(path, self.length_, BLOCK):
            items = prepare_paths(self.model_, self.scaling_, block, self.time)
            out = np.asarray(_outputs(self.model_, items))
            rows, last = np.arange(len(out)), np.asarray(block.lengths) - 1
            moves = out[rows, last].reshape(len(out), *shape) * self.move_scale_
            points = np.asarray(block.filled().xs)[rows, last]
            points = points.reshape(len(out), *space.point_shape)
            dtype = points.dtype
            found = go(jnp.asarray(points), jnp.asarray(moves, dtype))
            parts.append(np.asarray(found)[:count])
        return np.concatenate(parts)

    def score(self, X: Any, y: Any = None) -> float:
        """How much better than "no change": one less the ratio of mean squared moves
        from the forecast and from the last sample known. The last `horizon` samples
        of `X` are held back and forecast."""
        path = self._check(self._flat(X))
        lengths = lengths_of(path) - self.horizon
        if lengths.min() < 1:
            raise ValueError(
                f"a series has {lengths_of(path).min()} samples; to score forecasts "
                f"{self.horizon} ahead it needs more than {self.horizon}."
            )
        past = SampledPath(path.ts, path.xs, path.mask, lengths, check=False)
        space = self._space(path.dim)
        values = np.asarray(path.filled().xs)
        values = values.reshape(*values.shape[:2], *space.point_shape)
        rows = np.arange(len(values))
        future = values[rows[:, None], lengths[:, None] + np.arange(self.horizon)]
        still = np.broadcast_to(values[rows, lengths - 1][:, None], future.shape)
        gap = jax.jit(jax.vmap(jax.vmap(space.log)))

        def error(points: np.ndarray) -> float:
            moves = gap(jnp.asarray(points, future.dtype), jnp.asarray(future))
            return float(jnp.sum(jnp.square(moves)))

        return 1.0 - error(self.predict(past)) / error(still)

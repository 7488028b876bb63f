"""Forecasts of series, in a vector space or on a manifold."""

import dataclasses
from typing import Any, ClassVar, Literal

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
from ._blocks import blocks, lengths_of, observed
from ._points import check_points, flat_points
from ._sequence import BLOCK, prepare_paths, SequenceEstimator


def squared_error(model: Any, batch: Any, key: Any) -> Array:
    """Mean squared error of scaled moves ahead, of those that are known."""
    items, targets, weights = batch
    found = jax.vmap(model)(items).reshape(targets.shape)
    errors = jnp.square(found - targets)
    return jnp.sum(errors * weights) / jnp.maximum(jnp.sum(weights), 1)


@eqx.filter_jit
def _outputs(model: Any, items: Any) -> Array:
    return jax.vmap(model)(items)


@dataclasses.dataclass(eq=False, repr=False)
class Forecaster(SequenceEstimator):
    """Forecasts the next samples of series with a causal sequence model.

    At each sample the model predicts the next `horizon` samples: for each of them a
    tangent vector at the current point, in units of a typical step, whose geodesic ends
    at the predicted point (in a vector space, the two are added). It learns from all
    samples of the training series. The baseline is the forecast "no change": `score` is
    the fraction of its squared error that the model removes.

    Series may have any length, and gaps. A missing value is replaced by the last known
    one, both in what the model reads and as the start of a forecast, so nothing looks
    ahead. Only observed values count in training and scores; on a manifold a point is
    observed if all its numbers are.

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
    _filling: ClassVar[Literal["linear", "forward"]] = "forward"

    def fit(self, X: Any, y: Any = None) -> "Forecaster":
        """Trains on series `X`, see [`arborax.estimators.as_paths`][]; `y` is not
        used."""
        scaled = self.standardise and self.geometry is None
        path, key = self._start(flat_points(X, self.geometry), scaled)
        self._check_past(path)
        horizon = as_count("horizon", self.horizon)
        if path.num_times <= horizon:
            raise ValueError(
                f"the longest series has {path.num_times} samples, too few to learn "
                f"forecasts {horizon} samples ahead."
            )
        moves, weights = self._moves(path)
        if not weights.any():
            raise ValueError(
                f"no value of `X` follows another of its series within {horizon} "
                "samples, so there is no forecast to learn."
            )
        init, train = jr.split(key)
        rows = self._split(path, train, scaled)
        next_known = weights[rows, :, 0]
        count = np.maximum(next_known.sum(axis=(0, 1)), 1)
        size = np.square(moves[rows, :, 0]).sum(axis=(0, 1), where=next_known)
        self.move_scale_ = np.sqrt(size / count)
        self.move_scale_ = np.where(self.move_scale_ > 0, self.move_scale_, 1.0)
        model = self._make(self.model, horizon * moves.shape[-1], init)
        if not isinstance(model, AbstractCausalModel):
            raise TypeError(
                f"a forecast needs a causal model, but {type(model).__name__} reads "
                "the whole series."
            )
        items, _ = self._items(model, path)
        dtype = path.xs.dtype
        data = items, (moves / self.move_scale_).astype(dtype), weights.astype(dtype)
        self._train(model, data, squared_error, train, rows)
        return self

    def _check_past(self, path: SampledPath) -> None:
        """Refuses points off the manifold, and values that look ahead."""
        check_points(path, self.geometry)
        if path.interpolated:
            raise ValueError(
                "missing values of `X` were filled by interpolation, which looks "
                "ahead. Give the paths as they were before, with their mask."
            )

    def _space(self, channels: int) -> AbstractGeometry:
        return Euclidean(channels) if self.geometry is None else self.geometry

    def _points(self, path: SampledPath) -> tuple[np.ndarray, np.ndarray]:
        """Points `(n, times, *point)`, held while they are missing, and which of their
        coordinates are observed, `(n, times, dim)`."""
        space, seen = self._space(path.dim), observed(path)
        if self.geometry is not None:
            whole: Any = np.all(seen, axis=2, keepdims=True)
            seen = np.broadcast_to(whole, (*whole.shape[:2], space.dim))
            path = dataclasses.replace(
                path, mask=jnp.asarray(whole[..., 0]), check=False
            )
        values = np.asarray(path.filled("forward").xs)
        return values.reshape(*values.shape[:2], *space.point_shape), seen

    def _moves(self, path: SampledPath) -> tuple[np.ndarray, np.ndarray]:
        """Moves `(n, times, horizon, dim)` from each sample to the next ones, and which
        of them are known. Until each channel has been observed there is none: what is
        held before is the first observation, which lies ahead. Times are padded as
        those of the model are."""
        space = self._space(path.dim)
        values, seen = self._points(path)
        times = np.arange(path.num_times)
        ahead = times[:, None] + 1 + np.arange(self.horizon)
        later = np.minimum(ahead, path.num_times - 1)
        begun: Any = np.logical_or.accumulate(seen, axis=1)
        begun = np.all(begun | ~begun[:, -1:], axis=2)
        known = seen[:, later] & (ahead < path.num_times)[..., None]
        known &= begun[:, :, None, None]
        log = jax.vmap(jax.vmap(jax.vmap(space.log, (None, 0))))
        found = jax.jit(log)(jnp.asarray(values), jnp.asarray(values[:, later]))
        return np.where(known, np.asarray(found), 0), known

    def predict(self, X: Any) -> np.ndarray:
        """The next samples `(n, horizon, channels)`, or `(n, horizon, *point)`."""
        path = self._check(flat_points(X, self.geometry))
        made = self._ahead(check_points(path, self.geometry))
        origin = getattr(self, "origin_", np.zeros(1))
        return made + origin if np.any(origin) else made

    def _ahead(self, path: SampledPath) -> np.ndarray:
        space, shape = self._space(path.dim), (self.horizon, -1)
        go = jax.jit(jax.vmap(jax.vmap(space.exp, (None, 0))))
        parts = []
        for block, count in blocks(path, self.length_, BLOCK):
            items = prepare_paths(
                self.model_, self.scaling_, block, self.time, self._filling
            )
            out = np.asarray(_outputs(self.model_, items))
            rows, last = np.arange(len(out)), np.asarray(block.lengths) - 1
            moves = out[rows, last].reshape(len(out), *shape) * self.move_scale_
            points = self._points(block)[0][rows, last]
            dtype = points.dtype
            found = go(jnp.asarray(points), jnp.asarray(moves, dtype))
            parts.append(np.asarray(found)[:count])
        return np.concatenate(parts)

    def score(self, X: Any, y: Any = None) -> float:
        """The improvement over "no change": one minus the mean squared error of the
        forecast over that of the last known sample. The last `horizon` samples of `X`,
        where observed, are the targets."""
        path = self._check(flat_points(X, self.geometry))
        self._check_past(path)
        lengths = lengths_of(path) - self.horizon
        if lengths.min() < 1:
            raise ValueError(
                f"a series has {lengths_of(path).min()} samples; to score forecasts "
                f"{self.horizon} ahead it needs more than {self.horizon}."
            )
        past = dataclasses.replace(path, lengths=jnp.asarray(lengths), check=False)
        space, rows = self._space(path.dim), np.arange(len(lengths))[:, None]
        values, seen = self._points(path)
        last = lengths[:, None] + np.arange(self.horizon)
        begun: Any = np.logical_or.accumulate(seen, axis=1)
        begun = begun[rows, lengths[:, None] - 1]
        future, known = values[rows, last], seen[rows, last] & begun
        if not known.any():
            raise ValueError(
                f"none of the last {self.horizon} samples was observed, so there is no "
                "forecast to score."
            )
        still = np.broadcast_to(values[rows, lengths[:, None] - 1], future.shape)
        gap = jax.jit(jax.vmap(jax.vmap(space.log)))

        def error(points: np.ndarray) -> float:
            moves = gap(jnp.asarray(points, future.dtype), jnp.asarray(future))
            return float(np.sum(np.square(np.asarray(moves)), where=known))

        return 1.0 - error(self._ahead(past)) / error(still)

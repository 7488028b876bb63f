"""Classification and regression by random equations and a ridge readout."""

import dataclasses
import functools as ft
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.utils import check_random_state

from .._inputs import as_count
from ..models import Reservoir
from ..paths import add_time, SampledPath
from ._blocks import by_blocks, lengths_of
from ._collections import known_paths, training_paths
from ._features import make_algebra
from ._saving import Saved
from ._scaling import Scaling
from ._targets import as_labels, as_targets, Regressor


_PENALTIES = np.logspace(-3, 4, 15)


@eqx.filter_jit
def _states(model: Reservoir, scaling: Scaling, steps: Any, path: SampledPath) -> Any:
    """States `(n, times, hidden)`; time runs in units of the usual step."""
    scaled = scaling.apply(path)
    ts = scaled.ts * jnp.asarray(steps, scaled.ts.dtype)
    scaled = eqx.tree_at(lambda p: p.ts, scaled, ts)
    return model.core.predict(add_time(scaled))


@eqx.filter_jit
def _pooled(
    model: Reservoir, scaling: Scaling, steps: Any, levels: Any, path: SampledPath
) -> Any:
    """Of each state over time: how often it is above each of its levels, mean, standard
    deviation, largest, smallest and last value; points after the end do not count."""
    states = _states(model, scaling, steps, path)
    count, times = states.shape[:2]
    lengths = times if path.lengths is None else path.lengths
    lengths = jnp.broadcast_to(jnp.asarray(lengths), (count,))
    order = jnp.arange(times, dtype=lengths.dtype)
    there = (order[None] < lengths[:, None])[..., None]
    share = there.astype(states.dtype) / lengths[:, None, None].astype(states.dtype)
    mean = jnp.sum(share * states, axis=1)
    spread = jnp.sqrt(jnp.sum(share * (states - mean[:, None]) ** 2, axis=1))
    above = [
        jnp.sum(jnp.where(states > row[None, None], share, 0), axis=1) for row in levels
    ]
    top = jnp.max(jnp.where(there, states, -jnp.inf), axis=1)
    bottom = jnp.min(jnp.where(there, states, jnp.inf), axis=1)
    last = jnp.take_along_axis(states, lengths[:, None, None] - 1, axis=1)[:, 0]
    return jnp.concatenate([*above, mean, spread, top, bottom, last], axis=1)


@dataclasses.dataclass(eq=False, repr=False)
class ReservoirEstimator(Saved):
    """Pooled states of a random equation."""

    alg: Any = "ito"
    depth: int = 2
    _: dataclasses.KW_ONLY
    hidden: int = 512
    scale: float = 0.4
    levels: int = 6
    standardise: bool = True
    channels_last: bool = True
    random_state: Any = None

    def _fit_features(self, path: SampledPath) -> np.ndarray:
        """Learns units, draws the equation, and gives features of the training data."""
        hidden = as_count("hidden", self.hidden)
        levels = as_count("levels", self.levels)
        self.n_features_in_, self.length_ = path.dim, path.num_times
        self.scaling_ = Scaling.of(path, self.standardise)
        rng = check_random_state(self.random_state)
        alg = make_algebra(self.alg, path.dim + 1, as_count("depth", self.depth))
        stratonovich = alg.calculus == "stratonovich"
        self.model_ = Reservoir(
            alg,
            1,
            hidden=hidden,
            block=2,
            scale=self.scale,
            memory=(0.5, max(0.5 * self.length_, 1.0)),
            window=1,
            brackets=None if stratonovich or path.brackets is not None else "realised",
            dtype=path.xs.dtype,
            key=jr.key(rng.randint(2**31 - 1)),
        )
        # Levels are quantiles of the states of some training series, of random order.
        chosen = rng.permutation(path.batch_shape[0])[:128]
        some = jax.tree.map(lambda leaf: np.asarray(leaf)[chosen], path.broadcast())
        take = ft.partial(_states, self.model_, self.scaling_, self._steps)
        states = by_blocks(take, some, self.length_, 64, True)
        there = np.arange(self.length_) < lengths_of(some)[:, None]
        quantiles = rng.uniform(0.1, 0.9, levels)
        self.levels_ = np.quantile(states[there], quantiles, axis=0)
        self.levels_ = self.levels_.astype(states.dtype)
        return self._scaled(path, fit=True)

    @property
    def _steps(self) -> np.ndarray:
        return np.asarray(max(self.length_ - 1, 1), self.scaling_.dtype)

    def _scaled(self, path: SampledPath, fit: bool = False) -> np.ndarray:
        take = ft.partial(
            _pooled, self.model_, self.scaling_, self._steps, self.levels_
        )
        found = by_blocks(take, path, self.length_, 64).astype(np.float64)
        if fit:
            self.centre_, self.spread_ = found.mean(axis=0), found.std(axis=0)
            self.spread_ = np.where(self.spread_ > 1e-8, self.spread_, 1.0)
        return (found - self.centre_) / self.spread_

    def features(self, X: Any) -> np.ndarray:
        """The standardised features that the readout sees, `(n, features)`."""
        return self._scaled(known_paths(self, X))

    def _read(self, readout: Any) -> None:
        """Keeps the weights of a fitted ridge estimator."""
        self.coef_, self.intercept_ = readout.coef_, np.asarray(readout.intercept_)
        self.alpha_ = float(readout.alpha_)

    def _outputs(self, X: Any) -> np.ndarray:
        """The readout `(n, ...)`, one number for each row of `coef_`."""
        features = self.features(X)
        return features @ self.coef_.T + self.intercept_


@dataclasses.dataclass(eq=False, repr=False)
class ReservoirClassifier(ClassifierMixin, ReservoirEstimator):
    """Classifies series with a random equation, without back-propagation.

    The states of a [`arborax.models.Reservoir`][] of damped oscillators, whose memories
    range from half a step to half a series, are pooled over time: how often they are
    above random quantiles, mean, standard deviation, extremes and last value. A ridge
    classifier reads them; its penalty is chosen by leave-one-out errors on the training
    series. Cost: one pass over the data, and one eigenvalue problem of size `min(n,
    features)`.

    !!! example

        ```python
        model = abx.estimators.ReservoirClassifier(random_state=0)
        model.fit(X, y).score(X_test, y_test)
        ```

    **Arguments:**

    - `alg`, `depth`, `standardise`, `channels_last`: as in
        [`arborax.estimators.SignatureFeatures`][].
    - `hidden`, `scale`: of the reservoir; `hidden` is even.
    - `levels`: quantiles per state; a state gives `levels + 5` features.
    - `random_state`: seed of the equation.
    """

    def fit(self, X: Any, y: Any) -> "ReservoirClassifier":
        """Series `X` (see [`arborax.estimators.as_paths`][]) with labels `y`."""
        path = training_paths(self, X, self.standardise)
        y = as_labels(path, y)
        readout = RidgeClassifierCV(_PENALTIES).fit(self._fit_features(path), y)
        self.classes_ = readout.classes_
        self._read(readout)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores `(n, classes)`; for two classes `(n,)`."""
        scores = self._outputs(X)
        return scores.ravel() if scores.size == len(scores) else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of each series."""
        scores = self.decision_function(X)
        best = scores > 0 if scores.ndim == 1 else np.argmax(scores, axis=1)
        return self.classes_[best.astype(np.intp)]


@dataclasses.dataclass(eq=False, repr=False)
class ReservoirRegressor(Regressor, ReservoirEstimator):
    """Regression with the features of [`arborax.estimators.ReservoirClassifier`][],
    whose arguments it takes."""

    def fit(self, X: Any, y: Any) -> "ReservoirRegressor":
        """Series `X` with targets `(n,)` or `(n, outputs)`."""
        path = training_paths(self, X, self.standardise)
        y = as_targets(path, y)
        self._read(RidgeCV(_PENALTIES).fit(self._fit_features(path), y))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets."""
        return self._outputs(X)

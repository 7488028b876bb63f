"""Classifiers without training by gradients: our own, and rivals of `aeon`."""

import functools as ft
import importlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import StandardScaler

from arborax.datasets import LabelledSeries
from arborax.estimators import (
    ReservoirClassifier,
    SignatureFeatures,
    SignatureKernelClassifier,
)
from arborax.paths import SampledPath

from .config import Config
from .data import as_list, Parts


PENALTIES = np.logspace(-3, 5, 17)
ALGEBRAS = {"ito": "ito", "stratonovich": "shuffle"}


def signatures(times: int, calculus: str) -> Any:
    """Log-signatures over one window at depth 3, and over 2, 4 and 8 at depth 2."""
    alg = ALGEBRAS[calculus]
    parts = [SignatureFeatures(alg, depth=3, basepoint=True)]
    for windows in (2, 4, 8):
        size = -(-times // windows)
        parts.append(SignatureFeatures(alg, depth=2, window=size, basepoint=True))
    return make_pipeline(make_union(*parts), StandardScaler())


def signature_ridge(config: Config, data: Parts, seed: int, calculus: str) -> Any:
    times = data.train.values.shape[1]
    return make_pipeline(signatures(times, calculus), RidgeClassifierCV(PENALTIES))


def kernel_machine(config: Config, data: Parts, seed: int, calculus: str) -> Any:
    kind = {"ito": "ito", "stratonovich": "geometric"}[calculus]
    return SignatureKernelClassifier(kind, 3)


def reservoir(
    config: Config, data: Parts, seed: int, calculus: str, count: int = 1
) -> Any:
    """One of `count` reservoirs side by side. Fewer states for many series: the matrix
    of all features has at most ten million numbers, so that its ridge regression takes
    seconds."""
    most = 10**7 // (11 * count * len(data.train.labels))
    hidden = min(config.states, max(8, most // 2 * 2))
    return ReservoirClassifier(
        ALGEBRAS[calculus], hidden=hidden, random_state=seed % 2**31
    )


class Joined:
    """Ridge regression on the features of three reservoirs, one for each of `VIEWS` of
    a path, and on two sets of log-signatures: on those of `CHOICES` whose leave-one-out
    errors on the training series are smallest. Each part has the same weight, however
    many features it has."""

    def __init__(self, parts: tuple[Any, ...]):
        self.parts = parts

    def fit(self, path: SampledPath, y: np.ndarray) -> "Joined":
        for model, view in zip(self.parts, VIEWS):
            model.fit(view(path), y)
        features = self._features(path, range(len(VIEWS)))
        tried = []
        for chosen in CHOICES:
            x = side_by_side([features[k] for k in chosen])
            tried.append((RidgeClassifierCV(PENALTIES).fit(x, y), chosen))
        self.readout, self.chosen = max(tried, key=lambda one: one[0].best_score_)
        return self

    def _features(self, path: SampledPath, which: Iterable[int]) -> list[np.ndarray]:
        take = lambda m: getattr(m, "features", None) or m.transform  # noqa: E731
        return [take(self.parts[k])(VIEWS[k](path)) for k in which]

    def predict(self, path: SampledPath) -> np.ndarray:
        features = self._features(path, self.chosen)
        return np.asarray(self.readout.predict(side_by_side(features)))


def side_by_side(parts: list[np.ndarray]) -> np.ndarray:
    """Features of equal weight, whatever their numbers."""
    size = parts[0].shape[1]
    return np.concatenate([np.sqrt(size / p.shape[1]) * p for p in parts], axis=1)


def as_it_is(path: SampledPath) -> SampledPath:
    return path


def with_steps(path: SampledPath) -> SampledPath:
    """The path with its steps as further channels; the first is zero."""
    xs = np.asarray(path.xs)
    steps = np.diff(xs, axis=1, prepend=xs[:, :1])
    both = np.concatenate([xs, steps], axis=2)
    return SampledPath(path.ts, both, lengths=path.lengths)


def in_own_units(path: SampledPath) -> SampledPath:
    """Each series less its mean, and divided by its standard deviation."""
    xs, lengths = np.asarray(path.xs), np.asarray(path.lengths)
    there = (np.arange(xs.shape[1]) < lengths[:, None])[..., None]
    share = there / lengths[:, None, None]
    xs = xs - np.sum(share * xs, axis=1, keepdims=True)
    spread = np.sqrt(np.sum(share * xs**2, axis=1, keepdims=True))
    xs = (xs / np.maximum(spread, 1e-6)).astype(np.float32)
    return SampledPath(path.ts, xs, lengths=path.lengths)


VIEWS = (as_it_is, with_steps, in_own_units, as_it_is, as_it_is)
CHOICES = ((0, 1, 2), (0, 1, 2, 3), (0, 3, 4))


def joined(config: Config, data: Parts, seed: int, calculus: str) -> Any:
    several = signatures(data.train.values.shape[1], calculus)
    one = SignatureFeatures(ALGEBRAS[calculus], depth=2, basepoint=True)
    reservoirs = (reservoir(config, data, seed + k, calculus, 3) for k in range(3))
    return Joined((*reservoirs, several, make_pipeline(one, StandardScaler())))


def _of_aeon(module: str, name: str, **options: Any) -> Any:
    try:
        room = importlib.import_module(f"aeon.classification.{module}")
    except ImportError as error:
        raise ImportError(
            "the rivals come from the package aeon: pip install 'arborax[data]'."
        ) from error
    return getattr(room, name)(**options)


def rocket(config: Config, data: Parts, seed: int, name: str) -> Any:
    options = dict(n_kernels=config.kernels, random_state=seed)
    return _of_aeon("convolution_based", name, **options)


def dtw(config: Config, data: Parts, seed: int) -> Any:
    name = "KNeighborsTimeSeriesClassifier"
    return _of_aeon("distance_based", name, distance="dtw", n_neighbors=1)


ROWS = {
    "reservoir-ito": ft.partial(reservoir, calculus="ito"),
    "reservoir-stratonovich": ft.partial(reservoir, calculus="stratonovich"),
    "joined-ito": ft.partial(joined, calculus="ito"),
    "joined-stratonovich": ft.partial(joined, calculus="stratonovich"),
    "signature-ito": ft.partial(signature_ridge, calculus="ito"),
    "signature-stratonovich": ft.partial(signature_ridge, calculus="stratonovich"),
    "kernel-ito": ft.partial(kernel_machine, calculus="ito"),
    "kernel-stratonovich": ft.partial(kernel_machine, calculus="stratonovich"),
    "minirocket": ft.partial(rocket, name="MiniRocketClassifier"),
    "multirocket": ft.partial(rocket, name="MultiRocketClassifier"),
    "dtw": dtw,
}
RIVALS = ("minirocket", "multirocket", "dtw")


def series_for(model: str, series: LabelledSeries) -> Any:
    """The series as a row takes them: rivals have channels first, and convolutions one
    length of ten at least, so that shorter series are filled up with their last
    value."""
    if model not in RIVALS:
        times = np.arange(series.values.shape[1], dtype=np.float32)
        values, lengths = series.values.astype(np.float32), series.lengths
        return SampledPath(times, values, lengths=lengths.astype(np.int32))
    if model == "dtw" and len(set(series.lengths)) > 1:
        return [x.T for x in as_list(series)]
    values = series.values
    if model != "dtw":
        more = max(0, 10 - values.shape[1])
        values = np.pad(values, [(0, 0), (0, more), (0, 0)], mode="edge")
    return np.swapaxes(values, 1, 2).astype(np.float32)

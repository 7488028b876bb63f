"""Classifiers without training by gradients: our own, and rivals of `aeon`."""

import functools as ft
import importlib
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
from .data import as_list


PENALTIES = np.logspace(-3, 5, 17)
ALGEBRAS = {"ito": "ito", "stratonovich": "shuffle"}


def signature_ridge(config: Config, times: int, seed: int, calculus: str) -> Any:
    """Log-signatures over one window at depth 3, and over 2, 4 and 8 at depth 2."""
    alg = ALGEBRAS[calculus]
    parts = [SignatureFeatures(alg, depth=3, basepoint=True)]
    for windows in (2, 4, 8):
        size = -(-times // windows)
        parts.append(SignatureFeatures(alg, depth=2, window=size, basepoint=True))
    return make_pipeline(
        make_union(*parts), StandardScaler(), RidgeClassifierCV(PENALTIES)
    )


def kernel_machine(config: Config, times: int, seed: int, calculus: str) -> Any:
    kind = {"ito": "ito", "stratonovich": "geometric"}[calculus]
    return SignatureKernelClassifier(kind, 3)


def reservoir(config: Config, times: int, seed: int, calculus: str) -> Any:
    alg = ALGEBRAS[calculus]
    return ReservoirClassifier(alg, hidden=config.states, random_state=seed)


def _of_aeon(module: str, name: str, **options: Any) -> Any:
    try:
        room = importlib.import_module(f"aeon.classification.{module}")
    except ImportError as error:
        raise ImportError(
            "the rivals come from the package aeon: pip install 'arborax[data]'."
        ) from error
    return getattr(room, name)(**options)


def rocket(config: Config, times: int, seed: int, name: str) -> Any:
    options = dict(n_kernels=config.kernels, random_state=seed)
    return _of_aeon("convolution_based", name, **options)


def dtw(config: Config, times: int, seed: int) -> Any:
    name = "KNeighborsTimeSeriesClassifier"
    return _of_aeon("distance_based", name, distance="dtw", n_neighbors=1)


ROWS = {
    "reservoir-ito": ft.partial(reservoir, calculus="ito"),
    "reservoir-stratonovich": ft.partial(reservoir, calculus="stratonovich"),
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
    length, so that shorter series are filled up with their last value."""
    if model not in RIVALS:
        times = np.arange(series.values.shape[1], dtype=np.float32)
        values, lengths = series.values.astype(np.float32), series.lengths
        return SampledPath(times, values, lengths=lengths.astype(np.int32))
    if model == "dtw" and len(set(series.lengths)) > 1:
        return [x.T for x in as_list(series)]
    return np.swapaxes(series.values, 1, 2).astype(np.float32)

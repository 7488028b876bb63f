"""Scores of forecasters, and stored scores of the references."""

import dataclasses
import hashlib
import json
import os
import pathlib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from arborax.datasets import cache_folder
from arborax.training import metrics

from ..harness import write_json
from .config import Config
from .extrapolators import AbstractExtrapolator
from .models import forecast, REFERENCES
from .windows import Observed


_VERSION = 2  # of the references: raise it when their numbers change


_forecast = eqx.filter_jit(forecast)


@eqx.filter_jit
def _references(arrays):
    return {name: forecast(model, arrays) for name, model in REFERENCES.items()}


def forecasts(function: Any, seen: Observed, block: int = 512) -> Any:
    """`function((ts, rotations, mask, times))` in blocks of one size, of which the last
    is padded."""
    count = len(seen.truth)
    parts = []
    for start in range(0, count, block):
        rows = np.minimum(np.arange(start, start + block), count - 1)
        inputs = (seen.ts, seen.rotations, seen.mask, seen.times)
        arrays = [jnp.asarray(a[rows]) for a in inputs]
        parts.append(jax.tree.map(np.asarray, function(arrays)))
    return jax.tree.map(lambda *p: np.concatenate(p)[:count], *parts)


def errors(predicted: np.ndarray, truth: np.ndarray, observed: int) -> dict[str, float]:
    """Mean geodesic errors in degrees and Frobenius distance.

    `all`: over all points; `forecast`: over those after the observed ones; `frobenius`:
    over all points. Infinite if a forecast is not finite.
    """
    if not np.isfinite(predicted).all():
        return dict.fromkeys(("all", "forecast", "frobenius"), float("inf"))
    angles = np.asarray(metrics.rotation_error(predicted, truth))
    found = {
        "all": np.mean(angles),
        "forecast": np.mean(angles[:, observed:]),
        "frobenius": np.mean(np.asarray(metrics.frobenius(predicted, truth))),
    }
    return {name: float(f"{value:.6g}") for name, value in found.items()}


def score(
    model: AbstractExtrapolator, sets: dict[str, Observed], config: Config
) -> dict[str, dict[str, float]]:
    """Errors of a model on each test set."""
    return {
        name: errors(predict(model, seen), seen.truth, config.observed)
        for name, seen in sets.items()
    }


def predict(
    model: AbstractExtrapolator, seen: Observed
) -> Float[np.ndarray, "windows points 3 3"]:
    """Forecasts of a model; compiled once for all sets."""
    return forecasts(lambda arrays: _forecast(model, arrays), seen)


def reference_scores(
    sets: dict[str, Observed],
    config: Config,
    cache: str | os.PathLike | None = None,
) -> dict[str, dict[str, dict[str, float]]]:
    """Errors of the references on each test set, by reference and set.

    They depend on the test sets alone and are kept in the cache folder.
    """
    folder = cache_folder() if cache is None else pathlib.Path(cache)
    digest = hashlib.sha256(f"{_VERSION} {list(REFERENCES)}".encode())
    for name, seen in sets.items():
        digest.update(f"{name} {config.observed}".encode())
        for field in dataclasses.fields(seen):
            digest.update(np.ascontiguousarray(getattr(seen, field.name)).tobytes())
    file = folder / f"rotation-references-{digest.hexdigest()[:16]}.json"
    if file.exists():
        try:
            return json.loads(file.read_text(encoding="utf-8"))
        except json.JSONDecodeError:
            pass  # damaged: compute it again
    out: dict[str, Any] = {name: {} for name in REFERENCES}
    for name, seen in sets.items():
        found = forecasts(_references, seen)
        for reference, predicted in found.items():
            out[reference][name] = errors(predicted, seen.truth, config.observed)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(file, out)
    return out

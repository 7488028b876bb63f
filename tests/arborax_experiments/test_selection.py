"""Which weights a run keeps."""

import dataclasses
from typing import Any

import jax.random as jr
import numpy as np
import pytest

from arborax.datasets import RoughBergomi
from arborax.training import FitResult, History, Timings
from arborax_experiments.rough_bergomi import RoughBergomiTask, selection
from arborax_experiments.rough_bergomi.selection import Validation


@pytest.fixture(scope="module")
def validation():
    config = RoughBergomiTask().configure("arborax", "smoke")
    assert config.keep == "last"
    splits = RoughBergomi(steps=64).sample(1280, key=jr.PRNGKey(0)).split()
    return Validation(config, splits)


def fitted(values: list[float], stop: Any = "steps") -> FitResult:
    records = [
        {"step": 10 * k, "metric": v, "seconds": float(k)} for k, v in enumerate(values)
    ]
    best = int(np.argmin(values))
    return FitResult(
        model="best",
        last="last",
        history=History(validation=records),
        stop=stop,
        message="",
        steps=records[-1]["step"],
        best_step=10 * best,
        best_metric=values[best],
        failure=None,
        timings=Timings(0.0, 0.0, float(best), 9.0, 1.0),
    )


def test_the_truth_passes_and_another_law_does_not(validation, monkeypatch):
    """Fresh paths of the true law are below the bar, scaled ones above."""
    fresh = RoughBergomi(steps=64).sample(128, key=jr.PRNGKey(1)).values

    def value(paths):
        monkeypatch.setattr(selection, "generate", lambda *rest, key: paths)
        return validation(None, None, None)

    assert validation.truth.size == 8
    assert value(fresh) < validation.bar < value(1.5 * fresh)
    assert value(np.full_like(fresh, np.nan)) == float("inf")


def test_last_weights_are_kept_unless_validation_tells_them_apart(validation):
    bar = validation.bar
    good, bad = bar * 0.99, bar * 1.01
    kept = validation.keep(fitted([1.0, bar / 2, good]))
    assert (kept.model, kept.best_step, kept.best_metric) == ("last", 20, good)
    assert kept.timings.to_best == 2.0 and kept.timings.training == 9.0
    for other in (
        fitted([1.0, bar / 2, bad]),
        fitted([1.0, bar / 2, float("nan")]),
        fitted([1.0, bar / 2, good], stop="non-finite"),
    ):
        assert validation.keep(other) is other


def test_the_best_weights_are_kept_where_the_protocol_says_so(validation):
    config = dataclasses.replace(validation.config, keep="best")
    splits = RoughBergomi(steps=64).sample(320, key=jr.PRNGKey(0)).split()
    other = Validation(config, splits)
    result = fitted([1.0, 0.01, 0.02])
    assert other.bar is None and other.keep(result) is result

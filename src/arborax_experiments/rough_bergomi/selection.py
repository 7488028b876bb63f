"""Which weights of a run are kept: decided by validation paths alone."""

import dataclasses
from typing import Any

import numpy as np

from arborax.datasets import PathData, Splits
from arborax.training import FitResult

from ..generation import generate
from .config import Config
from .scores import all_summaries, column_ks


class Validation:
    """The validation metric of a run, and what the truth scores by it.

    The metric is the KS of generated paths against the validation paths, mean or median
    over the columns of `config.selection`. With `keep="last"` it is compared with that
    of training paths: among scores that the true law itself has, a lower one does not
    mean a better model, only one that is closer to these very validation paths.
    """

    def __init__(self, config: Config, splits: Splits):
        self.config = config
        self.ts = splits.validation.ts
        self.held_out = self._summaries(splits.validation)
        self.count = min(len(self.held_out), config.validation_paths)
        self.truth: np.ndarray | None = None
        if config.keep == "last":
            known, size = self._summaries(splits.train), self.count
            starts = range(0, len(known) - size + 1, size)
            self.truth = np.array([self._value(known[i : i + size]) for i in starts])

    def _summaries(self, data: PathData) -> np.ndarray:
        return all_summaries(data.values, self.config, data.brackets)

    def _value(self, found: np.ndarray) -> float:
        values = column_ks(found, self.held_out, self.config)
        if self.config.selection == "marginals":
            return float(np.median(values[: len(self.config.horizons)]))
        local = self.config.selection == "local"
        return float(np.mean(values if local else values[:-1]))

    def __call__(self, model: Any, validation: Any, key: Any) -> float:
        """The metric of [`arborax.fit`][]."""
        paths = generate(model, self.ts, self.count, key=key)
        if not np.isfinite(paths).all():
            return float("inf")
        return self._value(all_summaries(paths, self.config))

    @property
    def bar(self) -> float | None:
        """Mean and two standard deviations of the truth: above it, validation tells a
        model from the truth."""
        if self.truth is None:
            return None
        return float(self.truth.mean() + 2 * self.truth.std(ddof=1))

    def keep(self, fitted: FitResult) -> FitResult:
        """With `keep="last"`, the result with the weights at the end in place of the
        best ones, if validation does not tell them from the truth."""
        end = fitted.history.validation[-1]
        if self.bar is None or fitted.stop != "steps" or not end["metric"] <= self.bar:
            return fitted
        return dataclasses.replace(
            fitted,
            model=fitted.last,
            best_step=end["step"],
            best_metric=end["metric"],
            timings=dataclasses.replace(fitted.timings, to_best=end["seconds"]),
        )

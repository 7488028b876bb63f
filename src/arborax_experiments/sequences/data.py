"""Series with classes, split for training, validation and test."""

import dataclasses

import numpy as np

from arborax.datasets import LabelledSeries, read_aeon
from arborax.paths import SampledPath

from .config import Config


FOLDS = 5


@dataclasses.dataclass(frozen=True)
class Parts:
    """One split of a set.

    **Fields:**

    - `train`, `validation`, `test`: the parts. The official split has no validation
        part: the last weights are scored, and penalties come from the training part.
    """

    train: LabelledSeries
    validation: LabelledSeries | None
    test: LabelledSeries

    @property
    def channels(self) -> int:
        """Of the paths, time included."""
        return self.train.values.shape[-1] + 1

    @property
    def classes(self) -> int:
        return len(self.train.classes)

    def path(self, part: LabelledSeries) -> SampledPath:
        """Paths in units of the training part, over times from 0 to 1."""
        there = np.arange(self.train.values.shape[1]) < self.train.lengths[:, None]
        values = self.train.values[there]
        spread = values.std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        xs = ((part.values - values.mean(axis=0)) / spread).astype(np.float32)
        ts = np.linspace(0, 1, xs.shape[1], dtype=np.float32)
        return SampledPath(ts, xs, lengths=part.lengths.astype(np.int32))


def read_parts(config: Config) -> Parts:
    """Reads a set and splits it."""
    if not 0 <= config.fold <= FOLDS or (config.fold and config.split):
        raise ValueError(
            f"`fold` must be from 1 to {FOLDS}, and parts the official training part: "
            f"use it with split=0. Got fold={config.fold} and split={config.split}."
        )
    if config.plain and not config.model.startswith("linear"):
        raise ValueError(f"`plain` is for linear equations, not for {config.model!r}.")
    train, test = read_aeon(config.data, config.folder)
    if config.fold:
        order = np.random.default_rng(0).permutation(len(train.labels))
        parts = np.array_split(order, FOLDS)
        held = parts.pop(config.fold - 1)
        rest = np.sort(np.concatenate(parts))
        return Parts(chosen(train, rest), None, chosen(train, np.sort(held)))
    if not config.split:
        return Parts(train, None, test)
    both = joined(train, test)
    order = np.random.default_rng(config.split).permutation(len(both.labels))
    cuts = [round(share * len(order)) for share in (0.7, 0.85)]
    first, second, third = (chosen(both, rows) for rows in np.split(order, cuts))
    return Parts(first, second, third)


def joined(one: LabelledSeries, other: LabelledSeries) -> LabelledSeries:
    """The series of both parts."""
    names = ("values", "lengths", "labels")
    both = {n: np.concatenate([getattr(one, n), getattr(other, n)]) for n in names}
    return dataclasses.replace(one, **both)


def chosen(series: LabelledSeries, rows: np.ndarray) -> LabelledSeries:
    """Some of the series."""
    names = ("values", "lengths", "labels")
    return dataclasses.replace(series, **{n: getattr(series, n)[rows] for n in names})


def as_list(series: LabelledSeries) -> list[np.ndarray]:
    """The series without padding, each `(times, channels)`."""
    return [x[:n] for x, n in zip(series.values, series.lengths)]

"""Series with classes or heart rates, in one form."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from arborax.datasets import LabelledSeries, read_aeon, read_ppg_dalia

from .config import Config


@dataclasses.dataclass(frozen=True)
class Series:
    """Paths with a time channel and their targets.

    **Fields:**

    - `train`, `test`: pairs of paths `(series, times, channels)` and targets: numbers
        of classes `(series,)`, or heart rates `(series, rates)`. There is no validation
        part, because nothing is selected: the last weights are scored.
    - `outputs`: of the model.
    - `classes`: whether targets are classes.
    """

    train: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    outputs: int
    classes: bool

    @property
    def channels(self) -> int:
        """Number of channels, time included."""
        return self.train[0].shape[-1]


def read_series(config: Config) -> Series:
    """Reads the data of a configuration, standardised by the training part."""
    dtype = np.float64 if config.double else np.float32
    if config.data == "PPG-DaLiA":
        try:
            data = read_ppg_dalia(config.folder or "PPG_FieldStudy", dtype=dtype)
        except FileNotFoundError as error:
            message = f"give `--set folder=FOLDER`. {error}"
            raise FileNotFoundError(message) from error
        parts = [(_timed(x, dtype), y) for x, y in (data.train, data.test)]
        return Series(parts[0], parts[1], 1, False)
    train, test = read_aeon(config.data, config.folder)
    scale = _moments(train)
    first, second = (
        (_timed(_standard(part, scale, _longest(train, test)), dtype), part.labels)
        for part in (train, test)
    )
    return Series(first, second, len(train.classes), True)


def _longest(*parts: LabelledSeries) -> int:
    return max(part.values.shape[1] for part in parts)


def _moments(part: LabelledSeries) -> tuple[np.ndarray, np.ndarray]:
    there = np.arange(part.values.shape[1]) < part.lengths[:, None]
    values = part.values[there]
    return values.mean(axis=0), values.std(axis=0) + 1e-12


def _standard(part: LabelledSeries, scale, times: int) -> np.ndarray:
    values = (part.values - scale[0]) / scale[1]
    return np.pad(values, [(0, 0), (0, times - values.shape[1]), (0, 0)], mode="edge")


def _timed(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Paths with time from 0 to 1 as the first channel."""
    clock = np.linspace(0, 1, values.shape[1])[None, :, None]
    clock = np.broadcast_to(clock, (*values.shape[:2], 1))
    return np.concatenate([clock, values], axis=-1).astype(dtype)


def loss_of(series: Series, outputs: Any, targets: Any) -> Any:
    """Cross-entropy of the last output, or mean squared error of outputs put on the
    times of the rates by linear interpolation."""
    if series.classes:
        logits = outputs[:, -1]
        best = jnp.max(logits, axis=1, keepdims=True)
        total = jnp.log(jnp.sum(jnp.exp(logits - best), axis=1)) + best[:, 0]
        chosen = jnp.take_along_axis(logits, targets[:, None], axis=1)[:, 0]
        return jnp.mean(total - chosen)
    count, rates = outputs.shape[1], targets.shape[1]
    place = np.linspace(0, count - 1, rates)
    low = np.clip(place.astype(int), 0, count - 2)
    part = jnp.asarray(place - low, outputs.dtype)[None]
    values = outputs[:, low, 0] * (1 - part) + outputs[:, low + 1, 0] * part
    return jnp.mean((values - targets) ** 2)

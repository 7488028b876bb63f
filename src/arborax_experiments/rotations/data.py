"""Simulated windows for training and validation."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax.random as jr
import numpy as np
from jaxtyping import Float

from arborax.datasets import DrivenRotation, FreeRotation
from arborax.training import metrics

from .config import Config
from .windows import observe, Observed, split_rotations, Windows


FREE_STEP = 0.1  # seconds


@dataclasses.dataclass(frozen=True)
class Kind:
    """One kind of motion to train on.

    **Fields:**

    - `share`: share of the training windows of this kind.
    - `step`: seconds between samples, or 1 if times count samples.
    - `train`, `validation`: clean windows.
    """

    share: float
    step: float
    train: Windows
    validation: Windows


@dataclasses.dataclass(frozen=True)
class Training:
    """Windows for training and validation.

    **Fields:**

    - `kinds`: free rotation, then driven rotation at each rate.
    - `scales`: the scales of errors for each kind, `(windows,)`.
    - `validation`, `validation_scales`: observed windows and their scales.
    """

    kinds: tuple[Kind, ...]
    scales: tuple[Float[np.ndarray, " _"], ...]
    validation: Observed
    validation_scales: Float[np.ndarray, " _"]

    def batch(self, config: Config, key: Any, step: int) -> tuple:
        """Times, rotations and mask of observations, all times, truth and scales of a
        training batch; a function of key and step alone."""
        entropy = [int(k) for k in np.asarray(jr.key_data(key)).ravel()]
        rng = np.random.default_rng([*entropy, step])
        parts, scales = [], []
        counts = shared(config.batch, [kind.share for kind in self.kinds])
        for kind, scale, count in zip(self.kinds, self.scales, counts):
            rows = rng.integers(len(kind.train), size=count)
            parts.append(kind.train[rows])
            scales.append(scale[rows])
        steps = np.repeat([kind.step for kind in self.kinds], counts)
        windows, scale = np.concatenate(parts), np.concatenate(scales)
        seen, scale = corrupt(windows, scale, steps, config, rng)
        return seen.ts, seen.rotations, seen.mask, seen.times, seen.truth, scale


def make_training(config: Config) -> Training:
    """Simulates the training and validation windows."""
    kinds = make_kinds(config)
    scales = tuple(error_scale(kind.train, config.observed) for kind in kinds)
    counts = shared(512, [kind.share for kind in kinds])
    parts = [thinned(kind.validation, n) for kind, n in zip(kinds, counts)]
    held = np.concatenate(parts)
    steps = np.repeat([kind.step for kind in kinds], [len(part) for part in parts])
    rng = np.random.default_rng(config.data_seed + 2)
    order = rng.permutation(len(held))
    held, steps = held[order], steps[order]
    scale = error_scale(held, config.observed)
    return Training(kinds, scales, *corrupt(held, scale, steps, config, rng))


def make_kinds(config: Config) -> tuple[Kind, ...]:
    """Free rotation, and driven rotation at each rate, if there is any."""
    free = split_rotations(
        free_rotations(config), config.points, config.stride, config.split
    )
    kinds = [_kind(1 - config.driven, FREE_STEP, free, config)]
    rates = config.train_rates if config.driven > 0 else ()
    for number, rate in enumerate(rates):
        law = DrivenRotation(
            step=1 / rate, times=4 * config.points, correlation=config.correlation
        )
        count = max(4, config.trajectories)
        # A seed for each rate: equal velocities would add nothing.
        driven = law.sample(count, seed=config.data_seed + 1 + 1000 * number)
        parts = split_rotations(driven.rotations, config.points, config.stride)
        kinds.append(_kind(config.driven / len(rates), 1 / rate, parts, config))
    return tuple(kinds)


def _kind(share: float, step: float, parts: tuple, config: Config) -> Kind:
    train, validation, _ = (p.astype(np.float32) for p in parts)
    return Kind(share, unit(step, config), train, validation)


def unit(step: float, config: Config) -> float:
    """The time between samples that models are given."""
    return step if config.seconds else 1.0


def shared(total: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers in these shares that add up to the total."""
    ends = np.round(total * np.cumsum([0.0, *shares])).astype(int)
    return [int(n) for n in np.diff(ends)]


def free_rotations(config: Config) -> np.ndarray:
    """Simulated free rotation, 10 s at 10 Hz."""
    law = FreeRotation(step=FREE_STEP, times=102, kinematics=config.kinematics)
    return law.sample(config.trajectories, seed=config.data_seed).rotations


def error_scale(windows: Windows, observed: int) -> Float[np.ndarray, " _"]:
    """The smaller mean error (rad) of holding the last clean observation and of
    continuing the last clean increment."""
    last, before = windows[:, observed - 1], windows[:, observed - 2]
    step = np.swapaxes(before, 1, 2) @ last
    held, moving = [], []
    guess = last
    for k in range(observed, windows.shape[1]):
        guess = guess @ step
        held.append(metrics.rotation_error(windows[:, k], last))
        moving.append(metrics.rotation_error(windows[:, k], guess))
    best = np.minimum(np.mean(held, axis=0), np.mean(moving, axis=0))
    return np.radians(best).astype(windows.dtype)


def corrupt(
    windows: Windows,
    scale: np.ndarray,
    steps: np.ndarray,
    config: Config,
    rng: np.random.Generator,
) -> tuple[Observed, np.ndarray]:
    """Observations with noise of a random level, half of the windows with gaps, and
    scales that allow for the noise."""
    count = len(windows)
    gaps = rng.permutation(count) < count // 2
    level = config.train_noise * rng.random(count)
    seen = observe(
        windows,
        config.observed,
        noise=level,
        drop=config.train_drop,
        step=steps,
        seed=int(rng.integers(1 << 31)),
    )
    mask = seen.mask | ~gaps[:, None]
    floor = np.float32(0.002)
    scale = (scale + 2 * level + floor).astype(windows.dtype)
    return dataclasses.replace(seen, mask=mask), scale


def thinned(windows: Windows, most: int, seed: int = 0) -> Windows:
    """At most `most` windows, drawn without repetition."""
    if len(windows) <= most:
        return windows
    rows = np.random.default_rng(seed).permutation(len(windows))[:most]
    return windows[rows]

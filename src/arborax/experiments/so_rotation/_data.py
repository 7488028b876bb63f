"""Windows to train on and to be scored on."""

import dataclasses
from typing import Any

import jax.random as jr
import numpy as np
from jaxtyping import Float

from ...datasets import (
    DrivenRotation,
    FreeRotation,
    integrate_gyroscope,
    observe,
    Observed,
    read_aeon,
    read_recordings,
    recorded_windows,
    resample,
    rotation_windows,
    split_rotations,
)
from ...training import metrics
from ._config import Config


Windows = Float[np.ndarray, "_ points 3 3"]


@dataclasses.dataclass(frozen=True)
class Task:
    """What a run needs of the data.

    **Fields:**

    - `train`: windows of free and of driven rotation.
    - `scales`: for each of them, the scale of its error, `(windows,)`.
    - `validation`, `validation_scales`: as observed, and scales.
    """

    train: tuple[Windows, ...]
    scales: tuple[Float[np.ndarray, " _"], ...]
    validation: Observed
    validation_scales: Float[np.ndarray, " _"]

    def batch(self, config: Config, key: Any, step: int) -> tuple:
        """A training batch; a function of key and step alone."""
        entropy = [int(k) for k in np.asarray(jr.key_data(key)).ravel()]
        rng = np.random.default_rng([*entropy, step])
        driven = int(round(config.driven * config.batch))
        parts, scales = [], []
        for windows, scale, count in zip(
            self.train, self.scales, (config.batch - driven, driven)
        ):
            rows = rng.integers(len(windows), size=count)
            parts.append(windows[rows])
            scales.append(scale[rows])
        windows, scale = np.concatenate(parts), np.concatenate(scales)
        return as_arrays(*corrupt(windows, scale, config, rng))


def make_task(config: Config) -> Task:
    """Simulates the training and validation windows."""
    free = split_rotations(
        free_rotations(config), config.points, config.stride, config.split
    )
    times = 4 * config.points
    count = max(4, config.trajectories)
    driven = DrivenRotation(times=times).sample(count, config.data_seed + 1)
    parts = split_rotations(driven.rotations, config.points, config.stride)
    train = tuple(p[0].astype(np.float32) for p in (free, parts))
    scales = tuple(error_scale(windows, config.observed) for windows in train)
    held = np.concatenate(
        [thinned(p[1].astype(np.float32), 256) for p in (free, parts)]
        if config.driven > 0
        else [thinned(free[1].astype(np.float32), 512)]
    )
    rng = np.random.default_rng(config.data_seed + 2)
    held = held[rng.permutation(len(held))]
    seen, scale = corrupt(held, error_scale(held, config.observed), config, rng)
    return Task(train, scales, seen, scale)


def free_rotations(config: Config) -> np.ndarray:
    """Simulated free rotation, 10 s at 10 Hz."""
    law = FreeRotation(times=102, kinematics=config.kinematics)
    return law.sample(config.trajectories, config.data_seed).rotations


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
    windows: Windows, scale: np.ndarray, config: Config, rng: np.random.Generator
) -> tuple[Observed, np.ndarray]:
    """Observations with noise of a random level, half of the windows with gaps, and
    scales that know of the noise."""
    count = len(windows)
    gaps = rng.permutation(count) < count // 2
    level = config.train_noise * rng.random(count)
    seen = observe(
        windows,
        config.observed,
        noise=level,
        drop=config.train_drop,
        seed=int(rng.integers(1 << 31)),
    )
    mask = seen.mask | ~gaps[:, None]
    floor = np.float32(0.002)
    scale = (scale + 2 * level + floor).astype(windows.dtype)
    return dataclasses.replace(seen, mask=mask), scale


def as_arrays(seen: Observed, scale: np.ndarray) -> tuple:
    """What the objective takes."""
    return seen.ts, seen.rotations, seen.mask, seen.truth, scale


def thinned(windows: Windows, most: int, seed: int = 0) -> Windows:
    """At most so many windows, drawn without repetition."""
    if len(windows) <= most:
        return windows
    rows = np.random.default_rng(seed).permutation(len(windows))[:most]
    return windows[rows]


def test_sets(config: Config) -> dict[str, Observed]:
    """All that models are scored on, by name.

    `free` with each level of noise, also with gaps; each recording of `config.folder`
    at each rate; orientations integrated from the gyroscopes of `config.motions`.
    """
    windows = split_rotations(
        free_rotations(config), config.points, config.stride, config.split
    )[2]
    windows = thinned(windows.astype(np.float32), config.test_windows)
    sets = {}
    for level in config.noise:
        for drop in sorted({0.0, config.drop}):
            name = f"free, noise {level:g}" + (", gaps" if drop else "")
            sets[name] = observe(
                windows, config.observed, noise=level, drop=drop, seed=7
            )
    for name, windows in real_windows(config).items():
        for level in config.real_noise:
            sets[f"{name}, noise {level:g}"] = observe(
                windows, config.observed, noise=level, seed=7
            )
    return sets


def real_windows(config: Config) -> dict[str, Windows]:
    """Windows of recordings, by name and rate."""
    found: dict[str, Windows] = {}
    if config.folder is not None:
        for recording in read_recordings(config.folder):
            for rate in config.rates:
                pieces = resample(recording, rate, config.gap)
                found[f"{recording.name}, {rate:g} Hz"] = recorded_windows(
                    pieces, config.points
                )
    if config.motions is not None:
        series = read_aeon("BasicMotions", config.motions)[1]
        turns = integrate_gyroscope(series.values[..., 3:], 0.1)
        for number, label in enumerate(series.classes):
            chosen = turns[series.labels == number]
            name = f"BasicMotions {label}, 10 Hz"
            found[name] = rotation_windows(chosen, config.points, config.stride)
    return {
        name: thinned(windows.astype(np.float32), config.real_windows)
        for name, windows in found.items()
        if len(windows)
    }

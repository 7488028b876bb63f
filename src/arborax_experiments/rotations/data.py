"""Simulated windows to train on and to validate with."""

import dataclasses
from typing import Any

import jax.random as jr
import numpy as np
from jaxtyping import Float

from arborax.datasets import FreeRotation

from .config import Config
from .motions import broad_motion
from .windows import observe, Observed, rotation_windows, split_rotations, Windows


FREE_STEP = 0.1  # seconds


@dataclasses.dataclass(frozen=True)
class Training:
    """Windows to train on and to validate with.

    **Fields:**

    - `windows`: clean windows to train on.
    - `steps`: seconds between samples of each, or 1 if times count samples.
    - `validation`: windows as observed.
    """

    windows: Windows
    steps: Float[np.ndarray, " _"]
    validation: Observed

    def batch(self, config: Config, key: Any, step: int) -> tuple:
        """Times, rotations and mask of observations, all times and truth of a training
        batch; a function of key and step alone."""
        entropy = [int(k) for k in np.asarray(jr.key_data(key)).ravel()]
        rng = np.random.default_rng([*entropy, step])
        rows = rng.integers(len(self.windows), size=config.batch)
        seen = corrupt(self.windows[rows], self.steps[rows], config, rng)
        return seen.ts, seen.rotations, seen.mask, seen.times, seen.truth


def make_training(config: Config) -> Training:
    """Simulates the training and validation windows."""
    if config.law == "free":
        free = split_rotations(
            free_rotations(config), config.points, config.stride, config.split
        )
        parts = [(w, np.full(len(w), unit(FREE_STEP, config))) for w in free[:2]]
    else:
        parts = [_broad(config, part) for part in range(2)]
    (train, steps), (held, held_steps) = parts
    chosen = thinned(np.arange(len(held)), 512)
    rng = np.random.default_rng(config.data_seed + 2)
    rows = chosen[rng.permutation(len(chosen))]
    validation = corrupt(held[rows].astype(np.float32), held_steps[rows], config, rng)
    return Training(train.astype(np.float32), steps, validation)


def _broad(config: Config, part: int) -> tuple[Windows, np.ndarray]:
    """Windows of the broad law at all rates, and their steps; another seed for each
    rate and part. Validation has a quarter of the motions."""
    count = max(8, config.trajectories // (4 if part else 1))
    windows, steps = [], []
    for number, rate in enumerate(config.rates):
        seed = [config.data_seed, part, number]
        motions = broad_motion(count, 2 * config.points, rate, seed=seed)
        windows.append(rotation_windows(motions, config.points, config.points))
        steps.append(np.full(len(windows[-1]), unit(1 / rate, config)))
    return np.concatenate(windows), np.concatenate(steps)


def unit(step: float, config: Config) -> float:
    """The time between samples as models are told it."""
    return step if config.seconds else 1.0


def free_rotations(config: Config) -> np.ndarray:
    """Simulated free rotation, 10 s at 10 Hz."""
    law = FreeRotation(step=FREE_STEP, times=102, kinematics=config.kinematics)
    return law.sample(config.trajectories, seed=config.data_seed).rotations


def corrupt(
    windows: Windows, steps: np.ndarray, config: Config, rng: np.random.Generator
) -> Observed:
    """Observations with noise of a random level, half of the windows with gaps."""
    count = len(windows)
    gaps = rng.permutation(count) < count // 2
    seen = observe(
        windows,
        config.observed,
        noise=config.train_noise * rng.random(count),
        drop=config.train_drop,
        step=steps,
        seed=int(rng.integers(1 << 31)),
    )
    return dataclasses.replace(seen, mask=seen.mask | ~gaps[:, None])


def thinned(windows: np.ndarray, most: int, seed: int = 0) -> np.ndarray:
    """At most `most` windows, drawn without repetition."""
    if len(windows) <= most:
        return windows
    rows = np.random.default_rng(seed).permutation(len(windows))[:most]
    return windows[rows]

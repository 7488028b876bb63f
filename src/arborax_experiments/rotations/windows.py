"""Windows of orientations to forecast, their splits and their observations."""

import dataclasses
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float


Windows = Float[np.ndarray, "_ points 3 3"]


def rotation_windows(
    rotations: Float[np.ndarray, "trajectories times 3 3"],
    points: int = 21,
    stride: int = 1,
) -> Windows:
    """All windows of `points` samples, `stride` samples apart, trajectory by
    trajectory."""
    if rotations.ndim != 4:
        raise ValueError(
            "`rotations` must be (trajectories, times, 3, 3), got shape "
            f"{rotations.shape}: give a single trajectory as `rotations[None]`."
        )
    count = rotations.shape[1]
    if stride < 1 or not 1 <= points <= count:
        raise ValueError(
            f"a window of {points} points, then {stride} on, does not fit into {count}."
        )
    starts = np.arange(0, count - points + 1, stride)
    index = starts[:, None] + np.arange(points)
    return rotations[:, index].reshape(-1, points, 3, 3)


def split_rotations(
    rotations: Float[np.ndarray, "trajectories times 3 3"],
    points: int = 21,
    stride: int = 1,
    by: Literal["trajectory", "time"] = "trajectory",
) -> tuple[Windows, Windows, Windows]:
    """Training, validation and test windows, 80 : 10 : 10.

    **Arguments:**

    - `rotations`: simulated trajectories.
    - `points`, `stride`: of windows.
    - `by`: `"trajectory"`: no trajectory is in two parts. `"time"`: as published, the
        first 80 % of every trajectory are for training, and validation and test begin
        `points` samples before their part, so that they share samples with it.
    """
    if by == "trajectory":
        n = len(rotations)
        parts = np.split(rotations, [int(0.8 * n), int(0.9 * n)])
    elif by == "time":
        n = rotations.shape[1]
        first, second = int(0.8 * n), int(0.9 * n)
        parts = [
            rotations[:, :first],
            rotations[:, max(0, first - points) : second],
            rotations[:, max(0, second - points) :],
        ]
    else:
        raise ValueError(f"`by` is 'trajectory' or 'time', got {by!r}.")
    train, validation, test = (rotation_windows(p, points, stride) for p in parts)
    return train, validation, test


@dataclasses.dataclass(frozen=True)
class Observed:
    """Windows as a forecaster sees them.

    **Fields:**

    - `ts`: times of the observations, `(windows, observed)`.
    - `rotations`: what was seen then, `(windows, observed, 3, 3)`.
    - `mask`: which of them were made, `(windows, observed)`.
    - `times`: times of all points in the same unit, `(windows, points)`; the first is
        zero.
    - `truth`: the clean windows, `(windows, points, 3, 3)`.
    """

    ts: Float[np.ndarray, "windows observed"]
    rotations: Float[np.ndarray, "windows observed 3 3"]
    mask: Bool[np.ndarray, "windows observed"]
    times: Float[np.ndarray, "windows points"]
    truth: Float[np.ndarray, "windows points 3 3"]


def observe(
    windows: Windows,
    observed: int = 12,
    *,
    noise: float | Float[np.ndarray, " windows"] = 0.0,
    drop: float = 0.0,
    step: float | Float[np.ndarray, " windows"] = 1.0,
    seed: int = 0,
) -> Observed:
    """Observations of the first samples of each window; targets stay clean.

    **Arguments:**

    - `windows`: clean rotations.
    - `observed`: number of observed samples.
    - `noise`: standard deviation of the Gaussian rotation vectors (rad) applied in the
        body frame, one for all or one for each window.
    - `drop`: share of the observations, rounded, that is removed at random. At least
        two remain.
    - `step`: seconds between samples, one for all or one for each window; by default
        1, so that times count samples.
    - `seed`: of NumPy's generator.
    """
    count, points = windows.shape[:2]
    if not 2 <= observed <= points:
        raise ValueError(f"`observed` must be in 2..{points}, got {observed}.")
    if not 0 <= drop < 1:
        raise ValueError(f"`drop` is a part of the samples in [0, 1), got {drop}.")
    rng = np.random.default_rng(seed)
    size = np.broadcast_to(np.asarray(noise, np.float64), (count,))
    if not (size >= 0).all():
        raise ValueError(f"`noise` must not be negative, got {noise}.")
    dtype = windows.dtype
    unit = np.broadcast_to(np.asarray(step, dtype), (count,))
    if not (unit > 0).all():
        raise ValueError(f"`step` must be positive, got {step}.")
    vectors = size[:, None, None] * rng.standard_normal((count, observed, 3))
    shake = rotation_matrices(vectors)
    gone = min(int(round(drop * observed)), observed - 2)
    ranks = np.argsort(np.argsort(rng.random((count, observed)), axis=1), axis=1)
    times = unit[:, None] * np.arange(points, dtype=dtype)
    seen = windows[:, :observed] @ shake.astype(dtype)
    return Observed(times[:, :observed], seen, ranks >= gone, times, windows)


def rotation_matrices(
    vectors: Float[np.ndarray, "*batch 3"],
) -> Float[np.ndarray, "*batch 3 3"]:
    """Rotations of rotation vectors, through unit quaternions."""
    half = np.linalg.norm(vectors, axis=-1, keepdims=True) / 2
    q = np.concatenate([np.sinc(half / np.pi) * vectors / 2, np.cos(half)], axis=-1)
    x, y, z, w = np.moveaxis(q / np.linalg.norm(q, axis=-1, keepdims=True), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)

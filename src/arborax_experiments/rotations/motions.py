"""Simulated motion to train on: a broad law, not that of any recording."""

from typing import Any

import numpy as np
from jaxtyping import Float

from arborax.datasets import FreeRotation, integrate_gyroscope

from .windows import rotation_matrices


# The kinds of motion and their shares. `anchored` swings about an orientation, as a
# hand does; a velocity of the others need not come back.
KINDS = {
    "anchored": 0.7,
    "free": 0.1,
    "periodic": 0.1,
    "driven": 0.02,
    "paused": 0.02,
    "damped": 0.02,
    "kicked": 0.02,
    "vehicle": 0.02,
}
SUBSTEPS = 4


def broad_motion(
    count: int, times: int, rate: float, *, seed: Any
) -> Float[np.ndarray, "count times 3 3"]:
    """Orientations of `count` motions of all `KINDS` at `rate` samples per second.

    Sizes are log-uniform from 0.03 to 10 rad/s and differ between the axes, correlation
    times from 0.1 to 3 s; half of the motions oscillate. Free rotation has random
    moments of inertia.
    """
    rng = np.random.default_rng(seed)
    ends = np.round(count * np.cumsum([0.0, *KINDS.values()])).astype(int)
    parts = [
        _motion(kind, rng, int(number), times, rate)
        for kind, number in zip(KINDS, np.diff(ends))
        if number
    ]
    return np.concatenate(parts)


def broad_positions(
    count: int, times: int, rate: float, *, seed: Any
) -> Float[np.ndarray, "count times 3"]:
    """Positions (m) that swing about a place as `anchored` orientations do, with sizes
    log-uniform from 3 mm to 1 m."""
    rng = np.random.default_rng(seed)
    shape = (count, 1, 1)
    size = _log_uniform(rng, 0.003, 1, shape)
    axes = np.sqrt(3 * rng.dirichlet([1.0] * 3, count))[:, None]
    memory = _log_uniform(rng, 0.1, 3, shape)
    carrier = _log_uniform(rng, 0.5, 15, shape)
    carrier = np.where(rng.random(shape) < 0.5, 0.0, carrier)
    t = np.arange(times) / rate
    return size * axes * _process(rng, count, t, memory, carrier)


def _motion(kind: str, rng: np.random.Generator, n: int, times: int, rate: float):
    if kind == "free":
        return _free(rng, n, times, rate)
    step = 1 / (rate * SUBSTEPS)
    t = step * np.arange((times - 1) * SUBSTEPS + 1)
    size = _log_uniform(rng, 0.03, 10, (n, 1, 1))
    axes = np.sqrt(3 * rng.dirichlet([1.0] * 3, n))[:, None]
    memory = _log_uniform(rng, 0.1, 3, (n, 1, 1))
    carrier = _log_uniform(rng, 0.5, 15, (n, 1, 1))
    carrier = np.where(rng.random((n, 1, 1)) < 0.5, 0.0, carrier)
    if kind == "kicked":
        velocity = np.zeros((n, t.size, 3))
        for _ in range(5):
            since = t[:, None] - rng.uniform(-1, t[-1], (n, 1, 1))
            fall = np.where(since > 0, np.exp(-np.maximum(since, 0) / memory), 0)
            velocity += size * axes * rng.standard_normal((n, 1, 3)) * fall
        return integrate_gyroscope(velocity, step)[:, ::SUBSTEPS]
    wave = axes * _process(rng, n, t, memory, carrier)
    if kind == "anchored":
        angle = size * np.minimum(memory, 1 / np.maximum(carrier, 1e-9))
        start = rotation_matrices(np.pi * rng.uniform(-1, 1, (n, 1, 3)))
        return start @ rotation_matrices((np.minimum(angle, 1.2) * wave)[:, ::SUBSTEPS])
    if kind == "vehicle":  # one axis turns slowly, and everything shakes
        slow = _process(rng, n, t, _log_uniform(rng, 0.5, 5, (n, 1, 1)), 0.0)
        wave = slow * [0.03, 0.03, 0.3] + 0.02 * wave
    if kind == "periodic":  # steps: three harmonics of one phase
        rhythm = 2 * np.pi * _log_uniform(rng, 0.5, 4, (n, 1, 1)) * t[:, None]
        phase = rhythm + 0.5 * wave[..., :1] + rng.uniform(0, 2 * np.pi, (n, 1, 1))
        wave = 0.2 * wave
        for k in (1, 2, 3):
            a, b = rng.standard_normal((2, n, 1, 3)) * axes / (1.5 * k)
            wave += a * np.cos(k * phase) + b * np.sin(k * phase)
    if kind == "damped":
        wave = wave * np.exp(-t[:, None] / _log_uniform(rng, 0.1, 2, (n, 1, 1)))
    if kind == "paused":
        slow = _process(rng, n, t, _log_uniform(rng, 0.2, 2, (n, 1, 1)), 0.0)
        wave = wave / (1 + np.exp(-8 * slow[..., :1]))
    return integrate_gyroscope(size * wave, step)[:, ::SUBSTEPS]


def _process(rng, n: int, t: np.ndarray, memory, carrier, features: int = 12):
    """A Gaussian process of unit variance, Matérn 3/2, `(n, times, 3)`: random Fourier
    features, none faster than the grid can show."""
    limit = np.pi / (t[1] - t[0])
    spread = rng.standard_t(3, (n, 3, features)) / memory
    frequencies = np.clip(carrier + spread, -limit, limit)
    phases = rng.uniform(0, 2 * np.pi, (n, 3, features))
    total = np.zeros((n, t.size, 3))
    for k in range(features):
        angles = frequencies[:, None, :, k] * t[:, None] + phases[:, None, :, k]
        total += np.cos(angles)
    return np.sqrt(2 / features) * total


def _free(rng, n: int, times: int, rate: float) -> np.ndarray:
    """Free rotation, moments of inertia 1 : 1 + u : 1 + u + v, u and v uniform."""
    parts = []
    for number in np.diff(np.linspace(0, n, 9).astype(int)):
        if number:
            moments = tuple(0.1 * np.cumsum([1.0, *rng.random(2)]))
            speed = float(_log_uniform(rng, 0.1, 1, ()))
            law = FreeRotation(
                step=1 / rate,
                times=times,
                inertia=moments,
                velocity=speed,
                slowest=speed / 3,
            )
            seed = int(rng.integers(1 << 31))
            parts.append(law.sample(int(number), seed=seed).rotations)
    return np.concatenate(parts)


def _log_uniform(rng, low, high, shape: tuple):
    return np.exp(rng.uniform(np.log(low), np.log(high), shape))

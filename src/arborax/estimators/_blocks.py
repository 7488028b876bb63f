"""Batches of a few sizes, so that few programs are compiled."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from ..paths import SampledPath


def lengths_of(path: SampledPath) -> np.ndarray:
    """Number of valid points of each path `(n,)`."""
    lengths = path.num_times if path.lengths is None else path.lengths
    return np.broadcast_to(np.asarray(lengths), path.batch_shape)


def observed(path: SampledPath) -> np.ndarray:
    """Which values of a batch of paths are known, `(n, times, channels)`."""
    seen = np.arange(path.num_times) < lengths_of(path)[:, None]
    seen = np.broadcast_to(seen[..., None], path.xs.shape)
    if path.mask is None:
        return seen
    mask = np.asarray(path.mask)
    return seen & mask.reshape(*mask.shape[:2], -1)


def common_length(times: int, usual: int) -> int:
    """To how many points paths are padded: the `usual` number if at least half of it is
    needed, otherwise a power of two."""
    if usual < 2 * times and times <= usual:
        return usual
    return 1 << (times - 1).bit_length()


def blocks(
    path: SampledPath, usual: int, size: int = 256, fixed: bool = False
) -> Iterator[tuple[SampledPath, int]]:
    """The paths of a batch in blocks, with the number of paths that count.

    A block has `size`, a quarter or a sixteenth of it, filled up by its first path. All
    is done in NumPy, since JAX would compile a program for each shape.

    **Arguments:**

    - `path`: with batch shape `(n,)`.
    - `usual`: points of the training paths.
    - `fixed`: whether all paths are padded to `usual` points.
    """
    count, times = path.batch_shape[0], path.num_times
    target = usual if fixed else common_length(times, usual)
    lengths = lengths_of(path)

    def cut(values, rows: np.ndarray, core: int, steps: int) -> Any:
        if values is None:
            return None
        values = np.asarray(values)
        values = values[rows] if values.ndim > core else values
        axis = values.ndim - core
        width = [(0, 0)] * values.ndim
        width[axis] = (0, max(0, target - times))
        kept = values[(slice(None),) * axis + (slice(0, target - steps),)]
        return np.pad(kept, width, mode="edge" if kept.shape[axis] else "constant")

    for first in range(0, count, size):
        here = min(size, count - first)
        room = next(s for s in (-(-size // 16), -(-size // 4), size) if s >= here)
        rows = np.where(np.arange(room) < here, first + np.arange(room), first)
        mask = path.mask
        if mask is not None:
            mask = np.asarray(mask)
            mask = np.broadcast_to(mask.reshape(*mask.shape[:2], -1), path.xs.shape)
        arrays = dict(
            ts=cut(path.ts, rows, 1, 0),
            xs=cut(path.xs, rows, 2, 0),
            mask=cut(mask, rows, 2, 0),
            lengths=lengths[rows],
            brackets=cut(path.brackets, rows, 3, 1),
            ticks=cut(path.ticks, rows, 2, 1),
        )
        block = SampledPath(
            **jax.device_put(arrays),
            finite_variation=path.finite_variation,
            interpolated=path.interpolated,
            check=False,
        )
        yield block, here


def by_blocks(function: Callable, path: SampledPath, *options, **more) -> np.ndarray:
    """`function(block)`, an array with one row per path, for all paths."""
    parts = blocks(path, *options, **more)
    return np.concatenate([np.asarray(function(block))[:n] for block, n in parts])

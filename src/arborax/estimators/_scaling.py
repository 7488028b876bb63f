"""Units of the training data."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..paths import SampledPath
from ._blocks import lengths_of, observed


class Scaling(eqx.Module):
    """Mean and standard deviation of each channel, and the longest time span."""

    mean: np.ndarray
    deviation: np.ndarray
    span: np.ndarray
    dtype: Any = eqx.field(static=True)

    @staticmethod
    def of(path: SampledPath, standardise: bool, rows: Any = slice(None)) -> "Scaling":
        """Those of the observed values of some paths of a batch. Refuses a constant
        channel."""
        return Moments.of(path, rows).scaling(standardise)

    def apply(self, path: SampledPath) -> SampledPath:
        """The path in these units and in the dtype of the training data, its times
        from zero. May be traced."""
        mean = jnp.asarray(self.mean, self.dtype)
        deviation = jnp.asarray(self.deviation, self.dtype)
        outer = deviation[:, None] * deviation[None, :]

        def divided(values: Any, by: Any) -> Any:
            if values is None:
                return None
            lead = (1,) * (values.ndim - by.ndim)
            return values.astype(self.dtype) / by.reshape(lead + by.shape)

        centred = path.xs.astype(self.dtype)
        centred = centred - mean.reshape((1,) * (path.xs.ndim - 1) + (-1,))
        span = jnp.asarray(self.span, path.ts.dtype)
        return dataclasses.replace(
            path,
            ts=(path.ts - path.ts[..., :1]) / span,
            xs=divided(centred, deviation),
            brackets=divided(path.brackets, outer),
            ticks=divided(path.ticks, deviation),
            check=False,
        )


class Moments(NamedTuple):
    """Number, mean and sum of squared deviations of the observed values of each
    channel, and the longest time span: those of parts of the data add up."""

    count: np.ndarray
    mean: np.ndarray
    squares: np.ndarray
    span: np.ndarray
    dtype: Any

    @staticmethod
    def of(path: SampledPath, rows: Any = slice(None)) -> "Moments":
        """Those of the observed values of some paths of a batch."""
        xs, seen = np.asarray(path.xs)[rows].astype(np.float64), observed(path)[rows]
        ts = np.broadcast_to(np.asarray(path.ts, np.float64), path.xs.shape[:2])[rows]
        last = lengths_of(path)[rows, None] - 1
        last = np.take_along_axis(ts, last, axis=1)[:, 0]
        count = np.sum(seen, axis=(0, 1))
        mean = np.sum(xs, axis=(0, 1), where=seen) / np.maximum(count, 1)
        squares = np.sum(np.square(xs - mean), axis=(0, 1), where=seen)
        span = np.asarray(np.max(last - ts[:, 0]))
        return Moments(count, mean, squares, span, path.xs.dtype)

    def joined(self, other: "Moments") -> "Moments":
        """Those of two parts together."""
        count = self.count + other.count
        gap = other.mean - self.mean
        share = other.count / np.maximum(count, 1)
        squares = self.squares + other.squares + gap**2 * self.count * share
        span = np.maximum(self.span, other.span)
        return Moments(count, self.mean + gap * share, squares, span, self.dtype)

    def scaling(self, standardise: bool, names: Sequence[str] | None = None) -> Scaling:
        """The units; refuses a constant channel, by its name if it has one."""
        span = np.where(self.span > 0, self.span, 1.0)
        if not standardise:
            ones = np.ones(len(self.mean))
            return Scaling(0 * ones, ones, span, self.dtype)
        deviation = np.sqrt(self.squares / np.maximum(self.count, 1))
        flat = deviation <= 1e-9 * np.abs(self.mean)
        if flat.any():
            k = int(np.argmax(flat))
            name = names[k] if names is not None else f"x{k}"
            raise ValueError(
                f"channel {name!r} is constant in the training data and carries no "
                "information. Drop it, or pass standardise=False."
            )
        return Scaling(self.mean, deviation, span, self.dtype)

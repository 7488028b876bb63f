"""Units of the training data."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..paths import SampledPath
from ._blocks import lengths_of


class Scaling(eqx.Module):
    """Mean and standard deviation of each channel, and the longest time span."""

    mean: np.ndarray
    deviation: np.ndarray
    span: np.ndarray
    dtype: Any = eqx.field(static=True)

    @staticmethod
    def of(path: SampledPath, names: Sequence[str], standardise: bool) -> "Scaling":
        """Those of the observed values of a batch. Refuses a constant channel."""
        xs = np.asarray(path.xs, np.float64)
        seen = np.arange(path.num_times) < lengths_of(path)[:, None]
        seen = np.broadcast_to(seen[..., None], xs.shape)
        if path.mask is not None:
            mask = np.asarray(path.mask)
            seen = seen & mask.reshape(*mask.shape[:2], -1)
        ts = np.broadcast_to(np.asarray(path.ts, np.float64), xs.shape[:2])
        last = np.take_along_axis(ts, lengths_of(path)[:, None] - 1, axis=1)[:, 0]
        span = np.max(last - ts[:, 0])
        span = np.where(span > 0, span, 1.0)
        if not standardise:
            return Scaling(np.zeros(path.dim), np.ones(path.dim), span, path.xs.dtype)
        mean = np.mean(xs, axis=(0, 1), where=seen)
        deviation = np.std(xs, axis=(0, 1), where=seen)
        flat = deviation <= 1e-9 * np.abs(mean)
        if flat.any():
            raise ValueError(
                f"channel {names[int(np.argmax(flat))]!r} is constant in the training "
                "data and carries no information. Drop it, or pass standardise=False."
            )
        return Scaling(mean, deviation, span, path.xs.dtype)

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

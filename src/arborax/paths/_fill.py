"""Filling of missing values in plain arrays."""

from typing import Literal

from jaxtyping import Array, ArrayLike, Float

from .._inputs import as_values
from ._missing import observed_mask
from ._sampled import SampledPath


def fill_missing(
    ts: ArrayLike,
    xs: ArrayLike,
    mask: ArrayLike | None = None,
    method: Literal["linear", "forward"] = "linear",
) -> Float[Array, "*batch times channels"]:
    """Replace missing values, each channel on its own.

    Before its first observation a channel holds that observation, after the last one it
    holds the last: increments there are exactly zero. A channel without any observation
    is filled with zeros. Observed values are returned unchanged to the last bit, and
    what stands at missing places (NaN included) affects neither values nor gradients.
    Cost: `O(times x channels)`.

    **Arguments:**

    - `ts`: `(times,)` or `(..., times)`, increasing.
    - `xs`: `(..., times, channels)`.
    - `mask`: boolean, True where observed, `(..., times)` or `(..., times, channels)`.
        `None`: NaN marks a missing value.
    - `method`: `"linear"` interpolates in time between observations (a point missing in
        all channels then leaves the path and its canonical signature as if it had been
        removed, and the realised bracket too);
        `"forward"` carries the last observation forward, which uses no future value.

    **Returns:**

    Array of the shape and dtype of `xs` without missing values.
    """
    seen = observed_mask(as_values("xs", xs), mask)
    return SampledPath(ts, xs, seen).filled(method).xs

"""Checks of the options of drivers."""

from typing import Any

import numpy as np

from .._values import is_concrete


def as_hurst(hurst: Any) -> float:
    """A Hurst index as a Python float in (0, 1)."""
    if not is_concrete(hurst):
        raise TypeError(
            "`hurst` must be a Python number, got a traced array. The covariance is "
            "tabulated in double precision before tracing; mark it static."
        )
    if np.ndim(hurst) != 0:
        raise ValueError(f"`hurst` must be a scalar, got shape {np.shape(hurst)}.")
    hurst = float(hurst)
    if not 0.0 < hurst < 1.0:
        raise ValueError(f"`hurst` must lie strictly between 0 and 1, got {hurst}.")
    return hurst

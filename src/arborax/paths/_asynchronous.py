"""Channels that arrive at different times, as increments."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .._inputs import as_real
from ._sampled import SampledPath
from ._tables import merge


def merge_channels(
    times: Sequence[Any],
    values: Sequence[Any],
    *,
    finite_variation: Iterable[int] = (),
) -> SampledPath:
    """One path from channels that are observed at times of their own.

    Each observation is an increment of its channel at the time at which it arrives, and
    channels do not move in between. Events at the same time are one step. Realised
    brackets are the squares of these increments, and products of increments that arrive
    together (previous tick; for covariations of channels that never do, see
    `brackets` of [`arborax.SampledPath.realised_brackets`][]).

    !!! example

        ```python
        path = abx.merge_channels([t_trades, t_quotes], [trades, quotes])
        lam = abx.log_signature(path, abx.Ito(2, 2), brackets="realised")
        ```

    **Arguments:**

    - `times`: of each channel, strictly increasing. On the host: not traced.
    - `values`: of each channel, as many as it has times, finite.
    - `finite_variation`: as in [`arborax.SampledPath`][].

    **Returns:**

    A [`arborax.SampledPath`][] on the union of all times, without gaps. Before its
    first observation a channel has the value of that observation.
    """
    if len(times) != len(values) or not len(times):
        raise ValueError(
            "give one sequence of times and one of values per channel, got "
            f"{len(times)} and {len(values)}."
        )
    for k, x in enumerate(values):
        if not np.all(np.isfinite(as_real("values", x))):
            raise ValueError(f"the values of channel {k} must be finite.")
    ts, xs, mask, _ = merge(list(zip(times, values)))
    path = SampledPath(ts, xs, mask, finite_variation=finite_variation, check=False)
    return path.filled("forward")

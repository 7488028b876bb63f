"""Channels that arrive at different times, as increments."""

from collections.abc import Iterable, Sequence
from typing import Any

from ._sampled import SampledPath
from ._tables import merge


def merge_channels(
    times: Sequence[Any],
    values: Sequence[Any],
    *,
    finite_variation: Iterable[int] = (),
) -> SampledPath:
    """One path from channels that are observed at different times.

    Each observation is an increment of its channel at the time at which it arrives, and
    channels do not move in between. Events at the same time are one step. Realised
    brackets are the squares of these increments, and products of increments that arrive
    together (for covariations of channels that never do, see the estimators of
    [`arborax.SampledPath.realised_brackets`][]).

    !!! example

        ```python
        path = abx.merge_channels([t_trades, t_quotes], [trades, quotes])
        lam = abx.log_signature(path, abx.Ito(2, 2), brackets="realised")
        ```

    **Arguments:**

    - `times`, `values`: those of each channel, as in
        [`arborax.SampledPath.from_channels`][].
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
    ts, xs, mask, _ = merge(list(zip(times, values)))
    path = SampledPath(ts, xs, mask, finite_variation=finite_variation)
    return path.filled("forward")

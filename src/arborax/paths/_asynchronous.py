"""Channels that arrive at different times, as increments."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .._inputs import as_real
from ._sampled import SampledPath


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
    rows: list[Any] = []
    for k, (t, x) in enumerate(zip(times, values)):
        t, x = np.asarray(as_real("times", t)), np.asarray(as_real("values", x))
        if t.ndim != 1 or t.shape != x.shape or not t.size:
            raise ValueError(
                f"channel {k} must have as many values as times, one of each at least; "
                f"got shapes {x.shape} and {t.shape}."
            )
        if not (np.all(np.diff(t) > 0) and np.all(np.isfinite(t))):
            raise ValueError(f"the times of channel {k} must be strictly increasing.")
        if not np.all(np.isfinite(x)):
            raise ValueError(f"the values of channel {k} must be finite.")
        rows.append((t, x))
    union = np.unique(np.concatenate([t for t, _ in rows]))
    dtype = np.result_type(*(x.dtype for _, x in rows))
    xs = np.full((union.size, len(rows)), np.nan, dtype)
    for k, (t, x) in enumerate(rows):
        xs[np.searchsorted(union, t), k] = x
    path = SampledPath(
        union, xs, mask=~np.isnan(xs), finite_variation=finite_variation, check=False
    )
    return path.filled("forward")

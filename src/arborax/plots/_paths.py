"""Samples of paths: quantile bands, and data beside what a model generates."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._inputs import as_count, as_numbers
from ..paths import SampledPath
from ._style import (
    as_axes,
    as_names,
    Axes,
    colour_of,
    DATA,
    MODEL,
    Numbers,
    pyplot,
    styled,
)


@styled
def fan_chart(
    paths: SampledPath | Numbers,
    ts: Numbers | None = None,
    *,
    levels: Sequence[float] = (0.5, 0.9, 0.98),
    show: int = 0,
    channel: int | None = None,
    names: Sequence[str] | None = None,
    colour: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Quantile bands of a sample of paths over time, with the median.

    **Arguments:**

    - `paths`: `(n, times)`, `(n, times, channels)` or a [`arborax.SampledPath`][] on
        one grid of times. Missing values are left out of the quantiles.
    - `ts`: times `(times,)`; numbers of the points by default.
    - `levels`: the shares of the sample that the bands hold, between 0 and 1.
    - `show`: number of single paths to draw as well.
    - `channel`: which channel; `None`: all of them.
    - `names`: of the channels, for the legend.
    - `colour`: of the bands; by default one for each channel.
    - `ax`: where to draw; new axes by default.

    **Returns:**

    The axes.
    """
    times, values = as_sample("paths", paths, ts)
    show = as_count("show", show, 0)
    bands = sorted(levels, reverse=True)
    if not bands or not 0 < bands[-1] <= bands[0] < 1:
        raise ValueError(f"`levels` must lie between 0 and 1, got {tuple(levels)}.")
    if times.ndim > 1:
        if not (times == times[0]).all():
            raise ValueError(
                "the paths have different times, and quantiles need a common grid: "
                "interpolate first, e.g. `abx.interpolate(path).evaluate(grid)`."
            )
        times = times[0]
    if channel is not None:
        channel = as_channel(channel, values)
        values = values[..., channel : channel + 1]
    channels = values.shape[-1]
    labels = as_names(names, channels)
    ax = as_axes(ax)
    handles = []
    for k in range(channels):
        shade = colour or colour_of(k)
        seen = ~np.isnan(values[..., k]).all(axis=0)
        across, sample = times[seen], values[:, seen, k]
        for depth, level in enumerate(bands, 1):
            tails = [(1 - level) / 2, (1 + level) / 2]
            low, high = np.nanquantile(sample, tails, axis=0)
            ax.fill_between(across, low, high, color=shade, alpha=0.2, lw=0)
            if channels == 1:  # as dark as the bands are where they overlap
                mark = dict(fc=shade, alpha=1 - 0.8**depth, label=f"{100 * level:g} %")
                handles.append(pyplot().Rectangle((0, 0), 1, 1, **mark))
        middle = np.nanmedian(sample, axis=0)
        label = labels[k] if channels > 1 or names else "median"
        handles += ax.plot(across, middle, color=shade, label=label)
        if show:
            ax.plot(across, sample[:show].T, color=shade, lw=0.7, alpha=0.7)
    ax.set_xlabel("time" if ts is not None or _timed(paths) else "point")
    ax.margins(x=0)
    ax.legend(handles=handles, loc="best")
    return ax


@styled
def sample_paths(
    data: SampledPath | Numbers,
    generated: SampledPath | Numbers,
    ts: Numbers | None = None,
    *,
    count: int = 25,
    channel: int = 0,
    names: Sequence[str] = ("data", "generated"),
    ax: Axes | None = None,
) -> Axes:
    """The first paths of two samples in one picture, data in grey.

    **Arguments:**

    - `data`, `generated`: `(n, times)`, `(n, times, channels)` or a
        [`arborax.SampledPath`][]; sizes and times may differ.
    - `ts`: times `(times,)` of both; numbers of the points by default.
    - `count`: number of paths of each sample to draw.
    - `channel`: which channel.
    - `names`: of the two samples.
    - `ax`: where to draw; new axes by default.

    **Returns:**

    The axes.
    """
    count = as_count("count", count)
    pairs = list(as_names(names, 2, "samples"))
    samples = [
        as_sample("data", data, ts),
        as_sample("generated", generated, ts),
    ]
    for _, values in samples:
        channel = as_channel(channel, values)
    ax = as_axes(ax)
    for (times, values), name, colour in zip(samples, pairs, (DATA, MODEL)):
        lines = values[:count, :, channel].T
        across = times if times.ndim == 1 else times[:count].T
        drawn = ax.plot(across, lines, color=colour, lw=0.9, alpha=0.6)
        drawn[0].set_label(name)
    ax.set_xlabel("time" if ts is not None or _timed(data) else "point")
    ax.margins(x=0)
    for handle in ax.legend(loc="upper left").legend_handles:
        handle.set(alpha=1, linewidth=2)
    return ax


def as_channel(channel: Any, values: np.ndarray) -> int:
    """The number of a channel that the paths have."""
    channel = as_count("channel", channel, 0)
    if channel >= values.shape[-1]:
        raise ValueError(
            f"`channel` is {channel}, but the paths have {values.shape[-1]} "
            "channels, numbered from 0."
        )
    return channel


def as_sample(name: str, paths: Any, ts: Any) -> tuple[np.ndarray, np.ndarray]:
    """Times `(times,)` or `(n, times)` and values `(n, times, channels)`, NaN where
    nothing was observed."""
    if isinstance(paths, SampledPath):
        if ts is not None:
            raise ValueError(f"leave `ts` out: `{name}` is a path with its own times.")
        ts, values = np.asarray(paths.ts), _observed(paths)
    else:
        values = np.asarray(as_numbers(name, paths), np.float64)
        values = values[..., None] if values.ndim == 2 else values
    if values.ndim != 3 or 0 in values.shape:
        raise ValueError(
            f"`{name}` must have shape (n, times) or (n, times, channels), got "
            f"{np.shape(values)}. One path still needs its first axis: `{name}[None]`."
        )
    times = np.arange(values.shape[1]) if ts is None else np.asarray(ts)
    if times.shape not in (values.shape[1:2], values.shape[:2]):
        raise ValueError(
            f"`ts` must have shape {values.shape[1:2]}, one time for each point of "
            f"`{name}`, got {times.shape}."
        )
    return times, values


def _observed(path: SampledPath) -> np.ndarray:
    path = path.broadcast()
    values = np.array(path.xs, np.float64)
    if path.mask is not None:
        mask = np.asarray(path.mask)
        mask = mask[..., None] if mask.ndim < values.ndim else mask
        values[~np.broadcast_to(mask, values.shape)] = np.nan
    if path.lengths is not None:
        after = np.arange(path.num_times) >= np.asarray(path.lengths)[..., None]
        values[after] = np.nan
    return values


def _timed(paths: Any) -> bool:
    return isinstance(paths, SampledPath)

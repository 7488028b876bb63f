"""Samples from lists and data frames, as arrays; and back."""

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from .._imports import require
from .._inputs import as_choice, as_numbers
from .._values import rounded, shown, warn_if_days


NANOSECONDS = {"ms": 1e6, "s": 1e9, "min": 6e10, "h": 3.6e12, "D": 8.64e13}
Samples = tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]


def _as_rows(name: str, values: Any) -> np.ndarray:
    """`(times, channels)`, real floating, where only NaN is not finite."""
    array = np.asarray(as_numbers(name, values))
    if array.dtype.kind not in "biuf":
        raise TypeError(f"`{name}` must hold real numbers, got {array.dtype}.")
    array = array if array.dtype.kind == "f" else array.astype(float)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"`{name}` must have shape (times, channels) with at least one of each, "
            f"got {array.shape}."
        )
    if np.isinf(array).any():
        row = int(np.argmax(np.isinf(array).any(axis=1)))
        raise ValueError(f"`{name}` holds infinity in row {row}. Clean the data.")
    return array


def _as_times(name: str, times: Any) -> np.ndarray:
    """Times in float64; dates in seconds from the first one."""
    array = times if isinstance(times, np.ndarray) else np.asarray(times)
    if array.dtype.kind == "M":
        array = (array - array[:1]) / np.timedelta64(1, "s")
    elif array.dtype.kind == "m":
        array = array / np.timedelta64(1, "s")
    array = np.asarray(as_numbers(name, array), float)
    if array.ndim != 1:
        raise ValueError(f"`{name}` must have shape (times,), got {array.shape}.")
    return array


def _check_rising(what: str, times: np.ndarray, rows: np.ndarray | None = None) -> None:
    """Refuse times that are missing, repeated or out of order, with the row named."""
    rows = np.arange(times.size) if rows is None else rows
    if not np.isfinite(times).all():
        row = rows[np.argmin(np.isfinite(times))]
        raise ValueError(f"{what}: the time in row {row} is missing or not finite.")
    bad = np.diff(times) <= 0
    if bad.any():
        k = int(np.argmax(bad))
        order = "repeats that" if times[k + 1] == times[k] else "is earlier than that"
        raise ValueError(
            f"{what}: the time in row {rows[k + 1]} {order} in row {rows[k]} "
            f"({times[k + 1]:.10g} after {times[k]:.10g}). Sort the rows by time and "
            "drop repetitions."
        )


def stack(arrays: Any, times: Any = None) -> Samples:
    """Times, values, mask and lengths of series of unequal length."""
    if not isinstance(arrays, Sequence) or isinstance(arrays, str) or not len(arrays):
        raise TypeError(
            "`arrays` must be a list of arrays (times, channels), not empty, got "
            f"{shown(arrays)}."
        )
    rows = [_as_rows(f"arrays[{k}]", values) for k, values in enumerate(arrays)]
    for k, values in enumerate(rows):
        if values.shape[1] != rows[0].shape[1]:
            raise ValueError(
                f"`arrays[{k}]` has {values.shape[1]} channels and `arrays[0]` has "
                f"{rows[0].shape[1]}; all series need the same ones."
            )
    lengths = np.array([len(values) for values in rows])
    longest = int(lengths.max())
    if isinstance(times, list | tuple) and len(times) and np.ndim(times[0]) == 1:
        return _padded(_own_times(times, lengths), np.concatenate(rows), lengths)
    if times is None:
        ts = np.arange(longest, dtype=float)
    else:
        ts = _as_times("times", times)
        _check_rising("`times`", ts)
        if len(ts) < longest:
            raise ValueError(
                f"`times` has {len(ts)} times, but a series has {longest} rows."
            )
    return ts[:longest], *_padded(None, np.concatenate(rows), lengths)[1:]


def _warn_if_rounded(values: np.ndarray) -> None:
    """Values `(rows, channels)` far from zero lose digits in single precision."""
    found = rounded(values)
    if found.any():
        k = int(np.argmax(found))
        size = np.nanmax(np.abs(values[:, k]))
        unit = np.spacing(np.float32(size))
        warnings.warn(
            f"channel {k} has values up to {size:.3g}, which JAX rounds to multiples "
            f"of {unit:.2g}, too coarse for its steps. Subtract a constant from the "
            "channel, such as its first value, or switch on x64 mode "
            "(JAX_ENABLE_X64=1).",
            RuntimeWarning,
            stacklevel=5,
        )


def _padded(clock: Any, values: np.ndarray, lengths: np.ndarray) -> Samples:
    """Series that stand one below the other, side by side: values are filled up with
    zeros, times with the last one. Times that all series share are one row."""
    _warn_if_rounded(values)
    first, place = np.cumsum(lengths) - lengths, np.arange(lengths.max())
    inside = place < lengths[:, None]
    rows = first[:, None] + np.minimum(place, lengths[:, None] - 1)
    xs = values[rows]
    seen = ~np.isnan(xs)
    mask = None if seen[inside].all() else seen | ~inside[..., None]
    xs = np.where(seen & inside[..., None], xs, 0)
    ts = place if clock is None else clock[rows]
    longest = ts[np.argmax(lengths)]
    if ts.ndim == 2 and np.all((ts == longest) | ~inside):
        ts = longest
    return ts, xs, mask, None if inside.all() else lengths


def _own_times(times: Sequence[Any], lengths: np.ndarray) -> np.ndarray:
    """The times of all series, one below the other."""
    if len(times) != len(lengths):
        raise ValueError(
            f"`times` has {len(times)} parts for {len(lengths)} series; give one for "
            "each, or one array for all."
        )
    parts = [_as_times(f"times[{k}]", part) for k, part in enumerate(times)]
    for k, (part, length) in enumerate(zip(parts, lengths)):
        if len(part) != length:
            raise ValueError(
                f"`times[{k}]` has {len(part)} times, but `arrays[{k}]` has {length} "
                "rows."
            )
        _check_rising(f"`times[{k}]`", part)
    return np.concatenate(parts)


def merge(series: Any) -> Samples:
    """One path from channels that have times of their own."""
    if not isinstance(series, Sequence) or not len(series):
        raise TypeError(
            "`series` must be a list of pairs (times, values), one per channel, got "
            f"{shown(series)}."
        )
    clocks, columns = [], []
    for k, (times, values) in enumerate(_from_one_date(series)):
        times = _as_times(f"times of channel {k}", times)
        _check_rising(f"channel {k}", times)
        values = _as_rows(f"values of channel {k}", values)
        if values.shape != (len(times), 1):
            raise ValueError(
                f"channel {k} has {len(times)} times and values of shape "
                f"{values.shape}; it needs one value per time."
            )
        clocks.append(times)
        columns.append(values[:, 0])
    ts = np.unique(np.concatenate(clocks))
    dtype = np.result_type(*{column.dtype for column in columns})
    xs = np.full((len(ts), len(columns)), np.nan, dtype)
    for k, (times, column) in enumerate(zip(clocks, columns)):
        xs[np.searchsorted(ts, times), k] = column
    mask = ~np.isnan(xs)
    return ts, np.where(mask, xs, 0), mask, None


def _from_one_date(series: Sequence[Any]) -> Sequence[Any]:
    """The pairs, with dates counted from the first date of all channels."""
    dates = [np.asarray(times) for times, _ in series]
    if not all(times.dtype.kind == "M" and times.size for times in dates):
        return series
    first = np.fmin.reduce(np.concatenate([times.ravel() for times in dates]))
    return [(times - first, values) for times, (_, values) in zip(dates, series)]


def read_frame(
    df: Any,
    time: str | None,
    group: str | None,
    channels: Sequence[str] | None,
    unit: str,
    origin: Literal["group", "frame"],
) -> Samples:
    """Times, values, mask and lengths of the rows of a data frame."""
    nw = require("narwhals", "sklearn", "SampledPath.from_dataframe")
    as_choice("unit", unit, tuple(NANOSECONDS))
    as_choice("origin", origin, ("group", "frame"))
    try:
        frame = nw.from_native(df, eager_only=True)
    except TypeError:
        kind = type(df).__name__
        raise TypeError(
            f"`df` must be a data frame of pandas, polars or pyarrow, got a {kind}."
            + (" Collect it first." if "Lazy" in kind else "")
        ) from None
    names = list(frame.columns)
    index = getattr(nw.maybe_get_index(frame), "names", [])
    if len(index) > 1 and None in (time, group):
        raise ValueError(
            f"the frame has an index of {len(index)} levels, {shown(list(index))}. Use "
            "`df.reset_index()`, and say which column is `time` and which is `group`."
        )
    channels = [channels] if isinstance(channels, str) else channels
    if channels is None:
        channels = [name for name in names if name not in (time, group)]
    for name in channels:
        if [*channels].count(name) > 1:
            raise ValueError(f"`channels` names {name!r} twice; each is one column.")
    for name in (time, group, *channels):
        if name is not None and name not in names:
            hint = " It is in the index: use `df.reset_index()`." * (name in index)
            raise ValueError(
                f"unknown column {name!r}; the frame has {shown(names)}.{hint}"
            )
    if not channels or not len(frame):
        raise ValueError(
            f"the frame has {len(frame)} rows and {len(channels)} channels; a path "
            "needs at least one of each."
        )
    columns = [_column(nw, frame[name]) for name in channels]
    values = np.stack(columns, axis=1)
    if np.isinf(values).any():
        row, column = np.argwhere(np.isinf(values))[0]
        raise ValueError(
            f"column {channels[column]!r} holds infinity in row {row}. Clean the data."
        )
    times, tick = _times(nw, frame, time)
    if group is None:
        return _one(times, values, tick, unit)
    missing = np.asarray(frame[group].is_null().to_numpy(), bool)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(f"column {group!r} has no value in row {row}.")
    labels, codes = _groups(frame[group].to_numpy())
    rows, lengths = np.argsort(codes, kind="stable"), np.bincount(codes)
    first = np.cumsum(lengths) - lengths
    if lengths.min() == 1:
        k = int(np.argmin(lengths))
        raise ValueError(
            f"group {labels[k]!r} has one row only, row {rows[first[k]]}; a path needs "
            "at least two. Drop the group."
        )
    known = np.bincount(codes, ~np.isnan(values).all(axis=1))
    if not known.all():
        k = int(np.argmin(known))
        raise ValueError(
            f"group {labels[k]!r} has no values, all are missing from row "
            f"{rows[first[k]]} on. Drop the group."
        )
    if time is None and not tick:
        clock = np.arange(len(rows)) - np.repeat(first, lengths)
        return _padded(clock.astype(float), values[rows], lengths)
    clock = times[rows]
    start = np.repeat(clock[first], lengths) if origin == "group" else np.min(times)
    clock = _seconds(clock, tick, unit, start)
    bad = ~np.isfinite(clock)
    bad[1:] |= (np.diff(clock) <= 0) & (np.diff(codes[rows]) == 0)
    if bad.any():
        k = codes[rows[np.argmax(bad)]]
        part = slice(first[k], first[k] + lengths[k])
        _check_rising(f"group {labels[k]!r}", clock[part], rows[part])
    return _padded(clock, values[rows], lengths)


def _groups(column: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Labels in the order in which they first appear, and the number of the label of
    each row. Rows of a group mostly stand together, so only changes are looked up."""
    new = np.ones(len(column), bool)
    new[1:] = column[1:] != column[:-1]
    where: dict[Any, int] = {}
    starts = np.flatnonzero(new)
    found = column[starts]
    found = found.astype(str) if found.dtype.kind in "mM" else found
    runs = [where.setdefault(label, len(where)) for label in found.tolist()]
    return list(where), np.repeat(runs, np.diff(np.append(starts, len(column))))


def _one(times: np.ndarray, values: np.ndarray, tick: int, unit: str) -> Samples:
    ts = _seconds(times, tick, unit)
    _check_rising("the frame", ts)
    _warn_if_rounded(values)
    seen = ~np.isnan(values)
    mask = None if seen.all() else seen
    return ts, np.where(seen, values, 0), mask, None


def _column(nw: Any, series: Any) -> np.ndarray:
    """A channel in its own floating dtype, or in float64; NaN where it has no value."""
    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        raise TypeError(
            f"column {series.name!r} holds {series.dtype}, not numbers. Convert it, "
            "or name the `channels` you want."
        )
    if series.dtype.is_integer() and not series.is_null().any():
        return np.asarray(series.to_numpy(), np.float64)  # Arrow refuses beyond 2**53
    narrow = series.dtype == nw.Float32
    series = series.cast(nw.Float32 if narrow else nw.Float64).fill_null(float("nan"))
    return np.asarray(series.to_numpy(), np.float32 if narrow else np.float64)


def _times(nw: Any, frame: Any, time: str | None) -> tuple[np.ndarray, int]:
    """Times of the rows: numbers and 0, or whole ticks of dates and the nanoseconds
    of a tick. Dates in coarse units may lie beyond 2262, where nanoseconds end."""
    if time is None:
        series = nw.maybe_get_index(frame)
        if series is not None:
            series = nw.new_series(
                "index", series.to_list(), backend=nw.get_native_namespace(frame)
            )
        if series is None or not isinstance(series.dtype, nw.Datetime):
            return np.arange(len(frame), dtype=float), 0
    else:
        series = frame[time]
    name, dtype = series.name, series.dtype
    if series.is_null().any():
        row = int(np.argmax(np.asarray(series.is_null().to_numpy(), bool)))
        raise ValueError(f"column {name!r} has no time in row {row}.")
    if dtype == nw.Date:
        series, dtype = series.cast(nw.Datetime("us")), nw.Datetime("us")
    if isinstance(dtype, nw.Datetime):
        fine = dtype.time_unit == "ns"
        ticks = series.dt.timestamp("ns" if fine else "us")
        return np.asarray(ticks.to_numpy(), np.int64), 1 if fine else 1000
    if isinstance(dtype, nw.Duration):
        fine = dtype.time_unit == "ns"
        dt = series.dt
        ticks = dt.total_nanoseconds() if fine else dt.total_microseconds()
        return np.asarray(ticks.to_numpy(), np.int64), 1 if fine else 1000
    if not dtype.is_numeric():
        raise TypeError(
            f"column {name!r} is of type {dtype}, neither dates nor numbers. Convert "
            "it, for example by `pandas.to_datetime`."
        )
    times = _column(nw, series).astype(np.float64)
    warn_if_days(name, times)
    return times, 0


def _seconds(times: np.ndarray, tick: int, unit: str, start: Any = None) -> np.ndarray:
    """Dates in units of time from `start`, by default the first; numbers as they are.

    The difference is taken in whole ticks, so that no digit is lost.
    """
    if not tick:
        return np.asarray(times, float)
    start = times[0] if start is None else start
    return (times - start) / (NANOSECONDS[unit] / tick)


def write_frame(
    ts: np.ndarray,
    xs: np.ndarray,
    valid: np.ndarray,
    names: dict[str, Any],
    start: Any,
    unit: str,
    backend: str,
) -> Any:
    """A data frame of the valid rows of values `(samples, times, channels)`, in which
    NaN marks what is missing."""
    nw = require("narwhals", "sklearn", "SampledPath.to_dataframe")
    as_choice("unit", unit, tuple(NANOSECONDS))
    as_choice("backend", backend, ("pandas", "polars", "pyarrow"))
    time, group, groups, channels = names.values()
    if channels is None:
        channels = [f"x{k}" for k in range(xs.shape[-1])]
    if len(channels) != xs.shape[-1]:
        raise ValueError(
            f"the path has {xs.shape[-1]} channels, got {shown(channels)}."
        )
    stamps = ts[valid]
    if start is not None:
        seconds = np.asarray(stamps, float) * (NANOSECONDS[unit] / 1e9)
        since = np.datetime64(start, "s").astype(np.int64)
        far = np.max(np.abs(since + seconds), initial=abs(since)) > 9e9
        tick, each = ("us", 1e6) if far else ("ns", 1e9)  # nanoseconds end in 2262
        steps = np.round(seconds * each).astype(f"timedelta64[{tick}]")
        stamps = np.datetime64(start, tick) + steps
    data: dict[str, Any] = {}
    if group is not None:
        labels = np.arange(len(xs)) if groups is None else np.asarray(groups)
        if len(labels) != len(xs):
            raise ValueError(f"`groups` has {len(labels)} labels for {len(xs)} paths.")
        data[group] = np.repeat(labels, valid.sum(axis=1))
    data[time] = stamps
    data |= {name: xs[valid][:, k] for k, name in enumerate(channels)}
    return nw.from_dict(data, backend=backend).to_native()

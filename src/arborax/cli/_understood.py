"""What was understood of a file: rows, groups, times, channels and target."""

import collections
import datetime
import pathlib
from typing import Any

import pyarrow as pa

from ._tables import Columns, pc


class Understood:
    """Counts and ranges, collected from the parts of a file."""

    def __init__(self, file: pathlib.Path, columns: Columns):
        self.file, self.columns = file, columns
        self.rows, self.groups, self.missing = 0, 0, collections.Counter()
        self.lengths: list[int] = []
        self.ranges: dict[str, tuple[Any, Any]] = {}
        self.classes: collections.Counter = collections.Counter()

    def add(self, table: pa.Table) -> None:
        """Adds one part, which must not split a group."""
        columns = self.columns
        self.rows += len(table)
        for name in columns.channels:
            bad = table[name].null_count
            if pa.types.is_floating(table[name].type):
                bad += pc.sum(pc.is_nan(table[name])).as_py() or 0
            self.missing[name] += bad
        for name in (columns.time, *columns.channels):
            if name is not None:
                self._widen(name, table[name])
        if columns.group is None:
            lengths = [len(table)]
        else:
            counts = pc.value_counts(table[columns.group]).field("counts")
            lengths = counts.to_pylist()
        self.groups += len(lengths)
        self.lengths = [min(self.lengths + lengths), max(self.lengths + lengths)]
        if columns.target is not None:
            self._widen(columns.target, table[columns.target])
            if len(self.classes) <= 20:
                self.classes.update(table[columns.target].to_pylist())

    def _widen(self, name: str, values: Any) -> None:
        if pa.types.is_floating(values.type):
            values = values.filter(pc.invert(pc.is_nan(values)))
        found = pc.min_max(values).as_py()
        known = [found["min"], found["max"], *self.ranges.get(name, ())]
        known = [value for value in known if value is not None]
        if known:
            self.ranges[name] = min(known), max(known)

    def check_channels(self) -> None:
        """Refuses a channel that is empty or constant."""
        for name in self.columns.channels:
            low, high = self.ranges.get(name, (None, None))
            if low == high:
                what = "has no values" if low is None else f"is constant, {low:g}"
                raise ValueError(
                    f"{self.file}: column {name!r} {what}, in all {self.rows} rows. "
                    "Leave it out: name the `--channels` you want."
                )

    @property
    def first_time(self) -> float | str | None:
        """The earliest time, as a number or as the text of a date."""
        if self.columns.time is None:
            return None
        return as_stamp(self.ranges[self.columns.time][0])

    def lines(self) -> list[tuple[str, str]]:
        """Names and findings, to print or for a report."""
        columns, ranges = self.columns, self.ranges
        short, long = self.lengths or (0, 0)
        each = f"{short}" if short == long else f"{short} to {long}"
        group = "no column, all rows are one path"
        if columns.group is not None:
            group = f"column {columns.group!r}, {self.groups} groups of {each} rows"
        time = "no column, rows are counted"
        if columns.time in ranges:
            low, high = ranges[columns.time]
            time = f"column {columns.time!r}, {shown(low, 12)} to {shown(high, 12)}"
            if isinstance(low, datetime.date):
                time += f", in units of {columns.unit}"
            time += ", counted from the first row of each group"
        out = [("file", str(self.file)), ("rows", str(self.rows))]
        out += [("groups", group), ("times", time)]
        for name in columns.channels:
            low, high = ranges.get(name, ("nothing", "nothing"))
            text = f"{shown(low)} to {shown(high)}, {self.missing[name]} missing"
            out.append((f"channel {name!r}", text))
        if columns.target in ranges:
            low, high = ranges[columns.target]
            text = f"{shown(low)} to {shown(high)}"
            if len(self.classes) <= 20:
                found = sorted(self.classes.items(), key=str)
                text = ", ".join(f"{shown(k)} ({n} rows)" for k, n in found)
            out.append((f"target {columns.target!r}", text))
        return out


def as_stamp(value: Any) -> float | str:
    """A time that a file of a model can hold: a number, or a date as text, in UTC if it
    has a zone, that sorts by time."""
    if isinstance(value, datetime.date):
        if not isinstance(value, datetime.datetime):
            return f"{value.isoformat()} 00:00:00"
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        return value.isoformat(" ")
    return value.total_seconds() if hasattr(value, "total_seconds") else float(value)


def shown(value: Any, digits: int = 6) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)

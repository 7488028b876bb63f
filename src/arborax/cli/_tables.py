"""Readers of CSV, Parquet and npz files, whole or in chunks."""

import contextlib
import csv
import dataclasses
import datetime
import itertools as it
import pathlib
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from .._values import rounded, warn_if_days
from ..paths import SampledPath


pc: Any = pyarrow.compute  # its functions are made when it is imported
SUFFIXES = (".csv", ".parquet", ".npz")


@dataclasses.dataclass(frozen=True)
class Columns:
    """The role of each column; `every`: whether channels are all remaining columns;
    `origin`: what is subtracted from each channel, nothing unless it is given."""

    channels: tuple[str, ...]
    time: str | None = None
    group: str | None = None
    target: str | None = None
    unit: str = "s"
    every: bool = False
    origin: tuple[float, ...] = ()

    @property
    def names(self) -> list[str]:
        special = (self.time, self.group, self.target)
        return [name for name in special if name is not None] + list(self.channels)


def names_of(file: pathlib.Path) -> list[str]:
    """The columns of a file."""
    kind = suffix_of(file)
    if kind == ".npz":
        return _table_of_arrays(file).column_names
    with _reading(file):
        if kind == ".csv":
            names = pyarrow.csv.open_csv(file).schema.names
        else:
            names = pyarrow.parquet.read_schema(file).names
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"{file} has {names.count(name)} columns {name!r}; rename them."
            )
    return names


@contextlib.contextmanager
def _reading(file: pathlib.Path) -> Iterator[None]:
    """Errors of a reader, with the file and, for CSV, the row."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if file.suffix == ".csv" and "columns, got" in str(error):
            with file.open(newline="") as lines:
                rows = csv.reader(lines)
                width = len(next(rows))
                for row, cells in enumerate(rows):
                    if cells and len(cells) != width:
                        raise ValueError(
                            f"{file}: row {row} has {len(cells)} values, but the file "
                            f"has {width} columns."
                        ) from None
        text = str(error).split("\n")[0].rstrip(".")
        raise ValueError(f"{file} cannot be read: {text[:200]}.") from None


def suffix_of(file: pathlib.Path) -> str:
    """The format of a file, by its suffix."""
    if file.suffix not in SUFFIXES:
        raise ValueError(
            f"{file}: unknown format {file.suffix!r}; known are {', '.join(SUFFIXES)}."
        )
    return file.suffix


def find_columns(file: pathlib.Path, **wanted: Any) -> Columns:
    """The columns asked for, which the file must have. An npz file names its own."""
    names = names_of(file)
    channels = tuple(wanted.pop("channels", None) or ())
    if suffix_of(file) == ".npz":
        own = dict(time="time", group="group")
        own |= dict(target="y") if "y" in names else {}
        wanted = wanted | {key: wanted.get(key) or name for key, name in own.items()}
    special = [wanted.get(key) for key in ("time", "group", "target")]
    for name in (*special, *channels):
        if name is not None and name not in names:
            raise ValueError(
                f"{file} has no column {name!r}; its columns are {', '.join(names)}."
            )
        if [*special, *channels].count(name) > 1 and name is not None:
            raise ValueError(
                f"column {name!r} is asked for twice; time, group, target and channels "
                "are different columns."
            )
    every = not channels
    others = [name for name in names if name not in special]
    channels = channels or tuple(name for name in others if not is_index(name))
    if not channels:
        raise ValueError(f"{file} has no channels; its columns are {', '.join(names)}.")
    return Columns(channels, every=every, **wanted)


def is_index(name: str) -> bool:
    """Whether pandas gave the name, to an index without one."""
    return re.fullmatch(r"|Unnamed: \d+|__index_level_\d+__", name) is not None


def read_chunks(
    file: pathlib.Path, columns: Columns, rows: int
) -> Iterator[tuple[int, pa.Table]]:
    """Tables of about `rows` rows that do not split a group, each with the number of
    its first row. Rows of a group stand together in the file; without a column of
    groups the whole file is one."""
    if columns.group is None:
        yield 0, read_table(file, columns)
        return
    held: list[pa.Table] = []
    first, seen = 0, np.array([-1])  # -1 is the hash of nothing
    for table in it.chain(_batches(file, columns, rows), [None]):
        if table is not None:
            held += [table] if len(table) else []
            if sum(map(len, held)) < rows:
                continue
        if not held:
            return
        whole = pa.concat_tables(held)
        end = len(whole)
        if table is not None:
            labels = whole[columns.group]
            same = pc.fill_null(pc.equal(labels, labels[-1]), False)
            end = int(np.max(np.flatnonzero(~same.to_numpy()), initial=-1)) + 1
        if end or table is None:
            part, whole = whole.slice(0, end), whole.slice(end).combine_chunks()
            seen = _check_new(file, columns.group, part, first, seen)
            yield first, part
            first += end
        held = [whole] if len(whole) else []


def _check_new(
    file: pathlib.Path, group: str, part: pa.Table, first: int, seen: np.ndarray
) -> np.ndarray:
    """Refuses a group that continues after others. Groups are remembered by hashes, in
    increasing order: to sort those of a part into them takes linear time."""
    labels = pc.unique(part[group]).to_pylist()
    here = np.array([hash(str(label)) for label in labels], np.int64)
    again = seen[np.searchsorted(seen, here).clip(max=len(seen) - 1)] == here
    if again.any():
        label = labels[int(np.argmax(again))]
        row = first + pc.index(part[group], label).as_py()
        raise ValueError(
            f"{file}: group {label!r} continues in row {row} after other groups. Sort "
            f"the file by {group!r} first."
        )
    return np.sort(np.concatenate([seen, here]), kind="stable")


def read_table(file: pathlib.Path, columns: Columns) -> pa.Table:
    """The columns of the whole file."""
    tables = [table for table in _batches(file, columns, 1 << 20) if len(table)]
    if not tables:
        raise ValueError(f"{file} has no rows.")
    return pa.concat_tables(tables)


def _batches(file: pathlib.Path, columns: Columns, rows: int) -> Iterator[pa.Table]:
    """Tables with numbers in all channels; at least one, which may be empty."""
    with _reading(file):
        yield from _read_batches(file, columns, rows)


def _read_batches(
    file: pathlib.Path, columns: Columns, rows: int
) -> Iterator[pa.Table]:
    kind, row = suffix_of(file), 0
    if kind == ".npz":
        tables = iter([_table_of_arrays(file).select(columns.names)])
    elif kind == ".parquet":
        # Buffers that are filled ahead are kept until the end: as large as the file.
        options: dict[str, Any] = dict(pre_buffer=False, buffer_size=1 << 20)
        reader = pyarrow.parquet.ParquetFile(file, **options)
        batches = reader.iter_batches(rows, columns=columns.names)
        empty = reader.schema_arrow.empty_table().select(columns.names)
        tables = it.chain([empty], (pa.Table.from_batches([b]) for b in batches))
    else:
        tables = _csv_batches(file, columns)
    for table in tables:
        for place, field in enumerate(table.schema):
            if pa.types.is_dictionary(field.type):
                plain = pc.cast(table[field.name], field.type.value_type)
                table = table.set_column(place, field.name, plain)
        table = _with_text(file, table)
        table = _with_times(file, table, columns.time, row)
        yield _with_numbers(file, table, columns, row)
        row += len(table)


def _csv_batches(file: pathlib.Path, columns: Columns) -> Iterator[pa.Table]:
    """Types come from the first block; columns of integers are read as floats, since
    later blocks may hold fractions."""
    start = pyarrow.csv.open_csv(file).schema
    types = {name: start.field(name).type for name in columns.names}
    for name in (columns.time, *columns.channels):
        if name and (pa.types.is_integer(types[name]) or pa.types.is_null(types[name])):
            types[name] = pa.float64()

    group = columns.group
    counted = False
    if group is not None and pa.types.is_integer(types[group]):
        counted, types[group] = True, pa.string()

    def batches(types: dict[str, Any]) -> Iterator[pa.Table]:
        convert = pyarrow.csv.ConvertOptions(
            column_types=types, include_columns=columns.names
        )
        with pyarrow.csv.open_csv(file, convert_options=convert) as reader:
            yield reader.schema.empty_table()
            for batch in reader:
                yield pa.Table.from_batches([batch])

    try:
        tables = batches(types)
        for table in _with_labels(file, group, tables) if counted else tables:
            yield _without_blanks(table, (group, columns.target))
    except pa.ArrowInvalid:
        row, numbers = 0, (columns.time, *columns.channels)
        for table in batches(types | {name: pa.string() for name in numbers if name}):
            _with_times(file, table, columns.time, row)
            _with_numbers(file, table, columns, row)
            row += len(table)
        raise


def _with_labels(
    file: pathlib.Path, group: Any, tables: Iterator[pa.Table]
) -> Iterator[pa.Table]:
    """Labels that are whole numbers, as numbers. All stay texts if the first block has
    some that numbers would change, such as `007`."""
    row, counted = 0, True
    for table in tables:
        if counted and len(table):
            text = table[group]
            plain = pc.match_substring_regex(text, r"^(|0|-?[1-9]\d{0,17})$")
            other = np.flatnonzero(~pc.fill_null(plain, True).to_numpy())
            counted = not other.size
            if row and not counted:
                raise ValueError(
                    f"{file}: column {group!r} holds {text[other[0]].as_py()!r} in row "
                    f"{row + other[0]}, after whole numbers. Write labels in one way."
                )
            if counted:
                table = _without_blanks(table, (group,))
                place = table.column_names.index(group)
                table = table.set_column(
                    place, group, pc.cast(table[group], pa.int64())
                )
            row += len(table)
        yield table


def _with_text(file: pathlib.Path, table: pa.Table) -> pa.Table:
    """Texts of one type. Refuses those in an encoding that Arrow does not know."""
    for place, field in enumerate(table.schema):
        if pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type):
            raise ValueError(
                f"{file}: column {field.name!r} is not text in UTF-8. Save the file in "
                "that encoding."
            )
        if pa.types.is_large_string(field.type) or pa.types.is_string_view(field.type):
            plain = pc.cast(table[field.name], pa.string())
            table = table.set_column(place, field.name, plain)
    return table


def _without_blanks(table: pa.Table, names: tuple[str | None, ...]) -> pa.Table:
    """An empty cell of a CSV file holds no value, and not the empty text."""
    for name in names:
        if name is not None and pa.types.is_string(table[name].type):
            nothing = pa.scalar(None, pa.string())
            plain = pc.if_else(pc.equal(table[name], ""), nothing, table[name])
            table = table.set_column(table.column_names.index(name), name, plain)
    return table


def _with_times(
    file: pathlib.Path, table: pa.Table, time: str | None, first: int
) -> pa.Table:
    """Times given as text, read as numbers or dates; others are refused by row."""
    if time is None or not pa.types.is_string(table[time].type):
        return table
    values = table[time].to_pylist()
    kinds: dict[str, int] = {}
    for row, value in enumerate(values, first):
        kind = None if value is None else _kind_of_time(value)
        if kind == "text":
            raise ValueError(
                f"{file}: column {time!r} holds {value[:40]!r} in row {row}, neither a "
                "number nor a date such as 2024-01-31 09:30:00."
            )
        if kind is not None:
            kinds.setdefault(kind, row)
    if len(kinds) > 1:
        (one, row), (two, other) = list(kinds.items())[:2]
        raise ValueError(
            f"{file}: column {time!r} holds a {one} in row {row} and a {two} in row "
            f"{other}. Write all times in one way."
        )
    types = {"number": pa.float64(), "date with a zone": pa.timestamp("us", "UTC")}
    cast = pc.cast(
        table[time], types.get(next(iter(kinds), "date"), pa.timestamp("us"))
    )
    return table.set_column(table.column_names.index(time), time, cast)


def _with_numbers(
    file: pathlib.Path, table: pa.Table, columns: Columns, first: int
) -> pa.Table:
    """Refuses text in a channel, with its row."""
    for name in columns.channels:
        kind = table[name].type
        if pa.types.is_float16(kind):  # Arrow computes little with these
            single = pc.cast(table[name], pa.float32())
            table = table.set_column(table.column_names.index(name), name, single)
            continue
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            continue
        if pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
            continue
        for row, value in enumerate(table[name].to_pylist(), first):
            if value is not None and not _is_number(value):
                raise ValueError(
                    f"{file}: column {name!r} holds {str(value)[:40]!r} in row {row}, "
                    "not a number. Correct it, or name the `--channels` you want."
                )
        cast = pc.cast(table[name], pa.float64())
        table = table.set_column(table.column_names.index(name), name, cast)
    return table


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _kind_of_time(value: str) -> str:
    if _is_number(value):
        return "number"
    try:
        date = datetime.datetime.fromisoformat(value)
    except ValueError:
        return "text"
    return "date" if date.tzinfo is None else "date with a zone"


def _table_of_arrays(file: pathlib.Path) -> pa.Table:
    """`x` `(n, times, channels)` and, if there, `t` `(times,)` or `(n, times)`, `y`
    `(n,)` and `lengths` `(n,)`, as rows."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            data = {name: arrays[name] for name in arrays.files}
    except (ValueError, EOFError, AttributeError, zipfile.BadZipFile):
        raise ValueError(
            f"{file} is not an npz file of numbers, as `numpy.savez` writes them."
        ) from None
    x = data.get("x")
    if x is None or x.ndim not in (2, 3) or x.dtype.kind not in "iuf":
        raise ValueError(
            f"{file}: an npz file needs numbers `x` of shape (n, times, channels), and "
            "may have `t` (times,), `y` (n,) and `lengths` (n,)."
        )
    x = x[..., None] if x.ndim == 2 else x
    count, times, dim = x.shape
    shapes = {"t": [(times,), (count, times)], "y": [(count,)], "lengths": [(count,)]}
    for name, known in shapes.items():
        if name in data and data[name].shape not in known:
            raise ValueError(
                f"{file}: `{name}` has shape {data[name].shape}, expected {known[0]} "
                f"beside `x` of shape {x.shape}."
            )
    lengths = data.get("lengths", np.full(count, times))
    whole = lengths.dtype.kind in "iu"
    if not whole or count and not 1 <= lengths.min() <= lengths.max() <= times:
        raise ValueError(
            f"{file}: `lengths` must be whole numbers from 1 to {times}, the number of "
            "times."
        )
    valid = np.arange(times) < lengths[:, None]
    clock = np.broadcast_to(data.get("t", np.arange(times)), (count, times))
    columns = {"group": np.repeat(np.arange(count), lengths), "time": clock[valid]}
    columns |= {f"x{k}": x[..., k][valid] for k in range(dim)}
    if "y" in data:
        columns["y"] = np.repeat(data["y"], lengths)
    return pa.table(columns)


@dataclasses.dataclass(frozen=True)
class Data:
    """Paths of a table, one for each group, with their labels and targets."""

    paths: SampledPath
    groups: list[Any]
    targets: np.ndarray | None


def as_data(
    file: pathlib.Path, table: pa.Table, columns: Columns, row: int = 0
) -> Data:
    """The paths of a table whose first row is row `row` of the file."""
    table, group = grouped(table, columns)
    if columns.group is None and columns.time is not None:
        clock = table[columns.time].to_numpy()
        back = np.flatnonzero(~(clock[1:] > clock[:-1]))
        if back.size:
            raise ValueError(
                f"{file}: the time in row {row + back[0] + 1} is not later than that "
                "before it. Sort the rows, or name the column that tells paths apart "
                "by --group."
            )
    with naming(file, row):
        paths = SampledPath.from_dataframe(
            table.drop_columns([columns.target] if columns.target else []),
            time=columns.time,
            group=group,
            channels=list(columns.channels),
            unit=columns.unit,  # pyright: ignore[reportArgumentType]
        )
        labels = table[group].to_pylist()
        groups = list(dict.fromkeys(labels))
        return Data(paths, groups, _targets(table, columns, labels))


def with_origin(columns: Columns, table: pa.Table) -> Columns:
    """The columns, with the first value of channels that float32 would round."""
    rows = [_as_floats(table[name]).to_numpy() for name in columns.channels]
    far = rounded(np.stack(rows, axis=1))
    if not far.any():
        return columns
    first = [row[np.argmax(~np.isnan(row))] for row in rows]
    return dataclasses.replace(columns, origin=tuple(np.where(far, first, 0).tolist()))


def _as_floats(values: Any) -> Any:
    """Numbers in double precision. Integers beyond 2**53 are rounded."""
    return pc.cast(values, pa.float64(), safe=False)


def grouped(table: pa.Table, columns: Columns) -> tuple[pa.Table, str]:
    """The table and its column of groups; without one all rows are one path. Numbers
    as times are counted from the first row of each group, as dates are, and values
    from the origin of their channel."""
    for name, start in zip(columns.channels, columns.origin):
        if start:
            values = pc.subtract(_as_floats(table[name]), start)
            table = table.set_column(table.column_names.index(name), name, values)
    group = columns.group
    if group is None:
        group, zeros = "path", pa.array(np.zeros(len(table), np.int64))
        table = table.append_column(group, zeros)
    time = columns.time
    if time is None or not (
        pa.types.is_floating(table[time].type) or pa.types.is_integer(table[time].type)
    ):
        return table, group
    labels = table[group].combine_chunks().dictionary_encode("encode")
    codes = labels.indices.to_numpy()  # labels are numbered as they first appear
    first = np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))
    clock = table[time].to_numpy()  # integers, such as nanoseconds, keep all digits
    warn_if_days(time, clock)
    clock = (clock - clock[first][codes]).astype(np.float64)
    place = table.column_names.index(time)
    return table.set_column(place, time, pa.array(clock)), group


def has_dates(table: pa.Table, columns: Columns) -> bool:
    """Whether times are dates, and not numbers."""
    if columns.time is None:
        return False
    kind = table[columns.time].type
    return pa.types.is_date(kind) or pa.types.is_timestamp(kind)


@contextlib.contextmanager
def naming(file: pathlib.Path, row: int = 0) -> Iterator[None]:
    """Adds the file to errors, and the row from which they count."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if str(error).startswith(f"{file}"):
            raise
        start = f", rows counted from row {row}" if row else ""
        raise ValueError(f"{file}{start}: {error}") from error


def _targets(table: pa.Table, columns: Columns, labels: list) -> np.ndarray | None:
    """The target of each group, which all its rows share."""
    if columns.target is None:
        return None
    found: dict[Any, tuple[int, Any]] = {}
    values = table[columns.target]
    values = _as_floats(values) if pa.types.is_decimal(values.type) else values
    for row, (label, value) in enumerate(zip(labels, values.to_pylist())):
        if value is None or value != value:
            raise ValueError(f"column {columns.target!r} has no value in row {row}.")
        start, known = found.setdefault(label, (row, value))
        if value != known:
            raise ValueError(
                f"column {columns.target!r} has {known!r} in row {start} and {value!r} "
                f"in row {row} of group {label!r}; a group has one target."
            )
    return np.array([value for _, value in found.values()])

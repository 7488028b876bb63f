"""Tables to files, in one piece or part by part."""

import contextlib
import pathlib
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from ._tables import suffix_of


def write_rows(file: pathlib.Path, table: pa.Table) -> None:
    """A table as CSV, Parquet or npz, by the suffix."""
    if suffix_of(file) == ".npz":
        columns = [table[name].to_numpy() for name in table.column_names]
        plain = [c.astype(str) if c.dtype == object else c for c in columns]
        np.savez(file, **dict(zip(table.column_names, plain)))
    else:
        with rows_writer(file) as write:
            write(table)


@contextlib.contextmanager
def rows_writer(file: pathlib.Path) -> Iterator[Callable[[pa.Table], None]]:
    """A function that appends a table. The file appears once all is written."""
    kind = suffix_of(file)
    if kind == ".npz":
        raise ValueError(f"{file}: parts are written to .csv or .parquet files only.")
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.part")
    writer = None

    def write(table: pa.Table) -> None:
        nonlocal writer
        if writer is None and kind == ".csv":
            writer = pyarrow.csv.CSVWriter(temporary, table.schema)
        elif writer is None:
            writer = pyarrow.parquet.ParquetWriter(temporary, table.schema)
        writer.write_table(table)

    try:
        yield write
        if writer is not None:
            writer.close()
            temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)

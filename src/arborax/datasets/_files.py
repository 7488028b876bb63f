"""Files that users name, or that other packages bring."""

import csv
import gzip
import importlib.util
import os
import pathlib
import warnings
from typing import Any

import numpy as np

from .._values import shown


def existing_file(file: Any) -> pathlib.Path:
    """`file` as a path, if there is such a file."""
    if not isinstance(file, str | os.PathLike):
        raise TypeError(f"expected the path of a file, got {shown(file)}.")
    path = pathlib.Path(file)
    if not path.is_file():
        raise FileNotFoundError(f"no file {shown(str(path))}.")
    return path


def read_csv(file: pathlib.Path) -> list[list[str]]:
    """The rows of a CSV file, plain or gzipped, without empty ones."""
    opener = gzip.open if file.suffix == ".gz" else open
    try:
        with opener(file, "rt", encoding="utf-8", newline="") as text:
            return [row for row in csv.reader(text) if row]
    except (UnicodeDecodeError, csv.Error, OSError, EOFError) as error:
        raise ValueError(
            f"{file.name} is not a CSV file: {shown(str(error))}."
        ) from None


def read_table(file: pathlib.Path, **options: Any) -> np.ndarray:
    """A table of numbers `(rows, columns)`; options of `numpy.loadtxt`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty file: refused below
            rows = np.loadtxt(file, ndmin=2, encoding="utf-8", **options)
    except (ValueError, IndexError, OverflowError, OSError, EOFError) as error:
        raise ValueError(
            f"{file.name} is not a table of numbers: {shown(str(error))}."
        ) from None
    if not rows.size:
        raise ValueError(f"{file.name} holds no rows of numbers.")
    return rows


def shipped(package: str, inside: str) -> pathlib.Path:
    """A file or folder that a package brings, found without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(
            f"these data come with the package {package}: pip install {package} (or "
            "'arborax[data]' for all data packages). Or name a file or folder."
        )
    path = pathlib.Path(next(iter(spec.submodule_search_locations))) / inside
    if not path.exists():
        raise FileNotFoundError(
            f"this version of {package} has no {inside}: pip install -U {package}, or "
            "name a file or folder."
        )
    return path

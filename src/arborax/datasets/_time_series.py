"""Labelled multivariate series in the formats of the UEA archive."""

import dataclasses
import hashlib
import os
import pathlib
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int

from .._values import shown
from ._files import existing_file, shipped


@dataclasses.dataclass(frozen=True)
class LabelledSeries:
    """Series with a class each.

    **Fields:**

    - `values`: `(series, times, channels)`; shorter series are filled up with their
        last value.
    - `lengths`: `(series,)`.
    - `labels`: `(series,)`, numbers of `classes`.
    - `classes`: their names.
    - `sha256`: of the files that they were read from, by the names of the files.
    """

    values: Float[np.ndarray, "series times channels"]
    lengths: Int[np.ndarray, " series"]
    labels: Int[np.ndarray, " series"]
    classes: tuple[str, ...]
    sha256: Mapping[str, str] = dataclasses.field(default_factory=dict)


def read_ts(file: str | os.PathLike) -> LabelledSeries:
    """A file of the `.ts` format: a head of lines `@name value`, then one series per
    line, channels separated by `:` and values by `,`, the class last."""
    file = existing_file(file)
    digest = _checksum(file)
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{file.name} is not a text file in UTF-8.") from None
    classes: tuple[str, ...] = ()
    series, labels, data = [], [], False
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if not data:
            words = line.split()
            name = words[0].lower()
            if name in ("@classlabel", "@timestamps") and len(words) < 2:
                raise ValueError(f"{file.name}, line {number}: {name} has no value.")
            if name == "@classlabel":
                if words[1].lower() != "true":
                    raise ValueError(f"{file.name}: the series have no classes.")
                classes = tuple(words[2:])
            if name == "@timestamps" and words[1].lower() == "true":
                raise ValueError(f"{file.name}: series with stamps are not supported.")
            data = name == "@data"
            continue
        *channels, label = line.split(":")
        try:
            rows = np.asarray([[float(v) for v in c.split(",")] for c in channels])
        except ValueError as error:
            raise ValueError(
                f"{file.name}, line {number}: expected channels of equal length, "
                "separated by `:`, and numbers separated by `,` "
                f"({shown(str(error))})."
            ) from None
        if not np.isfinite(rows).all():
            raise ValueError(
                f"{file.name}, line {number}: missing values are not supported."
            )
        if rows.ndim != 2 or (series and len(rows) != series[0].shape[1]):
            raise ValueError(
                f"{file.name}, line {number}: {len(rows)} channels, other than in the "
                "series before."
            )
        series.append(rows.T)
        labels.append(label.strip())
    if not series or not classes:
        raise ValueError(f"{file.name}: no series, or no line `@classLabel`.")
    if unknown := set(labels) - set(classes):
        raise ValueError(
            f"{file.name}: classes {shown(sorted(unknown))} are not in its head."
        )
    lengths = np.asarray([len(s) for s in series])
    longest = int(lengths.max())
    values = np.concatenate([_filled_up(s[None], longest) for s in series])
    numbers = np.asarray([classes.index(label) for label in labels])
    return LabelledSeries(values, lengths, numbers, classes, digest)


def read_aeon(
    name: str, folder: str | os.PathLike | None = None
) -> tuple[LabelledSeries, LabelledSeries]:
    """Training and test part of a set of the UEA archive.

    **Arguments:**

    - `name`: of the set, such as `"EigenWorms"`.
    - `folder`: with `NAME_TRAIN.ts` and `NAME_TEST.ts`, as the archive has them, or
        with `NAME.npz` (`x` `(series, times, channels)`, `y` numbers of classes,
        `train` the number of leading series for training), there or in a sub-folder
        `NAME`. If a file `SHA256SUMS` (as `sha256sum` writes it) is beside them and
        lists a file, its content must agree. Default: `"BasicMotions"` and
        `"JapaneseVowels"` of the installed package `aeon` (its wheel, from `pip
        download aeon --no-deps`, has them in `aeon/datasets/data`).

    **Returns:**

    Two `LabelledSeries` of as many times: both are filled up to the longest series of
    either. Their `sha256` says which files were read.
    """
    if folder is None:
        folder = shipped("aeon", "datasets/data")
    folder = pathlib.Path(folder)
    if (folder / name).is_dir():
        folder = folder / name
    if (folder / f"{name}.npz").is_file():
        train, test = _read_npz(folder / f"{name}.npz")
    else:
        train, test = (read_ts(folder / f"{name}_{p}.ts") for p in ("TRAIN", "TEST"))
    for what, a, b in (
        ("channels", train.values.shape[2], test.values.shape[2]),
        ("classes", train.classes, test.classes),
    ):
        if a != b:
            raise ValueError(
                f"{name}: the {what} of the two files differ, {a} for training and "
                f"{b} for the test."
            )
    longest = max(train.values.shape[1], test.values.shape[1])
    digests = {**train.sha256, **test.sha256}
    train, test = (
        dataclasses.replace(
            part, values=_filled_up(part.values, longest), sha256=digests
        )
        for part in (train, test)
    )
    return train, test


def _checksum(file: pathlib.Path) -> dict[str, str]:
    """The SHA-256 of a file; refused if `SHA256SUMS` beside it lists another."""
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    sums = file.parent / "SHA256SUMS"
    if sums.is_file():
        lines = [x.split(maxsplit=1) for x in sums.read_text("utf-8").splitlines()]
        listed = {x[1].lstrip("*").strip(): x[0].lower() for x in lines if len(x) == 2}
        expected = listed.get(file.name, found)
        if expected != found:
            raise ValueError(
                f"{file.name} is not the file that SHA256SUMS lists: its SHA-256 is "
                f"{found}, expected {expected}. Download it again, or correct the list."
            )
    return {file.name: found}


def _read_npz(file: pathlib.Path) -> tuple[LabelledSeries, LabelledSeries]:
    digest = _checksum(file)
    try:
        with np.load(file, allow_pickle=False) as data:
            x, y, count = data["x"], data["y"], int(data["train"])
    except (KeyError, ValueError, OSError, EOFError, TypeError) as error:
        raise ValueError(
            f"{file.name} must hold arrays `x`, `y` and `train` ({shown(str(error))})."
        ) from None
    if x.ndim != 3 or y.shape != x.shape[:1] or not 0 < count < len(x):
        raise ValueError(
            f"{file.name}: expected `x` (series, times, channels), `y` (series,) and "
            f"`train` between 1 and the number of series less one; got {x.shape}, "
            f"{y.shape} and {count}."
        )
    if not np.isfinite(x).all():
        raise ValueError(f"{file.name}: missing values are not supported.")
    names, labels = np.unique(y, return_inverse=True)
    classes, lengths = tuple(map(str, names)), np.full(len(x), x.shape[1])
    first, second = slice(count), slice(count, None)
    one, other = (
        LabelledSeries(x[rows], lengths[rows], labels[rows], classes, digest)
        for rows in (first, second)
    )
    return one, other


def _filled_up(
    values: Float[np.ndarray, "series times channels"], times: int
) -> Float[np.ndarray, "series more channels"]:
    """Repeats the last values up to `times`."""
    return np.pad(values, [(0, 0), (0, times - values.shape[1]), (0, 0)], mode="edge")

"""Small labelled multivariate series, as the package `aeon` ships them."""

import dataclasses
import os
import pathlib

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
    """

    values: Float[np.ndarray, "series times channels"]
    lengths: Int[np.ndarray, " series"]
    labels: Int[np.ndarray, " series"]
    classes: tuple[str, ...]


def read_ts(file: str | os.PathLike) -> LabelledSeries:
    """A file of the `.ts` format: a head of lines `@name value`, then one series per
    line, channels separated by `:` and values by `,`, the class last."""
    file = existing_file(file)
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
    return LabelledSeries(values, lengths, numbers, classes)


def read_aeon(
    name: str, folder: str | os.PathLike | None = None
) -> tuple[LabelledSeries, LabelledSeries]:
    """Training and test part of a set that `aeon` ships: `"BasicMotions"` (six
    channels, 100 samples at 10 Hz) or `"JapaneseVowels"` (twelve channels).

    **Arguments:**

    - `name`: of the set.
    - `folder`: with `NAME_TRAIN.ts` and `NAME_TEST.ts`, or with a sub-folder `NAME`
        that has them. Default: the files of the installed package `aeon` (its wheel,
        from `pip download aeon --no-deps`, has them in `aeon/datasets/data`).

    **Returns:**

    Two `LabelledSeries` of as many times: both are filled up to the longest series of
    either.
    """
    if folder is None:
        folder = shipped("aeon", "datasets/data")
    folder = pathlib.Path(folder)
    if (folder / name).is_dir():
        folder = folder / name
    train = read_ts(folder / f"{name}_TRAIN.ts")
    test = read_ts(folder / f"{name}_TEST.ts")
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
    train, test = (
        dataclasses.replace(part, values=_filled_up(part.values, longest))
        for part in (train, test)
    )
    return train, test


def _filled_up(
    values: Float[np.ndarray, "series times channels"], times: int
) -> Float[np.ndarray, "series more channels"]:
    """Repeats the last values up to `times`."""
    return np.pad(values, [(0, 0), (0, times - values.shape[1]), (0, 0)], mode="edge")

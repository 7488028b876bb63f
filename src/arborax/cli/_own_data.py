"""The commands for own data: files to models, predictions, samples and features."""

import contextlib
import dataclasses
import itertools as it
import json
import pathlib
import shutil
import sys
import zlib
from collections.abc import Iterator
from typing import Any

import jax
import jax.random as jr
import numpy as np
import pyarrow as pa

from .. import estimators
from .._inputs import as_count
from ..kernels import SignatureKernel, two_sample_test
from ..paths import SampledPath
from . import _pages
from ._tables import (
    as_data,
    Columns,
    find_columns,
    grouped,
    has_dates,
    is_index,
    names_of,
    naming,
    read_chunks,
    read_table,
    with_origin,
)
from ._understood import as_stamp, Understood
from ._writing import rows_writer, write_rows


TASKS = {
    "generate": estimators.PathGenerator,
    "classify": estimators.SequenceClassifier,
    "regress": estimators.SequenceRegressor,
    "forecast": estimators.Forecaster,
}
STEPS = {"smoke": 20, "quick": 500, "paper": 5000}


def fit(command: Any) -> None:
    """Trains an estimator on a file; writes the model and a report."""
    columns = _columns(command, _target(command))
    _check_out(command, "out", "report")
    table = read_table(command.file, columns)
    columns = with_origin(columns, table)
    understood = Understood(command.file, columns)
    understood.add(table)
    data = as_data(command.file, table, columns)
    _print(understood, data.paths)
    understood.check_channels()
    _check_task(command, data)
    if command.dry_run:
        return
    estimator = _estimator(command, len(data.groups))
    folder = command.out.with_suffix(".checkpoints")
    _begin(folder, estimator, data, command.resume)
    estimator.checkpoints = folder
    with naming(command.file):
        estimator.fit(data.paths, *([] if data.targets is None else [data.targets]))
    if estimator.result_.stop == "interrupted":
        sys.exit("Stopped. Run the same command with --resume to continue.")
    estimator.columns_ = dataclasses.asdict(columns) | dict(
        channels=list(columns.channels),
        origin=list(columns.origin),
        first=understood.first_time,
        task=command.task,
    )
    estimator.save(command.out)
    shutil.rmtree(folder, ignore_errors=True)
    print(f"model written to {command.out}")
    scores = [] if command.task == "generate" else _scores(estimator, data)
    for part, count, score in scores:
        print(f"{_pages.SCORES[command.task]}, {count} groups {part}: {score:.4g}")
    page = command.report or command.out.with_suffix(".html")
    page = _pages.of_fit(page, estimator, data, understood, scores)
    print(f"report written to {page}")


def _check_out(command: Any, *names: str) -> None:
    """Refuses to write over the data."""
    for name in names:
        out = getattr(command, name)
        if out is not None and out.exists() and out.samefile(command.file):
            raise ValueError(
                f"{out} holds the data; give another --{name}, which is written."
            )


def _begin(folder: pathlib.Path, estimator: Any, data: Any, resume: bool) -> None:
    """A folder for checkpoints, which knows the run that it belongs to. Refuses to
    continue one with other data or settings."""
    here = {name: str(v) for name, v in estimator.get_params(deep=False).items()}
    for name in ("steps", "progress"):
        del here[name]
    parts = [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(data.paths)]
    targets = None if data.targets is None else data.targets.tolist()
    parts.append(repr((data.groups, targets)).encode())
    here["data"] = str([zlib.crc32(part) for part in parts])
    file = folder / "run.json"
    if not resume:
        shutil.rmtree(folder, ignore_errors=True)
    elif file.exists():
        there = json.loads(file.read_text())
        others = [name for name in here if there.get(name) != here[name]]
        if others:
            raise ValueError(
                f"{folder} belongs to a run with other {', '.join(others)}. Give the "
                "same file and options, or leave --resume out and start again."
            )
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(here))


def _scores(estimator: Any, data: Any) -> list[tuple[str, int, float]]:
    """Name, size and score of the part that was trained on and of that held out."""
    held = np.isin(np.arange(len(data.groups)), estimator.held_out_)
    found = []
    for name, rows in (("trained on", ~held), ("held out", held)):
        if rows.any():
            targets = None if data.targets is None else data.targets[rows]
            score = estimator.score(_taken(data.paths, rows), targets)
            found.append((name, int(rows.sum()), score))
    return found


def _target(command: Any) -> str | None:
    needed = command.task in ("classify", "regress")
    npz = command.file.suffix == ".npz"
    if needed and command.target is None and not npz:
        raise ValueError(
            f"--task {command.task} needs --target, the column with the value that "
            "belongs to each group."
        )
    if not needed and command.target is not None:
        raise ValueError(f"--task {command.task} has no target; leave --target out.")
    return command.target


def _columns(command: Any, target: str | None = None) -> Columns:
    if not command.file.is_file():
        raise FileNotFoundError(f"there is no file {command.file}.")
    columns = find_columns(
        command.file,
        time=command.time,
        group=command.group,
        channels=command.channels,
        unit=command.unit,
        target=target,
    )
    task = getattr(command, "task", None)
    if task in (None, "generate", "forecast"):
        return dataclasses.replace(columns, target=None)
    if columns.target is None:
        raise ValueError(
            f"{command.file} has no array `y`, one target for each path, which --task "
            f"{task} needs. Save it beside `x`."
        )
    return columns


def _check_task(command: Any, data: Any) -> None:
    """Refuses data that a task cannot use, in terms of the file."""
    if command.task == "forecast":
        return
    if command.group is None and len(data.groups) == 1:
        raise ValueError(
            f"{command.file}: all rows are one path, and --task {command.task} learns "
            "from many. Name the column that tells them apart by --group."
        )
    target = command.target or "y"
    if command.task == "regress" and data.targets.dtype.kind not in "biuf":
        raise ValueError(
            f"{command.file}: column {target!r} holds {str(data.targets[0])!r}, not a "
            "number. For names of classes use --task classify."
        )
    if command.task == "classify" and data.targets.dtype.kind not in "biufU":
        raise ValueError(
            f"{command.file}: column {target!r} holds {str(data.targets[0])!r}, of "
            f"type {type(data.targets[0]).__name__}. Classes are texts or whole "
            "numbers."
        )
    if command.task == "classify" and len(np.unique(data.targets)) < 2:
        raise ValueError(
            f"{command.file}: column {target!r} has only one class, "
            f"{data.targets[0]}; a classifier needs at least two."
        )


def _estimator(command: Any, groups: int) -> Any:
    options: dict[str, Any] = dict(
        steps=STEPS[command.preset] if command.steps is None else command.steps,
        random_state=command.seed,
        progress=command.progress,
    )
    if groups < 5:
        options["validation"] = None
    if command.batch_size is not None:
        options["batch_size"] = command.batch_size
    if command.learning_rate is not None:
        options["learning_rate"] = command.learning_rate
    if command.task == "forecast":
        options["horizon"] = command.horizon
    if command.task == "generate":
        options["prefix"] = command.prefix
    return TASKS[command.task](model=command.model, **options)


def _print(understood: Understood, paths: SampledPath | None = None) -> None:
    for name, text in understood.lines():
        print(f"{name:>16}  {text}")
    if paths is not None:
        shape = (*paths.batch_shape, paths.num_times, paths.dim)
        print(f"{'paths':>16}  {shape}, {paths.xs.dtype}", flush=True)


def _load(file: pathlib.Path, *kinds: Any) -> Any:
    """A fitted estimator of one of these kinds, with the columns of its data."""
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}.")
    estimator = estimators.load_estimator(file)
    if not isinstance(estimator, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(
            f"{file} holds a {type(estimator).__name__}; this command needs a {names}."
        )
    if not hasattr(estimator, "columns_"):
        raise ValueError(f"{file} was not written by `arborax fit` or `features`.")
    return estimator


def _known_columns(estimator: Any, file: pathlib.Path) -> Columns:
    """The columns of the training data in another file."""
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}.")
    stored: dict[str, Any] = dict(origin=()) | dict(estimator.columns_)
    for name in ("channels", "origin"):
        stored[name] = tuple(stored[name])
    fields = [field.name for field in dataclasses.fields(Columns)]
    columns = Columns(**{name: stored[name] for name in fields})
    names = names_of(file)
    trained = f"the model was fitted with channels {', '.join(columns.channels)}"
    for name in columns.names:
        if name not in names and name != columns.target:
            raise ValueError(f"{file} has no column {name!r}; {trained}.")
    spare = ("y",) if file.suffix == ".npz" else ()
    extra = [name for name in names if name not in (*columns.names, *spare)]
    extra = [name for name in extra if not is_index(name)]
    if columns.every and extra:
        raise ValueError(
            f"{file} also has {', '.join(extra)}, but {trained}, all there were. Drop "
            "what is new, or fit with `--channels`."
        )
    if columns.target not in names:
        columns = dataclasses.replace(columns, target=None)
    return columns


def predict(command: Any) -> None:
    """Predictions for each group of a file."""
    estimator = _load(
        command.model,
        estimators.SequenceClassifier,
        estimators.SequenceRegressor,
        estimators.Forecaster,
    )
    columns = _known_columns(estimator, command.file)
    _check_out(command, "out")
    table = read_table(command.file, columns)
    understood = Understood(command.file, columns)
    understood.add(table)
    data = as_data(command.file, table, columns)
    _check_times(estimator, command.file, table, columns)
    if command.dry_run:
        return _print(understood, data.paths)
    if estimator.columns_["task"] == "forecast":
        _check_past(command.file, estimator.columns_["first"], understood)
    with naming(command.file):
        found = estimator.predict(data.paths)
    out: dict[str, Any] = {columns.group or "path": data.groups}
    if estimator.columns_["task"] == "forecast":
        horizon = found.shape[1]
        out = {name: np.repeat(labels, horizon) for name, labels in out.items()}
        out["ahead"] = np.tile(np.arange(1, horizon + 1), len(found))
        flat = _from_origin(found.reshape(len(found) * horizon, -1), columns.origin)
        out |= {name: flat[:, k] for k, name in enumerate(columns.channels)}
    else:
        out["prediction"] = found
    if estimator.columns_["task"] == "classify":
        probabilities = estimator.predict_proba(data.paths)
        classes = zip(estimator.classes_, probabilities.T)
        out |= {f"probability {label}": column for label, column in classes}
    write_rows(command.out, pa.table(out))
    print(f"predictions written to {command.out}")
    if data.targets is not None:
        _print_score(estimator, data, columns)


def _print_score(estimator: Any, data: Any, columns: Columns) -> None:
    """The score, and which of the true classes the model cannot know."""
    true = set(data.targets.tolist())
    known = getattr(estimator, "classes_", data.targets).tolist()
    unseen = sorted(map(str, true.difference(known)))
    if unseen:
        print(
            f"column {columns.target!r} holds classes that training had not: "
            f"{', '.join(unseen[:5])}; the model was fitted for "
            f"{', '.join(map(str, known[:5]))}"
        )
    if len(unseen) < len(true):
        print(f"score {estimator.score(data.paths, data.targets):.4g}")


def _check_times(estimator: Any, file: pathlib.Path, table: Any, columns: Any) -> None:
    """Refuses dates where training had numbers, and numbers where it had dates."""
    first, dates = estimator.columns_["first"], has_dates(table, columns)
    if first is not None and dates != isinstance(first, str):
        raise ValueError(
            f"{file}: column {columns.time!r} holds {'dates' if dates else 'numbers'}, "
            f"but times of the training data start at {first}; both must be dates, or "
            "both numbers."
        )


def _check_past(file: pathlib.Path, first: Any, understood: Understood) -> None:
    """Refuses to forecast what happened before the training data."""
    if first is None or understood.columns.time is None:
        return
    start = understood.ranges[understood.columns.time][0]
    if as_stamp(start) < first:
        raise ValueError(
            f"{file}: times start at {start}, before the training data, which start at "
            f"{first}. Drop these rows, or fit on data that start earlier."
        )


def sample(command: Any) -> None:
    """Generated paths in a file."""
    generator = _load(command.model, estimators.PathGenerator)
    as_count("count", command.count)
    times = np.array(command.times) if command.times else None
    options: dict[str, Any] = dict(times=times, random_state=command.seed)
    times = generator.times_ if times is None else times
    columns = generator.columns_
    groups, given = [], None
    if command.given is not None:
        groups, given = _beginnings(generator, command.given, times)
        options["prefix"] = np.repeat(given, command.count, axis=0)
    with naming(command.given or command.model):
        made = generator.sample(command.count * max(len(groups), 1), **options)
    made = _from_origin(made, columns.get("origin", ()))
    if command.out.suffix == ".npz":
        np.savez(command.out, x=made, t=times)
    else:
        count, length, dim = made.shape
        out: dict[str, Any] = {}
        if given is not None:
            out["given"] = np.repeat(np.asarray(groups), command.count * length)
        out[columns["group"] or "path"] = np.repeat(np.arange(count), length)
        out[columns["time"] or "time"] = np.tile(times, count)
        flat = made.reshape(-1, dim)
        out |= {name: flat[:, k] for k, name in enumerate(columns["channels"])}
        write_rows(command.out, pa.table(out))
    print(f"{len(made)} paths written to {command.out}")


def _from_origin(values: np.ndarray, origin: Any) -> np.ndarray:
    """Values `(.., channels)` as the file has them."""
    return values + np.array(origin) if len(origin) else values


def _beginnings(
    generator: Any, file: pathlib.Path, times: np.ndarray
) -> tuple[list[Any], np.ndarray]:
    """Labels and values `(groups, rows, channels)` of beginnings, at the first of the
    times of the paths."""
    columns = _known_columns(generator, file)
    table = read_table(file, columns)
    _check_times(generator, file, table, columns)
    data = as_data(file, table, columns)
    paths = data.paths
    if paths.num_times > generator.prefix_:
        raise ValueError(
            f"{file}: beginnings have {paths.num_times} rows, but the model was fitted "
            f"for {generator.prefix_} at most. Take fewer, or fit with a larger "
            "`--prefix`."
        )
    if paths.lengths is not None:
        raise ValueError(f"{file}: beginnings need the same number of rows each.")
    if paths.mask is not None and not np.all(paths.mask):
        raise ValueError(f"{file}: beginnings need a value in each row and channel.")
    own, rows = np.asarray(paths.ts, np.float64), min(paths.num_times, len(times))
    gap = (own - own[..., :1])[..., :rows] - (times - times[0])[:rows]
    if np.abs(gap).max() > 1e-4 * (times[-1] - times[0]):
        raise ValueError(
            f"{file}: beginnings must have the first times of the paths, "
            f"{', '.join(f'{t:g}' for t in times[:3])}, .. Take other rows, or give "
            "the paths other `--times`."
        )
    return data.groups, np.asarray(paths.xs)


def features(command: Any) -> None:
    """Signature features of each group, in constant memory."""
    made: Any = None
    if command.model is not None:
        made = _load(command.model, estimators.SignatureFeatures)
        columns = dataclasses.replace(_known_columns(made, command.file), target=None)
    else:
        columns = _columns(command)
    _check_out(command, "out", "save")
    understood = Understood(command.file, columns)
    as_count("rows", command.rows)
    if made is None:
        for _, table in it.islice(read_chunks(command.file, columns, command.rows), 1):
            columns = understood.columns = with_origin(columns, table)

    def paths() -> Iterator[SampledPath]:
        for row, table in read_chunks(command.file, columns, command.rows):
            understood.add(table)
            yield as_data(command.file, table, columns, row).paths

    if made is None or command.dry_run:
        fresh = estimators.SignatureFeatures(
            command.alg,
            command.depth,
            log=command.log,
            window=command.window,
            standardise=command.standardise,
        )
        with _constant_channels(understood), naming(command.file):
            fresh.fit_parts(paths(), columns.channels)
        _print(understood)
        made = made or fresh
    if command.dry_run:
        print(f"{'features':>16}  {len(made.get_feature_names_out())} for each group")
        return
    if command.save is not None:
        made.columns_ = dataclasses.asdict(columns) | dict(
            channels=list(columns.channels),
            origin=list(columns.origin),
            first=understood.first_time,
            task="features",
        )
        made.save(command.save)
    groups = 0
    with rows_writer(command.out) as write:
        for row, table in read_chunks(command.file, columns, command.rows):
            if command.model is not None:
                _check_times(made, command.file, table, columns)
            table, group = grouped(table, columns)
            with naming(command.file, row):
                part = estimators.features_of_frame(
                    table,
                    made,
                    group=group,
                    time=columns.time,
                    channels=columns.channels,
                    unit=columns.unit,  # pyright: ignore[reportArgumentType]
                )
            write(part)
            groups += len(part)
            if command.progress:
                print(f"\r{row + len(table)} rows", end="", file=sys.stderr, flush=True)
    if command.progress:
        print(file=sys.stderr)
    print(f"features of {groups} groups written to {command.out}")


@contextlib.contextmanager
def _constant_channels(understood: Understood) -> Iterator[None]:
    """Refuses channels that cannot be scaled in terms of the file."""
    try:
        yield
    except ValueError:
        if not understood.rows:
            raise ValueError(f"{understood.file} has no rows.") from None
        understood.check_channels()
        raise


def compare(command: Any) -> None:
    """Two-sample test of the paths in two files, with a picture."""
    samples, columns, dates = [], None, False
    for file in (command.first, command.second):
        one = dataclasses.replace(command, file=file)
        found = _columns(one)
        if columns is not None and found.channels != columns.channels:
            raise ValueError(
                f"{command.first} has channels {', '.join(columns.channels)}, {file} "
                f"has {', '.join(found.channels)}. Name the `--channels` to compare."
            )
        table = read_table(file, found)
        if columns is None:
            found, dates = with_origin(found, table), has_dates(table, found)
        elif dates != has_dates(table, found):
            raise ValueError(
                f"times of {command.first} and of {file} must both be dates, or both "
                "numbers."
            )
        columns = dataclasses.replace(found, origin=(columns or found).origin)
        understood = Understood(file, columns)
        understood.add(table)
        paths = as_data(file, table, columns).paths
        _print(understood, paths)
        if paths.batch_shape[0] < 2:
            raise ValueError(f"{file}: a test needs at least two paths; give --group.")
        samples.append(paths)
    if command.dry_run:
        return
    rng = np.random.default_rng(command.seed)
    samples = [_some(paths, command.count, rng) for paths in samples]
    kernel = SignatureKernel(
        command.kind,
        static_kernel="rbf",
        scale=len(columns.channels) ** -0.5,
        add_time=True,
        add_basepoint=command.level,
        normalise=True,
    )
    with naming(command.second):
        pooled = estimators.SignatureFeatures().fit_parts(samples, columns.channels)
    x, y = (pooled.scaling_.apply(paths) for paths in samples)
    result = two_sample_test(
        x, y, kernel, key=jr.PRNGKey(command.seed), permutations=command.permutations
    )
    print(f"squared MMD {float(result.statistic):.4g}, p = {float(result.p_value):.4g}")
    page = _pages.of_comparison(command, samples, columns, result)
    print(f"report written to {page}")


def _some(paths: SampledPath, count: int, rng: Any) -> SampledPath:
    """At most `count` of the paths, drawn at random."""
    return _taken(paths, np.sort(rng.permutation(paths.batch_shape[0])[:count]))


def _taken(paths: SampledPath, rows: np.ndarray) -> SampledPath:
    return jax.tree.map(lambda leaf: leaf[rows], paths.broadcast())

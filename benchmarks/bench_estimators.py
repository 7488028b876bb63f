"""Estimators: compilations, features per second, time to an accuracy, memory.

    python benchmarks/bench_estimators.py [--parts compile features vowels memory]

- `compile`: CPU seconds of the first and tenth call of `SignatureFeatures` on batches
  of ten different sizes, and how many programs XLA compiled, by the events that JAX
  reports for each.
- `features`: features per CPU second from a data frame of 2,000 series of 40 to 100
  rows, compiled before, against pandas code written by hand around pysiglib: groups,
  standard units, time, padding, one batched call. Rounds alternate.
- `vowels`: CPU seconds, compilation included, in which each classifier reaches 95 % on
  the test part of JapaneseVowels (270 series for training, 370 for the test, 7 to 29
  samples, 12 channels). Trained models double their steps, from the same seed, until
  they do. Each classifier has a process of its own.
- `memory`: peak resident memory of `arborax features` on Parquet files of 0.125 to
  2 GB, which are made and deleted here.

Times are process CPU seconds. The parts that are not asked for keep their stored
figures. Writes `benchmarks/results/estimators.json` and `.md`.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import jax
import numpy as np
from summary import short

import arborax as abx
from arborax.estimators import (
    ReservoirClassifier,
    SequenceClassifier,
    SignatureFeatures,
    SignatureKernelClassifier,
)


RESULTS = pathlib.Path(__file__).parent / "results"
SIZES = (1000, 1, 3, 10, 17, 40, 90, 130, 200, 700)
ROUNDS = 5
GIGABYTES = (0.125, 0.5, 2.0)
GOAL = 0.95


def compile_part() -> dict:
    """First and tenth call, in this process, which has compiled nothing yet."""
    programs = []

    def listen(event: str, seconds: float, **_) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            programs.append(seconds)

    rng = np.random.default_rng(0)
    batches = [rng.normal(size=(n, 100, 3)).cumsum(1) for n in SIZES]
    features = SignatureFeatures("ito", 2).fit(batches[0])
    jax.monitoring.register_event_duration_secs_listener(listen)
    seconds = []
    for batch in batches:
        start = time.process_time()
        features.transform(batch)
        seconds.append(time.process_time() - start)
    return {"sizes": SIZES, "seconds": seconds, "programs": len(programs)}


def frame(rng: np.random.Generator):
    """Series of unequal length in one table."""
    import pandas as pd

    lengths = rng.integers(40, 101, 2000)
    data = {
        "id": np.repeat(np.arange(2000), lengths),
        "t": np.concatenate([np.arange(n) / 100 for n in lengths]),
    }
    steps = rng.normal(size=(3, lengths.sum()))
    return pd.DataFrame(data | {f"x{k}": steps[k] for k in range(3)})


def by_hand(df, call):
    """Groups, units, time, padding by the last value, and one call for the batch."""
    channels = ["x0", "x1", "x2"]
    values = (df[channels] - df[channels].mean()) / df[channels].std(ddof=0)
    values.insert(0, "t", df["t"] - df.groupby("id")["t"].transform("first"))
    values["t"] /= values["t"].max()
    series = [part.to_numpy() for _, part in values.groupby(df["id"], sort=False)]
    longest = max(map(len, series))
    pads = [(0, longest - len(part)) for part in series]
    batch = np.stack([np.pad(p, (w, (0, 0)), "edge") for p, w in zip(series, pads)])
    return call(np.ascontiguousarray(batch, np.float32))


def features_part() -> dict:
    import pysiglib

    df = frame(np.random.default_rng(0))
    pysiglib.prepare_log_sig(4, 3, 2)
    pysiglib.prepare_branched_sig(4, 2, planar=True)
    pysiglib.prepare_branched_log_sig(4, 2, 2, planar=True)

    def brackets(x):
        steps = np.diff(x, axis=1)
        steps[..., 0] = 0  # time has no bracket
        correction = -0.5 * steps[..., :, None] * steps[..., None, :]
        correction = correction.reshape(*steps.shape[:2], -1).copy()
        options = dict(planar=True, method=2, correction=correction, n_jobs=-1)
        return pysiglib.branched_log_sig(x, 2, **options)

    tasks = {
        "words, depth 3": (
            dict(alg="shuffle", depth=3, log=False),
            lambda x: pysiglib.sig(x, 3, n_jobs=-1),
        ),
        "log-signatures of words, depth 3": (
            dict(alg="shuffle", depth=3),
            lambda x: pysiglib.log_sig(x, 3, n_jobs=-1, method=2),
        ),
        "realised brackets, depth 2": (dict(alg="munthe-kaas-wright"), brackets),
    }
    rows = []
    for name, (options, call) in tasks.items():
        paths = abx.SampledPath.from_dataframe(df, time="t", group="id")
        features = SignatureFeatures(**options).fit(paths)

        def ours():
            paths = abx.SampledPath.from_dataframe(df, time="t", group="id")
            return features.transform(paths)

        found, rival = ours(), by_hand(df, call)
        width, gap = found.shape[1], None
        if "words" in name:  # with brackets the rival has another basis
            gap = float(np.abs(found - rival).max() / np.abs(rival).max())
        times: list[list[float]] = [[], []]
        for _ in range(ROUNDS):
            for kept, run in zip(times, (ours, lambda: by_hand(df, call))):
                start = time.process_time()
                run()
                kept.append(time.process_time() - start)
        mine, other = map(min, times)
        size = found.size
        row = {"task": name, "features": width, "rival_features": rival.shape[1]}
        row |= {"per_second": size / mine, "rival_per_second": rival.size / other}
        rows.append(row | {"ratio": other / mine, "largest_gap": gap})
        print(rows[-1], flush=True)
    return {"rows": rows}


def linear():
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    features = SignatureFeatures(basepoint=True)
    return make_pipeline(features, StandardScaler(), LogisticRegression(max_iter=500))


def trained(model: str):
    return lambda steps: SequenceClassifier(model, steps=steps, random_state=0)


CLASSIFIERS = {
    "SignatureFeatures, logistic regression": (linear, None),
    "SignatureKernelClassifier": (lambda: SignatureKernelClassifier(depth=3), None),
    "ReservoirClassifier": (lambda: ReservoirClassifier(random_state=0), None),
    "SequenceClassifier, B-NRDE": (trained("bnrde"), 100),
    "SequenceClassifier, linear B-NRDE": (trained("linear-bnrde"), 100),
    "SequenceClassifier, log-NCDE": (trained("log-ncde"), 100),
    "SequenceClassifier, GRU": (trained("gru"), 100),
}


def vowels(name: str) -> dict:
    """One classifier, in this process."""
    data = []
    for part in abx.datasets.read_aeon("JapaneseVowels"):
        series = [x[:n] for x, n in zip(part.values, part.lengths)]
        data.append((series, np.array(part.classes)[part.labels]))
    train, test = data
    make, steps = CLASSIFIERS[name]
    while True:
        start = time.process_time()
        model = (make() if steps is None else make(steps)).fit(*train)
        fitted = time.process_time()
        accuracy = model.score(*test)
        row = {"classifier": name, "steps": steps, "accuracy": float(accuracy)}
        row |= {"fit_seconds": fitted - start}
        row |= {"predict_seconds": time.process_time() - fitted}
        print(row, file=sys.stderr, flush=True)
        if steps is None or accuracy >= GOAL or steps >= 1600:
            return row
        steps *= 2


def vowels_part() -> dict:
    rows = []
    for name in CLASSIFIERS:
        command = [sys.executable, __file__, "--one", name]
        run = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        rows.append(json.loads(run.stdout))
    return {"rows": rows}


def write_parquet(file: pathlib.Path, gigabytes: float) -> int:
    """Groups of 100 rows with four channels, 48 bytes per row; returns the rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows, done, rng = int(gigabytes * 1e9 / 48) // 100 * 100, 0, np.random.default_rng()
    names = ["id", "t", "x0", "x1", "x2", "x3"]
    schema = pa.schema([(n, pa.int64() if n == "id" else pa.float64()) for n in names])
    plain = dict(compression="none", use_dictionary=False)
    with pq.ParquetWriter(file, schema, **plain) as writer:
        while done < rows:
            place = done + np.arange(min(1_000_000, rows - done))
            columns = [place // 100, place % 100 / 100.0]
            columns += [rng.normal(size=len(place)) for _ in range(4)]
            writer.write_table(pa.table(columns, schema=schema))
            done += len(place)
    return rows


def memory_part() -> dict:
    found = []
    for gigabytes in GIGABYTES:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "data.parquet"
            rows = write_parquet(file, gigabytes)
            size = file.stat().st_size
            command = [sys.executable, "-m", "arborax.cli", "features", str(file)]
            command += ["--group", "id", "--time", "t", "--no-progress"]
            out = pathlib.Path(folder) / "features.parquet"
            process = subprocess.Popen([*command, "--out", str(out)])
            _, status, usage = os.wait4(process.pid, 0)
            if status:
                sys.exit(f"`arborax features` failed on {gigabytes} GB")
        row = {"rows": rows, "bytes": size, "peak_mb": usage.ru_maxrss / 1024}
        found.append(row | {"seconds": usage.ru_utime + usage.ru_stime})
        print(found[-1], flush=True)
    return {"rows": found}


PARTS = {
    "compile": compile_part,
    "features": features_part,
    "vowels": vowels_part,
    "memory": memory_part,
}


def describe(document: dict) -> str:
    """The tables."""
    text = []
    for part, title in {
        "compile": "**Ten batch sizes.**",
        "features": "**Features from a data frame.**",
        "vowels": "**JapaneseVowels.**",
        "memory": "**A file larger than its chunks.**",
    }.items():
        if part not in document:
            continue
        found = document[part]
        about = f"{found['date']}, commit {found['commit']}, {found['versions']}"
        text += [f"{title} `python -m benchmarks estimators`, {about}.", ""]
        text += TABLES[part](found) + [""]
    return "\n".join(text)


def table(head: str, rows: list) -> list[str]:
    width = head.count("|") + 1
    return [f"| {head} |", "|---" * width + "|"] + [
        "| " + " | ".join(map(str, row)) + " |" for row in rows
    ]


def compile_table(found: dict) -> list[str]:
    cells = zip(found["sizes"], found["seconds"])
    rows = [(n, short(1e3 * seconds)) for n, seconds in cells]
    lines = table("series in the batch | CPU milliseconds", rows)
    note = f"{found['programs']} programs were compiled for the ten batches."
    return [*lines, "", note]


def features_table(found: dict) -> list[str]:
    rows = []
    for row in found["rows"]:
        sizes = f"{row['features']} and {row['rival_features']}"
        rates = (f"{row[k]:,.0f}" for k in ("per_second", "rival_per_second"))
        gap = row["largest_gap"]
        gap = "other coordinates" if gap is None else f"{gap:.0e}"
        rows.append((row["task"], sizes, *rates, short(row["ratio"]), gap))
    head = "task | features per series, ours and by hand | ours, per CPU second"
    return table(f"{head} | by hand | time by hand / ours | largest difference", rows)


def vowels_table(found: dict) -> list[str]:
    rows = []
    for row in found["rows"]:
        reached = row["accuracy"] >= GOAL
        seconds = short(row["fit_seconds"]) if reached else "not reached"
        steps = row["steps"] or ""
        cells = row["classifier"], seconds, steps, f"{row['accuracy']:.3f}"
        rows.append((*cells, short(row["predict_seconds"])))
    head = "classifier | CPU seconds to 95 % | steps | accuracy"
    return table(f"{head} | CPU seconds to predict", rows)


def memory_table(found: dict) -> list[str]:
    rows = [
        (
            f"{row['bytes'] / 1e9:.3g} GB",
            f"{row['rows']:,}",
            f"{row['peak_mb']:.0f}",
            short(row["seconds"]),
        )
        for row in found["rows"]
    ]
    return table("file | rows | peak memory, MB | CPU seconds", rows)


TABLES = {
    "compile": compile_table,
    "features": features_table,
    "vowels": vowels_table,
    "memory": memory_table,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--one", help="one classifier of `vowels`, as JSON")
    parser.add_argument("--draw", action="store_true", help="stored figures only")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(vowels(options.one)))
        return
    file = RESULTS / "estimators.json"
    document = json.loads(file.read_text()) if file.exists() else {}
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True).stdout.strip()
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}"
        for name in ("jax", "scikit-learn", "pysiglib")
        if importlib.util.find_spec(name.replace("scikit-learn", "sklearn"))
    )
    for part in [] if options.draw else options.parts:
        document[part] = PARTS[part]() | {
            "date": datetime.date.today().isoformat(),
            "commit": commit,
            "versions": f"Python {platform.python_version()}, {versions}",
        }
        file.write_text(json.dumps(document, indent=1) + "\n")
    (RESULTS / "estimators.md").write_text(describe(document))


if __name__ == "__main__":
    main()

"""A few cells of `compare.py` with a history, and an alert when one becomes slow.

    python benchmarks/smoke.py HISTORY.jsonl [--alert 1.5] [--seconds 2]

Times the cells of this checkout, appends one line to the history, and fails if a cell
takes more than `--alert` times what it took in the median of the last seven lines.
Times are CPU seconds in units of a fixed NumPy computation, so that lines from
different machines can be compared.
"""

import argparse
import datetime
import importlib.metadata
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import time

import numpy as np
from compare import Worker


ROOT = pathlib.Path(__file__).parents[1]
ROUNDS = 4
CELLS = (
    "solve R^32 GL(2,2)",
    "solve SO(3) Shuffle(4,3)",
    "signature Shuffle(4,3) 256 x 128",
    "signature Ito(3,2) 2048 x 32 gradient",
    "gram complete",
    "eager signature",
)


def unit(seconds: float) -> float:
    """CPU seconds of the fixed computation on one thread, the least of several."""
    values = np.random.default_rng(0).standard_normal((400, 400))
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.process_time()
        np.sort(np.tanh(values), axis=0)
        best = min(best, time.process_time() - start)
    return best


def measure(seconds: float) -> dict:
    """One line of the history."""
    command = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    worker, times = Worker(ROOT, XLA_FLAGS=flags), {}  # one thread, as the unit has
    for name in CELLS:
        # Cell and unit take turns: a busy machine slows both.
        runs, units = [], []
        for _ in range(ROUNDS):
            answer = worker.ask(name, seconds / ROUNDS)
            if "error" in answer:
                sys.exit(f"{name}: {answer['error']}")
            runs.append(answer["run"])
            units.append(unit(seconds / ROUNDS))
        times[name] = min(runs) / min(units)
    worker.close()
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit.strip(),
        "machine": platform.platform(),
        "versions": {
            name: importlib.metadata.version(name) for name in ("jax", "numpy")
        },
        "times": times,
    }


def slow_cells(history: list[dict], line: dict, alert: float) -> dict[str, float]:
    """Cells that are `alert` times slower than in the median of the last seven lines,
    with that ratio."""
    slow = {}
    for name, value in line["times"].items():
        past = [old["times"][name] for old in history[-7:] if name in old["times"]]
        if past and value > alert * statistics.median(past):
            slow[name] = value / statistics.median(past)
    return slow


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("history", type=pathlib.Path)
    parser.add_argument("--alert", type=float, default=1.5)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each cell")
    options = parser.parse_args()
    lines = options.history.read_text().splitlines() if options.history.exists() else []
    history, line = [json.loads(text) for text in lines], measure(options.seconds)
    slow = slow_cells(history, line, options.alert)
    for name, value in line["times"].items():
        note = f"  {slow[name]:.2f} times the median" if name in slow else ""
        print(f"{name:40} {value:10.3g}{note}")
    options.history.parent.mkdir(parents=True, exist_ok=True)
    with options.history.open("a") as file:
        print(json.dumps(line), file=file)
    if slow:
        sys.exit(f"slower than {options.alert} times the median: {', '.join(slow)}")


if __name__ == "__main__":
    main()

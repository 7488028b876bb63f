"""A few cells of `arborax bench --device` with a history, and an alert when one becomes
slow.

    python benchmarks/smoke.py HISTORY.jsonl [--alert 1.5] [--seconds 2]

Times the cells, appends one line to the history, and fails if a cell takes more than
`--alert` times what it took in the median of the last seven lines. Times are CPU
seconds on one thread in units of a fixed NumPy computation, so that lines from
different machines can be compared.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

import numpy as np


ROOT = pathlib.Path(__file__).parents[1]
ROUNDS = 4
FLAGS = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
CELLS = (
    "Shuffle(4,3)",
    "Ito(3,2), gradient",
    "geometric",
    "SO(3), Ito(3,2)",
    "solve_sde",
    "BNRDE Ito(3,2)",
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
    os.environ["XLA_FLAGS"] = FLAGS  # before JAX is imported
    import equinox as eqx
    import jax

    from arborax.cli._device import device_cells

    known = {k: v for cells in device_cells().values() for k, v in cells.items()}
    times = {}
    for name in CELLS:
        function, arguments = known[name]()
        program = eqx.filter_jit(function)

        def once(program=program, arguments=arguments):
            start = time.process_time()
            leaves = jax.tree.leaves(eqx.filter(program(*arguments), eqx.is_array))
            jax.block_until_ready(leaves)
            return time.process_time() - start

        once()
        # Cell and unit take turns: a busy machine slows both.
        runs, units = [], []
        for _ in range(ROUNDS):
            end = time.perf_counter() + seconds / ROUNDS
            runs.append(once())
            while time.perf_counter() < end:
                runs.append(once())
            units.append(unit(seconds / ROUNDS))
        times[name] = min(runs) / min(units)
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

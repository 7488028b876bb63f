"""How long the static tables of an algebra take to build, and how large they are.

    python benchmarks/bench_tables.py

Each algebra is built in a process of its own, so that nothing is cached: first what a
signature and a log-signature need, then what products, antipode, exponential and
logarithm need beyond that. CPU seconds; a second look at the same algebra is a look
into a cache. Writes `benchmarks/results/tables.json` and `.md`.
"""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import arborax as abx
from arborax.algebra import primitive_conversion


SIZES = [(2, 6), (7, 3), (10, 3), (20, 2)]
ALGEBRAS = ("Shuffle", "GrossmanLarson", "MuntheKaasWright", "Ito")


def signature_tables(alg):
    """Maps from words with and without brackets, as signatures use them."""
    alg.primitive_maps  # noqa: B018
    for words in (abx.Shuffle(alg.dim, alg.depth), abx.Ito(alg.dim, alg.depth)):
        if isinstance(alg, abx.GrossmanLarson | abx.MuntheKaasWright):
            alg.from_words(words)
            primitive_conversion(words, alg)


def operations(alg):
    x = np.zeros(alg.size)
    alg.product(x, x)
    alg.antipode(x)
    alg.exp(x)
    alg.log(x)
    alg.from_primitive(alg.to_primitive(x))


def measure(name: str, dim: int, depth: int) -> dict:
    row = {"algebra": name, "dim": dim, "depth": depth}
    start = time.process_time()
    try:
        alg = getattr(abx, name)(dim, depth)
        row |= {"size": alg.size, "primitive_size": alg.primitive_size}
        signature_tables(alg)
        row["signature_cpu_seconds"] = time.process_time() - start
        operations(alg)
        row["all_cpu_seconds"] = time.process_time() - start
        start = time.process_time()
        operations(getattr(abx, name)(dim, depth))
        row["again_cpu_seconds"] = time.process_time() - start
    except ValueError as error:
        row["refused"] = str(error)
    return row


def write(rows: list[dict], folder: Path):
    machine = f"{os.cpu_count()} CPU cores, Python {platform.python_version()}"
    command = "python benchmarks/bench_tables.py"
    document = {"settings": {"machine": machine, "command": command}, "rows": rows}
    (folder / "tables.json").write_text(json.dumps(document, indent=1) + "\n")
    lines = [
        "CPU seconds to build the tables of an algebra in a fresh process: those that "
        "signatures and log-signatures need (with and without brackets), all of them, "
        f"and all operations once more on an equal algebra. {machine}, `{command}`.",
        "",
        "| algebra | channels, depth | size | primitives | signatures | all | again |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        place = f"| {row['algebra']} | {row['dim']}, {row['depth']} "
        if "refused" in row:
            lines.append(f"{place}| refused: {row['refused']} |" + " |" * 4)
            continue
        seconds = ("signature_cpu_seconds", "all_cpu_seconds", "again_cpu_seconds")
        times = " | ".join(f"{row[name]:.2f}" for name in seconds)
        lines.append(f"{place}| {row['size']} | {row['primitive_size']} | {times} |")
    (folder / "tables.md").write_text("\n".join(lines) + "\n")


def main():
    if len(sys.argv) > 1:
        name, dim, depth = sys.argv[1:]
        print(json.dumps(measure(name, int(dim), int(depth))))
        return
    rows = []
    for dim, depth in SIZES:
        for name in ALGEBRAS:
            command = [sys.executable, __file__, name, str(dim), str(depth)]
            out = subprocess.run(command, check=True, capture_output=True, text=True)
            rows.append(json.loads(out.stdout))
            print(rows[-1], flush=True)
    write(rows, Path(__file__).parent / "results")


if __name__ == "__main__":
    main()

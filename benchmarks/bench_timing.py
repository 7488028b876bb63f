"""Log-signature times over the number of channels, against pysiglib: two heat maps.

    python benchmarks/bench_timing.py [--limit 5] [--resume] [--draw]

Forward log-signatures of 32 paths of 64 points, float32, for 2 to 24 channels at depths
2 and 3 in all algebras, canonical lift for `Shuffle` and realised brackets for the
others. Times are process CPU seconds of one call; the rival is pysiglib, whose planar
logarithm is set against `MuntheKaasWright` and `Ito` alike. Each of its algebras and
depths is run in a process of its own, from few channels to many, until a call (or its
preparation) takes longer than the limit or fails; the cells beyond stay blank. Writes
`results/timing/timing.json`, which `arborax report --folders results` draws too, and
`benchmarks/results/timing.png` and `.md`; `--draw` draws stored times only.
"""

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import arborax as abx
from arborax_experiments.timing import FILE, heat_maps, ratios


ALGEBRAS = (abx.Shuffle, abx.GrossmanLarson, abx.MuntheKaasWright, abx.Ito)
CHANNELS = list(range(2, 25))
DEPTHS = (2, 3)
BATCH, LENGTH = 32, 64
FOLDER = Path(__file__).parent / "results"
DATA = Path(__file__).parents[1] / "results" / FILE


def sample(dim: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    path = rng.normal(size=(BATCH, LENGTH, dim)).cumsum(1) / np.sqrt(LENGTH)
    return np.ascontiguousarray(path, np.float32)


def cpu_seconds(function) -> float:
    """The best of five, each of some 10 milliseconds; slow calls once."""
    function()
    start = time.process_time()
    function()
    once = time.process_time() - start
    if once > 0.5:
        return once
    calls = max(1, min(50, int(0.01 / max(once, 1e-6))))
    best = once
    for _ in range(5):
        start = time.process_time()
        for _ in range(calls):
            function()
        best = min(best, (time.process_time() - start) / calls)
    return best


def ours(algebra, dim: int, depth: int) -> dict:
    alg = algebra(dim, depth)
    brackets = None if algebra is abx.Shuffle else "realised"
    path = jnp.asarray(sample(dim))
    start = time.process_time()
    call = jax.jit(lambda x: abx.log_signature(x, alg, brackets))
    compiled = call.lower(path).compile()
    built = time.process_time() - start
    seconds = cpu_seconds(lambda: jax.block_until_ready(compiled(path)))
    return {"seconds": seconds, "build_seconds": built, "size": alg.primitive_size}


def rival(kind: str, depth: int, limit: float):
    """Print the time of every number of channels until one is too slow."""
    pysiglib = importlib.import_module("pysiglib")
    for dim in CHANNELS:
        path = sample(dim)
        start = time.process_time()
        if kind == "Shuffle":
            pysiglib.prepare_log_sig(dim, depth, 2)
            call = lambda x=path: pysiglib.log_sig(x, depth, n_jobs=-1, method=2)  # noqa: E731
        else:
            planar = kind == "MuntheKaasWright"
            method = 2 if planar else 0
            step = np.diff(path, axis=1)
            correction = -0.5 * step[..., :, None] * step[..., None, :]
            options = {
                "planar": planar,
                "method": method,
                "correction": np.ascontiguousarray(
                    correction.reshape(*step.shape[:2], -1)
                ),
            }
            pysiglib.prepare_branched_log_sig(dim, depth, method, planar=planar)
            pysiglib.prepare_branched_sig(dim, depth, planar=planar)
            call = lambda x=path, o=options: pysiglib.branched_log_sig(  # noqa: E731
                x, depth, n_jobs=-1, **o
            )
        if time.process_time() - start > limit:
            return
        seconds = cpu_seconds(call)
        if seconds > limit:
            return
        print(json.dumps({"dim": dim, "seconds": seconds}), flush=True)


def rival_times(kind: str, depth: int, limit: float) -> list[dict]:
    """The rival's lines from a process that is ended if it hangs.

    It ends itself by CPU time; the wall time allowed here is generous, so that a busy
    machine leaves no cell blank.
    """
    command = [sys.executable, __file__, "--rival", kind, str(depth)]
    command += ["--limit", str(limit)]
    try:
        run = subprocess.run(command, capture_output=True, timeout=300 * limit)
        out = run.stdout
    except subprocess.TimeoutExpired as late:
        out = late.stdout or b""
    return [json.loads(line) for line in out.splitlines()]


def measure(document: dict, limit: float):
    rows = document["rows"]
    done = {(row["library"], row["algebra"], row["depth"], row["dim"]) for row in rows}
    for depth in DEPTHS:
        for algebra in ALGEBRAS:
            name = algebra.__name__
            for dim in CHANNELS:
                if ("arborax", name, depth, dim) not in done:
                    row = {"library": "arborax", "algebra": name, "depth": depth}
                    rows.append({**row, "dim": dim, **ours(algebra, dim, depth)})
                    save(document)
                    print(rows[-1], flush=True)
            key = f"{name} {depth}"
            if algebra is abx.Ito or key in document["rival_done"]:
                continue
            for line in rival_times(name, depth, limit):
                row = {"library": "pysiglib", "algebra": name, "depth": depth, **line}
                rows.append(row)
                print(row, flush=True)
            document["rival_done"].append(key)
            save(document)


def save(document: dict):
    DATA.parent.mkdir(parents=True, exist_ok=True)
    DATA.write_text(json.dumps(document, indent=1) + "\n")


def draw(document: dict):
    """The picture, and the page with the ratios for each algebra and depth."""
    heat_maps(document).savefig(FOLDER / "timing.png", dpi=130)
    settings, table = document["settings"], ratios(document)
    head = ["algebra, depth", *table.columns]
    lines = [
        "CPU milliseconds of one forward log-signature of 32 paths of 64 points, "
        "float32; `Ito` is set against the rival's planar logarithm, which it "
        f"compresses. Blank: pysiglib failed, or took longer than {settings['limit']:g}"
        f" s for a call or its tables. {settings['machine']}, `{settings['command']}`.",
        "",
        f"| {' | '.join(head)} |",
        "|---" * len(head) + "|",
        *(f"| {' | '.join([label, *cells])} |" for label, cells in table.lines),
    ]
    (FOLDER / "timing.md").write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=5.0, help="CPU seconds")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--draw", action="store_true", help="only draw what is stored")
    parser.add_argument("--rival", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rival:
        return rival(options.rival[0], int(options.rival[1]), options.limit)
    document: dict = {"rows": [], "rival_done": [], "channels": CHANNELS}
    if (options.resume or options.draw) and DATA.exists():
        document = json.loads(DATA.read_text())
    if not options.draw:
        document["settings"] = {
            "command": f"python benchmarks/bench_timing.py --limit {options.limit:g}",
            "limit": options.limit,
            "machine": f"{os.cpu_count()} CPU cores, Python "
            f"{platform.python_version()}, jax {jax.__version__}",
        }
        measure(document, options.limit)
    draw(document)


if __name__ == "__main__":
    main()

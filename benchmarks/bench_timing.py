"""Log-signature times over the number of channels, against pysiglib: two heat maps.

    python benchmarks/bench_timing.py [--limit 5] [--resume] [--draw]

Forward log-signatures of 32 paths of 64 points, float32, for 2 to 24 channels at depths
2 and 3 in all algebras, canonical lift for `Shuffle` and realised brackets for the
others. Times are process CPU seconds of one call; the rival is pysiglib, whose planar
logarithm is set against `MuntheKaasWright` and `Ito` alike. Each of its algebras and
depths is run in a process of its own, from few channels to many, until a call (or its
preparation) takes longer than the limit or fails; the cells beyond stay blank. Writes
`benchmarks/results/timing.json`, `.png` and `.md`; `--draw` draws stored times only.
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
from summary import short

import arborax as abx


ALGEBRAS = (abx.Shuffle, abx.GrossmanLarson, abx.MuntheKaasWright, abx.Ito)
CHANNELS = list(range(2, 25))
DEPTHS = (2, 3)
BATCH, LENGTH = 32, 64
FOLDER = Path(__file__).parent / "results"


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
    FOLDER.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, indent=1)
    (FOLDER / "timing.json").write_text(text + "\n")


def grid(rows: list[dict], library: str) -> np.ndarray:
    """Milliseconds `(algebra and depth, channels)`, NaN where there is no time."""
    out = np.full((len(DEPTHS) * len(ALGEBRAS), len(CHANNELS)), np.nan)
    for row in rows:
        if row["library"] != library:
            continue
        for k, (depth, algebra) in enumerate(labels()):
            same = row["algebra"] == algebra
            if library == "pysiglib" and algebra == "Ito":
                same = row["algebra"] == "MuntheKaasWright"
            if same and row["depth"] == depth:
                out[k, CHANNELS.index(row["dim"])] = 1e3 * row["seconds"]
    return out


def labels() -> list[tuple[int, str]]:
    return [(depth, a.__name__) for depth in DEPTHS for a in ALGEBRAS]


def draw(document: dict):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import LogNorm

    grids = {name: grid(document["rows"], name) for name in ("arborax", "pysiglib")}
    times = np.concatenate([g.ravel() for g in grids.values()])
    norm = LogNorm(np.nanmin(times), np.nanmax(times))
    figure, axes = plt.subplots(2, 1, figsize=(11, 6.4), layout="constrained")
    image = None
    for ax, (name, values) in zip(axes, grids.items()):
        image = ax.imshow(values, norm=norm, cmap="viridis", aspect="auto")
        ax.set_xticks(range(len(CHANNELS)), [str(d) for d in CHANNELS])
        ticks = [f"{name}, N={depth}" for depth, name in labels()]
        ax.set_yticks(range(len(ticks)), ticks)
        for (i, j), value in np.ndenumerate(values):
            if np.isfinite(value):
                dark = norm(value) < 0.6
                text = short(value)
                colour = "white" if dark else "black"
                ax.text(j, i, text, ha="center", va="center", color=colour, size=6)
        blank = int(np.isnan(values).sum())
        ax.set_title(f"{name}: log-signature, CPU ms ({blank} blank cells)")
    axes[-1].set_xlabel("channels")
    assert image is not None
    figure.colorbar(image, ax=axes, label="CPU ms for 32 paths of 64 points")
    figure.savefig(FOLDER / "timing.png", dpi=130)
    plt.close(figure)
    describe(document, grids)


def describe(document: dict, grids: dict[str, np.ndarray]):
    """The page: what was run, and the ratios for each algebra and depth."""
    settings = document["settings"]
    lines = [
        "CPU milliseconds of one forward log-signature of 32 paths of 64 points, "
        "float32; `Ito` is set against the rival's planar logarithm, which it "
        f"compresses. Blank: pysiglib failed, or took longer than {settings['limit']:g}"
        f" s for a call or its tables. {settings['machine']}, `{settings['command']}`.",
        "",
        "| algebra, depth | our blank cells | pysiglib's | pysiglib / arborax: median "
        "| range |",
        "|---|---|---|---|---|",
    ]
    for k, (depth, algebra) in enumerate(labels()):
        mine, theirs = grids["arborax"][k], grids["pysiglib"][k]
        ratio = (theirs / mine)[np.isfinite(theirs / mine)]
        extent = f"{short(ratio.min())} to {short(ratio.max())}" if ratio.size else "–"
        middle = short(np.median(ratio)) if ratio.size else "–"
        blanks = (int(np.isnan(mine).sum()), int(np.isnan(theirs).sum()))
        lines.append(
            f"| {algebra}, {depth} | {blanks[0]} | {blanks[1]} | {middle} | {extent} |"
        )
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
    file = FOLDER / "timing.json"
    document: dict = {"rows": [], "rival_done": []}
    if (options.resume or options.draw) and file.exists():
        document = json.loads(file.read_text())
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

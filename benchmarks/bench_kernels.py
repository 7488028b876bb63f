"""Signature kernels against pysiglib and against explicit features.

    python benchmarks/bench_kernels.py [--repeats 5] [--only gram,pairs,fourier]

Needs the extra `bench` for the comparison; without pysiglib only arborax is timed. The
two libraries run alternately in one process, so that a busy machine slows both. Times
are CPU seconds of all threads, and the ratio is the median of the pairwise ratios.
Writes `benchmarks/results/kernels.json` and `.md`.
"""

import argparse
import json
import os
import platform
import resource
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import arborax as abx


jax.config.update("jax_enable_x64", True)

try:
    import pysiglib
    import torch
except ImportError:
    pysiglib = torch = None


def once(function):
    start = time.process_time()
    jax.block_until_ready(function())
    return time.process_time() - start


def race(ours, theirs, repeats):
    """Alternate; median times and median of the ratios theirs / ours."""
    compile_time = once(ours)
    if theirs is not None:
        theirs()
    a, b = [], []
    for _ in range(repeats):
        a.append(once(ours))
        if theirs is not None:
            b.append(once(theirs))
    row = {"arborax_s": float(np.median(a)), "first_call_s": compile_time}
    if theirs is not None:
        row["rival_s"] = float(np.median(b))
        row["ratio"] = float(np.median(np.array(b) / np.array(a)))
    return row


def paths(rng, n, times, d, dtype):
    steps = rng.standard_normal((n, times, d)) / np.sqrt(times)
    return np.ascontiguousarray(np.cumsum(steps, axis=1), dtype=dtype)


def gradient_of(function):
    return jax.jit(jax.grad(lambda x, y: jnp.sum(function(x, y))))


def torch_gradient(name, x, y, **options):
    tx, ty = torch.tensor(x, requires_grad=True), torch.tensor(y)
    function = getattr(pysiglib.torch_api, name)

    def run():
        tx.grad = None
        function(tx, ty, **options).sum().backward()

    return run


def geometric(repeats, jobs, gram, sizes, dtypes):
    rng = np.random.default_rng(0)
    rows = []
    for n, times, d in sizes:
        for dtype in dtypes:
            x, y = (paths(rng, n, times, d, dtype) for _ in range(2))
            jx, jy = jnp.asarray(x), jnp.asarray(y)
            name = "sig_kernel_gram" if gram else "sig_kernel"
            ours = abx.signature_gram if gram else abx.signature_kernel
            case = f"{n} x {n}" if gram else f"{n} pairs"
            label = f"geometric {case}, length {times}, d={d}, {np.dtype(dtype).name}"
            value = jax.jit(ours)
            grad = gradient_of(ours)
            forward = backward = None
            if pysiglib is not None:
                run = getattr(pysiglib, name)
                forward = lambda: run(x, y, dyadic_order=0, n_jobs=jobs)  # noqa: B023,E731
                options = {"max_batch": 16} if gram and n > 64 else {}
                backward = torch_gradient(
                    name, x, y, dyadic_order=0, n_jobs=jobs, **options
                )
            row = race(lambda: value(jx, jy), forward, repeats)  # noqa: B023
            row |= {"case": label, "what": "value"}
            if pysiglib is not None:
                theirs = forward()
                gap = np.max(np.abs(np.asarray(value(jx, jy)) - theirs))
                row["relative_gap"] = float(gap / np.max(np.abs(theirs)))
            rows.append(row)
            print(row, flush=True)
            few = max(2, repeats // 2)
            row = race(lambda: grad(jx, jy), backward, few)  # noqa: B023
            rows.append(row | {"case": label, "what": "gradient"})
            print(rows[-1], flush=True)
    return rows


def branched_rival(repeats, jobs):
    """pysiglib truncates by tree height, arborax by vertices: depth 3 in both."""
    rng = np.random.default_rng(1)
    x, y = (0.2 * paths(rng, 32, 128, 3, np.float64) for _ in range(2))
    jx, jy = jnp.asarray(x), jnp.asarray(y)
    rows = []
    for depth, label in ((3, "3 vertices"), (None, "complete")):

        def kernel(a, b, depth=depth):
            return abx.signature_gram(a, b, "branched", depth, method="recursion")

        forward = backward = None
        if pysiglib is not None:
            run = pysiglib.branched_sig_kernel_gram
            forward = lambda: run(x, y, 3, 0, n_jobs=jobs)  # noqa: E731
            backward = torch_gradient(
                "branched_sig_kernel_gram", x, y, depth=3, dyadic_order=0, n_jobs=jobs
            )
        name = f"branched ({label}; rival: height 3) 32 x 32, length 128, d=3, float64"
        value, grad = jax.jit(kernel), gradient_of(kernel)
        row = race(lambda: value(jx, jy), forward, repeats)  # noqa: B023
        rows.append(row | {"case": name, "what": "value"})
        print(rows[-1], flush=True)
        row = race(lambda: grad(jx, jy), backward, max(2, repeats // 2))  # noqa: B023
        rows.append(row | {"case": name, "what": "gradient"})
        print(rows[-1], flush=True)
    return rows


def branched_features(repeats, limit=8000):
    """The recursion against explicit tree features, Gram 32 x 32 of length 64."""
    rng = np.random.default_rng(2)
    rows = []
    for d in (2, 3, 7, 20):
        x, y = (jnp.asarray(paths(rng, 32, 64, d, np.float64)) for _ in range(2))
        for depth in (2, 3, 4, 5):
            count = abx.GrossmanLarson(d, depth).size
            runs = {}
            for method in ("recursion", "features"):

                def kernel(a, b, method=method, depth=depth):
                    return abx.signature_gram(a, b, "branched", depth, method=method)

                runs[method] = jax.jit(kernel)
            feasible = count <= limit
            features = (lambda: runs["features"](x, y)) if feasible else None  # noqa: B023,E731
            if feasible:
                once(features)
            row = race(lambda: runs["recursion"](x, y), features, repeats)  # noqa: B023
            memory = runs["recursion"].lower(x, y).compile().memory_analysis()
            row["temporary_megabytes"] = memory.temp_size_in_bytes / 1e6
            row |= {"d": d, "depth": depth, "features": count}
            rows.append(row)
            print(row, flush=True)
    return rows


def fourier(repeats):
    rng = np.random.default_rng(3)
    rows = []
    for n, times in ((512, 33), (128, 513)):
        x = jnp.asarray(paths(rng, n, times, 1, np.float32))
        for kind in ("ito", "geometric", "branched"):
            maps = abx.RandomFourierSignature(
                1, key=jr.key(0), kind=kind, features=192, dtype=jnp.float32
            )
            maps = maps.fit(x[:64])
            target = abx.embed(x, maps)
            step = jax.jit(
                jax.value_and_grad(lambda z, maps=maps, t=target: abx.mmd(z, t, maps))
            )
            value = jax.jit(lambda z, maps=maps, t=target: abx.mmd(z, t, maps))
            for what, run in (("value", value), ("value and gradient", step)):
                row = race(lambda: run(x), None, repeats)  # noqa: B023
                case = f"{kind}, 3 levels x 192, {n} paths, length {times}, float32"
                rows.append(row | {"case": case, "what": what})
                print(rows[-1], flush=True)
    return rows


def table(rows, columns):
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        cells = []
        for column in columns:
            value = row.get(column, "")
            cells.append(f"{value:.3g}" if isinstance(value, float) else str(value))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=-1, help="threads of pysiglib")
    parser.add_argument("--only", default="gram,large,pairs,rival,features,fourier")
    args = parser.parse_args()
    parts = args.only.split(",")
    both = (np.float64, np.float32)
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    file = folder / "kernels.json"
    out = json.loads(file.read_text()) if file.exists() else {}
    out["machine"] = {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "jax": jax.__version__,
        "date": time.strftime("%Y-%m-%d"),
        "load": os.getloadavg()[0],
        "rival": "pysiglib 4.0.0, all threads" if pysiglib else "none",
    }
    if "gram" in parts:
        sizes = [(64, 128, 3)]
        out["gram"] = geometric(args.repeats, args.jobs, True, sizes, both)
    if "large" in parts:
        sizes = [(256, 64, 6)]
        out["large"] = geometric(args.repeats, args.jobs, True, sizes, both)
    if "pairs" in parts:
        sizes = [(1, 1024, 3), (16, 1024, 3)]
        out["pairs"] = geometric(args.repeats, args.jobs, False, sizes, both)
    if "rival" in parts:
        out["branched"] = branched_rival(args.repeats, args.jobs)
    if "features" in parts:
        out["features"] = branched_features(args.repeats)
    if "fourier" in parts:
        out["fourier"] = fourier(args.repeats)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    out["machine"]["peak_megabytes"] = peak
    file.write_text(json.dumps(out, indent=1) + "\n")
    races = ["case", "what", "arborax_s", "rival_s", "ratio", "first_call_s"]
    sections = [
        "# Kernels\n\nMade by `benchmarks/bench_kernels.py`; ratio above 1 means "
        "arborax is faster. CPU seconds of all threads, the median of alternating "
        "runs; `first_call_s` includes compilation.\n\n"
        f"{json.dumps(out['machine'])}\n"
    ]
    for name in ("gram", "large", "pairs", "branched"):
        if name in out:
            sections.append(f"## {name}\n\n{table(out[name], races)}\n")
    if "features" in out:
        columns = [
            "d", "depth", "features", "arborax_s", "rival_s", "ratio",
            "temporary_megabytes",
        ]  # fmt: skip
        sections.append(
            "## Branched recursion against explicit features (rival; empty: more than "
            f"8000)\n\n{table(out['features'], columns)}\n"
        )
    if "fourier" in out:
        columns = ["case", "what", "arborax_s", "first_call_s"]
        sections.append(
            f"## Random Fourier signatures\n\n{table(out['fourier'], columns)}\n"
        )
    (folder / "kernels.md").write_text("\n".join(sections))


if __name__ == "__main__":
    main()

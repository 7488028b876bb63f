"""Training steps of linear equations, against a GRU, log-NCDE and B-NRDE.

    python benchmarks/bench_linear.py [--longest 16] [--limit 20] [--parts] [--draw]

One gradient of a loss of the last output, float32, four channels, width 64, windows of
16 steps: at length 2,048 and batch 32, and for batch 4 over lengths from 2^8 to
2^16, until a step takes longer than the limit. Controls are prepared beforehand, as
they are in training. Times are process CPU seconds of one step; bytes are the
temporary memory of the compiled step per sample of the batch. The parts of a step of
`linear, block` are timed one by one, each with its gradient: `--parts` measures these
alone. Writes `benchmarks/results/linear.json`, `.md` and `.png`; `--draw` draws stored
times only.
"""

import argparse
import json
import platform
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from summary import short

import arborax as abx
from arborax.lifts import lift_matrices, window_matrices
from arborax.solvers import run_flows


FOLDER = Path(__file__).parent / "results"
CHANNELS, WIDTH, WINDOW = 4, 64, 16
M, KEY = abx.models, jr.key(0)
ITO = abx.Ito(CHANNELS, 2)


def linear(**options):
    options = dict(outputs="last", window=WINDOW, brackets="realised") | options
    return M.LinearBNRDE(ITO, 1, hidden=WIDTH, key=KEY, **options)


MODELS = {
    "linear, block": linear,
    "linear, diagonal": lambda: linear(structure="diagonal"),
    "linear, block, associative": lambda: linear(mode="associative"),
    "linear, block, at samples": lambda: linear(outputs="samples"),
    "GRU": lambda: M.GRU(CHANNELS, 1, hidden=WIDTH, width=WIDTH, key=KEY),
    "log-NCDE": lambda: M.LogNCDE(
        CHANNELS, 1, hidden=WIDTH, width=WIDTH, window=WINDOW, key=KEY
    ),
    "B-NRDE": lambda: M.BNRDE(
        ITO,
        1,
        hidden=WIDTH,
        width=WIDTH,
        window=WINDOW,
        brackets="realised",
        key=KEY,
    ),
}
CURVE = ("linear, block", "linear, diagonal", "GRU", "log-NCDE", "B-NRDE")


def call(model, x):
    """The last output; models of windows are asked for their knots."""
    if isinstance(model, M.LogNCDE | M.BNRDE):
        return model.at_knots(x)[-1]
    out = model(x)
    return out if getattr(model, "outputs", None) == "last" else out[-1]


def measure(name: str, length: int, batch: int) -> dict:
    model = MODELS[name]()
    rng = np.random.default_rng(0)
    values = rng.normal(size=(batch, length, CHANNELS)).cumsum(1) / length**0.5
    ts = jnp.linspace(0, 1, length)
    as_path = lambda x: abx.SampledPath(ts, x, check=False)  # noqa: E731
    data = jnp.asarray(values, jnp.float32)
    if hasattr(model, "prepare"):
        data = jax.jit(jax.vmap(lambda x: model.prepare(as_path(x))))(data)
    else:
        data = jax.vmap(as_path)(data)
    arrays, static = eqx.partition(model, eqx.is_inexact_array)

    def step(arrays, data):
        def loss(arrays):
            one = eqx.combine(arrays, static)
            return jnp.mean(jax.vmap(lambda x: call(one, x))(data) ** 2)

        return jax.value_and_grad(loss)(arrays)

    start = time.process_time()
    compiled = jax.jit(step).lower(arrays, data).compile()
    built = time.process_time() - start
    seconds, count = [], 5
    while len(seconds) < count:
        start = time.process_time()
        jax.block_until_ready(compiled(arrays, data))
        seconds.append(time.process_time() - start)
        count = 2 if seconds[0] > 2 else 5
    memory = compiled.memory_analysis().temp_size_in_bytes
    return {
        "seconds": min(seconds),
        "compile_seconds": built,
        "bytes_per_sample": memory / (batch * length),
    }


def series(blocks, x):
    """e^x - 1 to degree four: two products. Good to single precision below norm 0.04,
    so no replacement, but a bound on what fewer products can save."""
    square = blocks.product(x, x)
    return x + square / 2 + blocks.product(square, x / 6 + square / 24)


def parts() -> dict[str, dict[str, float]]:
    """CPU and wall seconds of the parts of a step of `linear, block`, and of a whole
    one, by turns."""
    model, (length, batch) = linear(), (2048, 32)
    rng = np.random.default_rng(0)
    values = rng.normal(size=(batch, length, CHANNELS)).cumsum(1) / length**0.5
    ts, data = jnp.linspace(0, 1, length), jnp.asarray(values, jnp.float32)
    prepare = lambda x: model.prepare(abx.SampledPath(ts, x, check=False))  # noqa: E731
    controls = jax.jit(jax.vmap(prepare))(data)
    lams, layer = controls.log_signatures, model.layers[0]
    blocks, a = layer.blocks, layer.full_matrices()
    matrices = lambda a, lams: window_matrices(  # noqa: E731
        lams, lift_matrices(a, ITO, blocks)
    )
    omega = matrices(a, lams)
    exponential, y0 = jax.vmap(blocks.exponential), layer.start(jnp.zeros(CHANNELS))
    flows = exponential(omega)
    arrays, static = eqx.partition(model, eqx.is_inexact_array)

    def whole(arrays, controls):
        return jax.vmap(eqx.combine(arrays, static))(controls)

    def states(flows):
        return jax.vmap(lambda f: run_flows(blocks, f, y0)[-1])(flows)

    cases: dict = {
        "a whole step": (whole, (arrays, controls)),
        "window matrices": (matrices, (a, lams)),
        "exponentials": (exponential, (omega,)),
        "scan over windows": (states, (flows,)),
        "exponentials to degree four": (
            jax.vmap(lambda x: series(blocks, x)),
            (omega,),
        ),
    }
    built = {}
    for name, (function, args) in cases.items():
        loss = lambda x, *rest, f=function: jnp.mean(f(x, *rest) ** 2)  # noqa: E731
        built[name] = jax.jit(jax.value_and_grad(loss)).lower(*args).compile(), args
    times: dict = {name: [] for name in built}
    for _ in range(40):
        for name, (function, args) in built.items():
            start = time.process_time(), time.perf_counter()
            jax.block_until_ready(function(*args))
            stop = time.process_time(), time.perf_counter()
            times[name].append(np.subtract(stop, start))
    best = {name: np.min(found, axis=0).tolist() for name, found in times.items()}
    return {name: {"cpu": cpu, "wall": wall} for name, (cpu, wall) in best.items()}


def run(longest: int, limit: float) -> dict:
    table = {name: measure(name, 2048, 32) for name in MODELS}
    curve: dict = {name: {} for name in CURVE}
    for name in CURVE:
        for power in range(8, longest + 1):
            found = measure(name, 2**power, 4)
            curve[name][2**power] = found
            print(name, 2**power, found, flush=True)
            if found["seconds"] > limit:
                break
    machine = {"python": platform.python_version(), "jax": jax.__version__}
    return {"machine": machine, "table": table, "curve": curve, "parts": parts()}


def write(result: dict) -> None:
    lines = [
        "# Linear equations: training steps",
        "",
        "Length 2,048, batch 32, width 64, windows of 16; process CPU seconds.",
        "",
        "| model | step, ms | compile, s | bytes per sample |",
        "|---|---|---|---|",
    ]
    for name, row in result["table"].items():
        cells = 1e3 * row["seconds"], row["compile_seconds"], row["bytes_per_sample"]
        lines.append(f"| {name} | {' | '.join(short(c) for c in cells)} |")
    lines += ["", "Parts of a step of `linear, block`, with gradients.", ""]
    lines += ["| part | CPU, ms | wall, ms |", "|---|---|---|"]
    for name, row in result.get("parts", {}).items():
        lines.append(f"| {name} | {1e3 * row['cpu']:.1f} | {1e3 * row['wall']:.1f} |")
    lengths = sorted({int(n) for row in result["curve"].values() for n in row})
    for title, field in (
        ("Batch 4, seconds per step by length.", "seconds"),
        ("Batch 4, bytes per sample by length.", "bytes_per_sample"),
    ):
        lines += ["", title, ""]
        lines.append("| model | " + " | ".join(f"{n:,}" for n in lengths) + " |")
        lines.append("|---" * (len(lengths) + 1) + "|")
        for name, row in result["curve"].items():
            found = {int(n): cell[field] for n, cell in row.items()}
            cells = [short(found[n]) if n in found else "" for n in lengths]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += [""]
    (FOLDER / "linear.md").write_text("\n".join(lines))
    (FOLDER / "linear.json").write_text(json.dumps(result, indent=1) + "\n")


def draw(result: dict) -> None:
    import matplotlib.pyplot as plt

    plt.style.use("arborax.arborax")
    figure, axes = plt.subplots(figsize=(5, 3.2))
    for name, row in result["curve"].items():
        found = sorted((int(n), cell["seconds"]) for n, cell in row.items())
        axes.plot(*zip(*found), marker="o", markersize=3, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("length")
    axes.set_ylabel("CPU seconds per step, batch 4")
    axes.legend()
    figure.savefig(FOLDER / "linear.png", bbox_inches="tight")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--longest", type=int, default=16)
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--draw", action="store_true")
    args = parser.parse_args()
    stored = FOLDER / "linear.json"
    keep = args.draw or args.parts
    result = json.loads(stored.read_text()) if keep else run(args.longest, args.limit)
    if args.parts:
        result["parts"] = parts()
    write(result)
    draw(result)


if __name__ == "__main__":
    main()

"""Signatures and log-signatures against pysiglib, signax, iisignature and roughpy.

    python benchmarks/bench_signatures.py [--repeats 5] [--dtypes float32] [--quick]
        [--continue]

Needs the extra `bench`; a rival that is not installed is left out. All libraries run
in turn in one process, so that a busy machine slows all of them; times are process CPU
seconds (both cores add up) and a ratio is rival / arborax, larger is better for us.
Gradients pull back one fixed random covector. Compile time and the temporary memory
of the compiled program are reported beside. Writes `benchmarks/results/signatures.json`
and `.md` after each cell; `--continue` keeps the cells that are there.
"""

import argparse
import importlib
import json
import os
import platform
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import arborax as abx


jax.config.update("jax_enable_x64", True)

CELLS = [
    *[(128, 256, 2, n) for n in (2, 3, 4, 5, 6)],
    *[(128, 256, 4, n) for n in (2, 3, 4, 5)],
    *[(32, 1024, 8, n) for n in (2, 3, 4)],
    (1024, 16, 3, 2),
    (1024, 64, 7, 2),
    (8, 128, 20, 3),
]
QUICK = [
    (128, 256, 2, 2),
    (128, 256, 2, 4),
    (128, 256, 4, 3),
    (128, 256, 4, 4),
    (1024, 64, 7, 2),
    (8, 128, 20, 3),
]
ALGEBRAS = (abx.Shuffle, abx.GrossmanLarson, abx.MuntheKaasWright, abx.Ito)
# The rival walks trees: beyond this many coordinates one call takes minutes.
RIVAL_LIMIT = 4000


def optional(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def cpu_seconds(function, calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        jax.block_until_ready(function())
    return (time.process_time() - start) / calls


def race(runners: dict, repeats: int) -> dict[str, float]:
    """Median CPU seconds of a call of each runner, taken in turn.

    In each turn a runner is called once untimed, since the one before it has emptied
    the caches, then often enough for some 20 milliseconds.
    """
    calls = {}
    for name, function in runners.items():
        jax.block_until_ready(function())
        once = cpu_seconds(function, 1)
        calls[name] = max(1, min(50, int(0.02 / max(once, 1e-6))))
    times = {name: [] for name in runners}
    for _ in range(repeats):
        for name, function in runners.items():
            jax.block_until_ready(function())
            times[name].append(cpu_seconds(function, calls[name]))
    return {name: float(np.median(values)) for name, values in times.items()}


def covector(alg, path, log: bool):
    size = alg.primitive_size if log else alg.size
    rng = np.random.default_rng(1)
    return jnp.asarray(rng.normal(size=(path.shape[0], size)), path.dtype)


def ours(alg, path, log: bool, gradient: bool):
    """A compiled call with its compile seconds and temporary bytes."""
    brackets = None if isinstance(alg, abx.Shuffle) else "realised"
    function = abx.log_signature if log else abx.signature

    def value(x):
        return function(x, alg, brackets)

    weights = covector(alg, path, log)
    target = jax.grad(lambda x: jnp.vdot(weights, value(x))) if gradient else value
    start = time.perf_counter()
    compiled = jax.jit(target).lower(path).compile()
    seconds = time.perf_counter() - start
    memory = compiled.memory_analysis()
    return lambda: compiled(path), seconds, int(memory.temp_size_in_bytes)


def pysiglib_runner(alg, path, log: bool, gradient: bool):
    pysiglib, torch = optional("pysiglib"), optional("torch")
    if pysiglib is None or torch is None or alg.size > RIVAL_LIMIT:
        return None
    dim, depth = alg.dim, alg.depth
    array = np.array(path)
    options = {}
    if isinstance(alg, abx.Shuffle):
        name = "log_sig" if log else "sig"
        if log:
            pysiglib.prepare_log_sig(dim, depth, 2)
            options = {"method": 2}
    else:  # Ito is compared with the planar signature it compresses
        planar = not isinstance(alg, abx.GrossmanLarson)
        step = np.diff(array, axis=1)
        correction = -0.5 * step[..., :, None] * step[..., None, :]
        correction = correction.reshape(*step.shape[:2], -1)
        correction = np.ascontiguousarray(correction)
        options = {"planar": planar}
        if log:
            method = 2 if planar else 0
            pysiglib.prepare_branched_log_sig(dim, depth, method, planar=planar)
            options["method"] = method
        pysiglib.prepare_branched_sig(dim, depth, planar=planar)
        name = "branched_log_sig" if log else "branched_sig"
        options["correction"] = correction
    if not gradient:
        function = getattr(pysiglib, name)
        return lambda: function(array, depth, n_jobs=-1, **options)
    leaf = torch.tensor(array, requires_grad=True)
    if "correction" in options:
        options["correction"] = torch.tensor(options["correction"])
    function = getattr(pysiglib.torch_api, name)
    # The rival's coordinates are not as many as ours: it lists trees where we list
    # forests, and a few primitives more or less.
    size = function(leaf, depth, n_jobs=-1, **options).shape[1]
    weights = torch.tensor(np.random.default_rng(1).normal(size=(len(array), size)))
    weights = weights.to(leaf.dtype).contiguous()

    def run():
        leaf.grad = None
        function(leaf, depth, n_jobs=-1, **options).backward(weights)
        return leaf.grad

    return run


def signax_runner(alg, path, log: bool, gradient: bool):
    signax = optional("signax")
    if signax is None or not isinstance(alg, abx.Shuffle):
        return None
    function = signax.logsignature if log else signax.signature

    def value(x):
        return function(x, alg.depth)

    weights = covector(alg, path, log)
    target = jax.grad(lambda x: jnp.vdot(weights, value(x))) if gradient else value
    compiled = jax.jit(target)
    return lambda: compiled(path)


def iisignature_runner(alg, path, log: bool, gradient: bool):
    iisignature = optional("iisignature")
    if iisignature is None or not isinstance(alg, abx.Shuffle):
        return None
    array = np.array(path)
    if log:
        prepared = iisignature.prepare(alg.dim, alg.depth, "S")
        if gradient:
            weights = np.array(covector(alg, path, log))
            return lambda: iisignature.logsigbackprop(weights, array, prepared, "S")
        return lambda: iisignature.logsig(array, prepared, "S")
    if gradient:
        weights = np.array(covector(alg, path, log))
        return lambda: iisignature.sigbackprop(weights, array, alg.depth)
    return lambda: iisignature.sig(array, alg.depth)


def roughpy_runner(alg, path, log: bool, gradient: bool):
    roughpy = optional("roughpy")
    if roughpy is None or gradient or not isinstance(alg, abx.Shuffle):
        return None
    steps = np.diff(np.array(path, np.float64), axis=1)
    if steps.size * alg.size > 2e8:
        return None
    context = roughpy.get_context(alg.dim, alg.depth, roughpy.DPReal)
    whole = roughpy.RealInterval(0, steps.shape[1])
    times = np.arange(steps.shape[1], dtype=float)

    def run():
        out = []
        for one in steps:
            stream = roughpy.LieIncrementStream.from_increments(
                one, indices=times, ctx=context
            )
            out.append((stream.log_signature if log else stream.signature)(whole))
        return len(out)

    return run


RIVALS = {
    "pysiglib": pysiglib_runner,
    "signax": signax_runner,
    "iisignature": iisignature_runner,
    "roughpy": roughpy_runner,
}


def gaps() -> dict[str, float]:
    """Largest differences from the rivals' values, where they are oracles: words, and
    trees of the canonical lift. All of them are rounding, or the run stops."""
    rng = np.random.default_rng(0)
    path = rng.normal(size=(16, 3)).cumsum(0) / 4
    words = abx.Shuffle(3, 4)
    signature = np.asarray(abx.signature(path, words))
    log = np.asarray(abx.log_signature(path, words))
    found = {}
    if iisignature := optional("iisignature"):
        prepared = iisignature.prepare(3, 4, "S")
        found["iisignature"] = (signature, iisignature.sig(path, 4))
        found["iisignature, log"] = (log, iisignature.logsig(path, prepared, "S"))
    if pysiglib := optional("pysiglib"):
        found["pysiglib"] = (signature, pysiglib.sig(path, 4)[-signature.size :])
        for planar, kind in ((False, abx.GrossmanLarson), (True, abx.MuntheKaasWright)):
            alg = kind(3, 3)
            pysiglib.prepare_branched_sig(3, 3, planar=planar)
            ours_ = abx.algebra.to_pysiglib(alg)(np.asarray(abx.signature(path, alg)))
            theirs = pysiglib.branched_sig(path, 3, planar=planar)
            found[f"pysiglib, {kind.__name__}"] = (ours_, theirs[-ours_.size :])
    out = {name: float(np.abs(a - b).max()) for name, (a, b) in found.items()}
    if bad := {name: gap for name, gap in out.items() if not gap < 1e-9}:
        raise AssertionError(f"values differ from the rivals': {bad}")
    return out


def run_cell(cell, dtype, repeats):
    batch, length, dim, depth = cell
    rng = np.random.default_rng(0)
    path = rng.normal(size=(batch, length, dim)).cumsum(1) / np.sqrt(length)
    path = jnp.asarray(path, dtype)
    for algebra in ALGEBRAS:
        alg = algebra(dim, depth)
        for log in (False, True):
            for gradient in (False, True):
                call, seconds, memory = ours(alg, path, log, gradient)
                runners = {"arborax": call}
                for name, make in RIVALS.items():
                    runner = make(alg, path, log, gradient)
                    if runner is not None:
                        runners[name] = runner
                times = race(runners, repeats)
                yield {
                    "cell": list(cell),
                    "dtype": dtype,
                    "algebra": algebra.__name__,
                    "quantity": "log-signature" if log else "signature",
                    "mode": "gradient" if gradient else "forward",
                    "cpu_seconds": times,
                    "ratios": {
                        name: value / times["arborax"]
                        for name, value in times.items()
                        if name != "arborax"
                    },
                    "compile_seconds": seconds,
                    "temporary_bytes": memory,
                }


def write(rows, settings, folder: Path):
    folder.mkdir(parents=True, exist_ok=True)
    document = {"settings": settings, "rows": rows}
    (folder / "signatures.json").write_text(json.dumps(document, indent=1) + "\n")
    lines = [
        "CPU milliseconds of one call; a ratio is rival / arborax, above one we are "
        "faster. `Ito` is raced against the planar signature that it compresses. "
        f"{settings['machine']}, {settings['dtypes']}, `{settings['command']}`.",
        "",
        "| batch, length, dim, depth | algebra | quantity | arborax ms | pysiglib | "
        "signax | iisignature | roughpy | compile s | memory MB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ratios = [
            f"{row['ratios'][name]:.2f}x" if name in row["ratios"] else "–"
            for name in RIVALS
        ]
        what = f"{row['quantity']}, {row['mode']}"
        if len(settings["dtypes"]) > 1:
            what += f", {row['dtype']}"
        lines.append(
            f"| {', '.join(map(str, row['cell']))} | {row['algebra']} | {what} | "
            f"{1e3 * row['cpu_seconds']['arborax']:.2f} | {' | '.join(ratios)} | "
            f"{row['compile_seconds']:.1f} | {row['temporary_bytes'] / 1e6:.1f} |"
        )
    (folder / "signatures.md").write_text("\n".join(lines) + "\n")


def stored_rows(folder: Path) -> list[dict]:
    file = folder / "signatures.json"
    return json.loads(file.read_text())["rows"] if file.exists() else []


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
    parser.add_argument("--quick", action="store_true", help="six cells only")
    parser.add_argument("--continue", action="store_true", dest="go_on")
    options = parser.parse_args()
    command = f"python benchmarks/bench_signatures.py --repeats {options.repeats}"
    command += " --dtypes " + " ".join(options.dtypes)
    command += " --quick" if options.quick else ""
    settings = {
        "command": command,
        "largest_differences": gaps(),
        "dtypes": options.dtypes,
        "machine": f"{os.cpu_count()} CPU cores, Python {platform.python_version()}, "
        f"jax {jax.__version__}",
    }
    folder = Path(__file__).parent / "results"
    rows = stored_rows(folder) if options.go_on else []
    done = {(*row["cell"], row["dtype"]) for row in rows}
    settings["dtypes"] = sorted({row["dtype"] for row in rows} | {*options.dtypes})
    for dtype in options.dtypes:
        for cell in QUICK if options.quick else CELLS:
            if (*cell, dtype) in done:
                continue
            for row in run_cell(cell, dtype, options.repeats):
                rows.append(row)
                shown = {k: f"{v:.2f}x" for k, v in row["ratios"].items()}
                print(
                    row["cell"],
                    dtype,
                    row["algebra"],
                    row["quantity"],
                    row["mode"],
                    f"{1e3 * row['cpu_seconds']['arborax']:.2f} ms",
                    shown,
                    flush=True,
                )
            write(rows, settings, folder)


if __name__ == "__main__":
    main()

"""Signatures and log-signatures against pysiglib, signax, iisignature and roughpy.

    python benchmarks/bench_signatures.py [--repeats 3] [--dtypes float32] [--quick]
        [--cells 128,256,2,3 ...] [--algebras Shuffle ...] [--resume] [--again]
        [--limit 10]

Needs the extra `bench`; a rival that is not installed is left out. All libraries run
in turn in one process, so that a busy machine slows all of them; times are process CPU
seconds (both cores add up) and a ratio is rival / arborax, larger is better for us.
Gradients pull back one fixed random covector. Compile time and the temporary memory
of the compiled program are reported beside.

A rival that needs more than `--limit` CPU seconds for a call is recorded as such: for
large algebras the call is first tried on one path in a process of its own, which is
ended in time, and extrapolated to the batch. `Ito` is compared with the rival's planar
signature, so it shares the rival's time with `MuntheKaasWright`. roughpy runs a Python
loop over paths and is run once for each number of channels. Writes
`benchmarks/results/signatures.json` and `.md` after each algebra; `--resume` keeps what
is there and goes on, `--again` keeps what is there but measures the chosen cells anew.
"""

import argparse
import importlib
import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

import equinox as eqx
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
# Rivals of larger algebras are tried in a process that can be ended.
SMALL = 300
MODES = [(log, gradient) for log in (False, True) for gradient in (False, True)]


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


def race(runners: dict, repeats: int, limit: float) -> dict:
    """Median CPU seconds of a call of each runner, taken in turn.

    In each turn a runner is called once untimed, since the one before it has emptied
    the caches, then often enough for some 20 milliseconds. One that takes longer than a
    second is timed once; beyond the limit a string tells so.
    """
    calls, times = {}, {}
    for name, function in runners.items():
        once = cpu_seconds(function, 1)
        if once > 1:
            times[name] = [once]
            continue
        once = cpu_seconds(function, 1)
        calls[name] = max(1, min(50, int(0.02 / max(once, 1e-6))))
        times[name] = []
    for _ in range(repeats):
        for name, count in calls.items():
            if count > 1:
                jax.block_until_ready(runners[name]())
            times[name].append(cpu_seconds(runners[name], count))
    medians = {name: float(np.median(values)) for name, values in times.items()}
    return {
        name: value if name == "arborax" or value <= limit else f"> {limit:g} s"
        for name, value in medians.items()
    }


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

    start = time.process_time()
    call, compiled = jitted(value, alg, path, log, gradient)
    seconds = time.process_time() - start
    memory = compiled.memory_analysis()
    return call, seconds, int(memory.temp_size_in_bytes)


def jitted(value, alg, path, log: bool, gradient: bool):
    """A call of the compiled value or of its pullback, and the compiled program.

    The covector is an argument: as a constant it would be pulled back in part by the
    compiler.
    """
    if not gradient:
        compiled = jax.jit(value).lower(path).compile()
        return lambda: compiled(path), compiled
    weights = covector(alg, path, log)
    pull = jax.grad(lambda x, w: jnp.vdot(w, value(x)))
    compiled = jax.jit(pull).lower(path, weights).compile()
    return lambda: compiled(path, weights), compiled


def pysiglib_runner(alg, path, log: bool, gradient: bool):
    pysiglib, torch = optional("pysiglib"), optional("torch")
    if pysiglib is None or torch is None:
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


class Crashes(Exception):
    """The rival would end the process."""


def signax_runner(alg, path, log: bool, gradient: bool):
    signax = optional("signax")
    if signax is None or not isinstance(alg, abx.Shuffle):
        return None
    if alg.depth > 5:  # jaxlib 0.10.2 ends with a segmentation fault in its programs
        raise Crashes
    function = signax.logsignature if log else signax.signature

    def value(x):
        return function(x, alg.depth)

    return jitted(value, alg, path, log, gradient)[0]


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
    first = {dim: depth for _, _, dim, depth in reversed(CELLS)}
    if alg.depth != first[alg.dim] or path.dtype != jnp.float32:
        return None
    steps = np.diff(np.array(path, np.float64), axis=1)
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


def overheads() -> dict[str, float]:
    """CPU microseconds of a compiled call that computes next to nothing, alone and with
    a check of values, which may have to raise and so holds a callback to Python."""
    x = jnp.zeros((2, 2))
    plain = jax.jit(lambda x: 2 * x).lower(x).compile()
    check = jax.jit(lambda x: eqx.error_if(2 * x, x[0, 0] > 1, "too large"))
    check = check.lower(x).compile()
    found = {}
    for name, function in (("call", plain), ("checked call", check)):
        times = [cpu_seconds(lambda f=function: f(x), 500) for _ in range(5)]
        found[name] = 1e6 * float(np.median(times))
    return found


def page_faults(call, calls: int = 3) -> float:
    """Pages of memory that the system has to hand out anew for one call."""
    jax.block_until_ready(call())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(calls):
        jax.block_until_ready(call())
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / calls


def sample(cell, dtype):
    batch, length, dim, _ = cell
    rng = np.random.default_rng(0)
    path = rng.normal(size=(batch, length, dim)).cumsum(1) / np.sqrt(length)
    return jnp.asarray(path, dtype)


def probe(name: str, cell, algebra: str):
    """Print the CPU seconds of pysiglib for one path, one line for each mode."""
    alg = getattr(abx, algebra)(*cell[2:])
    path = sample((1, *cell[1:]), "float32")
    for log, gradient in MODES:
        runner = RIVALS[name](alg, path, log, gradient)
        first = cpu_seconds(runner, 1)  # may include a start-up
        print(first if first > 1 else cpu_seconds(runner, 1), flush=True)


def obstacles(name: str, cell, algebra, limit: float) -> list[str | None]:
    """What keeps a rival from one call in each mode, by extrapolation from one path.

    The process may take twice the limit on top of its start.
    """
    command = [sys.executable, __file__, "--probe", name, algebra.__name__]
    command += map(str, cell)
    reason = f"> {limit:g} s"
    try:
        run = subprocess.run(command, capture_output=True, timeout=30 + 2 * limit)
        out = run.stdout
        missing = "failed" if run.returncode else reason
    except subprocess.TimeoutExpired as late:
        out, missing = late.stdout or b"", reason
    seconds = [float(line) * cell[0] for line in out.split()]
    found = [None if x <= limit else reason for x in seconds]
    return found + [missing] * (len(MODES) - len(found))


def one_row(alg, path, log, gradient, options, borrowed: dict, obstacle: str | None):
    """Our measurement and the rivals'; times of `borrowed` rivals are taken over."""
    call, seconds, memory = ours(alg, path, log, gradient)
    runners, told = {"arborax": call}, {}
    for name, make in RIVALS.items():
        if name in borrowed:
            continue
        if name == "pysiglib" and obstacle:
            told[name] = obstacle
            continue
        try:
            runner = make(alg, path, log, gradient)
        except Exception as error:  # a rival's refusal is a result
            told[name] = f"refused ({type(error).__name__})"
            continue
        if runner is not None:
            runners[name] = runner
    times = {**race(runners, options.repeats, options.limit), **told, **borrowed}
    mine = times["arborax"]
    return {
        "cell": [*path.shape, alg.depth],
        "dtype": str(path.dtype),
        "algebra": type(alg).__name__,
        "size": alg.primitive_size if log else alg.size,
        "quantity": "log-signature" if log else "signature",
        "mode": "gradient" if gradient else "forward",
        "cpu_seconds": times,
        "ratios": {
            name: value / mine
            for name, value in times.items()
            if name != "arborax" and not isinstance(value, str)
        },
        "compile_cpu_seconds": seconds,
        "temporary_bytes": memory,
        "page_faults": page_faults(call),
        "load_average": os.getloadavg()[0],
    }


def run_algebra(cell, dtype, algebra, options, before: list[dict]):
    """Four rows: signature and log-signature, forward and gradient."""
    try:
        alg = algebra(*cell[2:])
    except ValueError as error:
        yield {
            "cell": list(cell),
            "dtype": dtype,
            "algebra": algebra.__name__,
            "refused": str(error).split(",", 1)[0],
            "ratios": {},
        }
        return
    path = sample(cell, dtype)
    planar = {
        (row["quantity"], row["mode"]): row["cpu_seconds"]
        for row in before
        if algebra is abx.Ito
        and row["algebra"] == "MuntheKaasWright"
        and (row["cell"], row["dtype"]) == (list(cell), dtype)
        and "refused" not in row
    }
    found: list[str | None] = [None] * len(MODES)
    if alg.size > SMALL and algebra is not abx.Ito and optional("pysiglib"):
        found = obstacles("pysiglib", cell, algebra, options.limit)
    for (log, gradient), obstacle in zip(MODES, found):
        what = ("log-signature" if log else "signature",)
        what += ("gradient" if gradient else "forward",)
        seen = planar.get(what, {})
        borrowed = {k: seen[k] for k in ("pysiglib",) if k in seen}
        if algebra is abx.Ito and not borrowed:
            obstacle = "not run"
        yield one_row(alg, path, log, gradient, options, borrowed, obstacle)


LOSSES = """\
Where we lose (a ratio below one), and why, from profiles of the cells:

- Tensor signatures of depth three and more, forward. The rival (not profiled) makes one
  pass over a path in C++. Ours is a few matrix products over time, whose operands
  (prefixes and suffixes of half the depth, as polynomials along each segment) are
  written and read again, a few paths at a time. What that buys are the gradients, and
  all derivatives.
- Small arrays. {call:.0f} us of each call are JAX's own; the check for values that are
  not finite makes it {checked:.0f} us, since a program that may raise is started from
  Python and not from C++ (`EQX_ON_ERROR=nan` or `off` saves that). No rival checks.
- Large temporary arrays (column of page faults). Above 32 MB, sometimes earlier, the C
  library returns the memory to the system after each call and asks for it again in the
  next, and clearing the pages takes up to half of the time; the environment variables
  `MALLOC_MMAP_THRESHOLD_` and `MALLOC_TRIM_THRESHOLD_` change that."""


def write(rows, settings, folder: Path):
    folder.mkdir(parents=True, exist_ok=True)
    document = {"settings": settings, "rows": rows}
    (folder / "signatures.json").write_text(json.dumps(document, indent=1) + "\n")
    done = [row for row in rows if "refused" not in row]
    lost = [
        f"{row['algebra']} {tuple(row['cell'])} {row['quantity']} {row['mode']} "
        f"{row['dtype']} {name} {ratio:.2f}x"
        for row in done
        for name, ratio in row["ratios"].items()
        if ratio < 1
    ]
    overhead = settings["overhead_cpu_microseconds"]
    losses = LOSSES.format(call=overhead["call"], checked=overhead["checked call"])
    lines = [
        "CPU milliseconds of one call; a ratio is rival / arborax, above one we are "
        "faster. `Ito` is compared with the planar signature that it compresses. "
        f"`> {settings['limit']:g} s`: the rival needs more than that for one call "
        "(extrapolated from one path where it has more than "
        f"{SMALL} coordinates). roughpy runs a Python loop over paths and was run once "
        "for each number of channels. "
        "`refused (Crashes)`: signax at depth 6 ends jaxlib 0.10.2 with a segmentation "
        "fault. Memory is what the compiled program needs beside its arguments and "
        "results. Load is the load average of the machine when the row was measured: "
        "programs that wait for memory, ours above all, suffer from neighbours, so "
        "ratios vary. Rows without it are from an earlier state of the code, before "
        "streams were polynomials along each segment. "
        f"{settings['machine']}, `{settings['command']}`.",
        "",
        *([losses, "", f"{len(lost)} ratios below one:", ""] if lost else []),
        *[f"- {line}" for line in lost],
        "",
        "| batch, length, dim, depth | algebra | quantity | arborax ms | pysiglib | "
        "signax | iisignature | roughpy | compile CPU s | memory MB | page faults | "
        "load |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cell = ", ".join(map(str, row["cell"]))
        if "refused" in row:
            what = f"{row['dtype']}: refused, {row['refused']}"
            lines.append(f"| {cell} | {row['algebra']} | {what} |" + " |" * 9)
            continue
        ratios = [shown(row, name) for name in RIVALS]
        what = f"{row['quantity']}, {row['mode']}, {row['dtype']}"
        lines.append(
            f"| {cell} | {row['algebra']} | {what} | "
            f"{1e3 * row['cpu_seconds']['arborax']:.2f} | {' | '.join(ratios)} | "
            f"{given(row, 'compile_cpu_seconds', '.1f')} | "
            f"{row['temporary_bytes'] / 1e6:.1f} | "
            f"{given(row, 'page_faults', '.0f')} | "
            f"{given(row, 'load_average', '.0f')} |"
        )
    seen = {key(row) for row in rows}
    absent = sorted(
        f"{cell} {dtype}"
        for cell in CELLS
        for dtype in ("float32", "float64")
        if any((*cell, dtype, algebra.__name__) not in seen for algebra in ALGEBRAS)
    )
    if absent:
        lines[0] += f" Not measured yet in some algebras: {', '.join(absent)}."
    (folder / "signatures.md").write_text("\n".join(lines) + "\n")


def shown(row: dict, name: str) -> str:
    if name in row["ratios"]:
        return f"{row['ratios'][name]:.2f}x"
    return str(row["cpu_seconds"].get(name, "–"))


def given(row: dict, name: str, form: str) -> str:
    return format(row[name], form) if name in row else "–"


def stored_rows(folder: Path) -> list[dict]:
    file = folder / "signatures.json"
    return json.loads(file.read_text())["rows"] if file.exists() else []


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
    parser.add_argument("--limit", type=float, default=10.0, help="CPU seconds")
    parser.add_argument("--quick", action="store_true", help="six cells only")
    parser.add_argument("--cells", nargs="+", help="only these, as 128,256,2,3")
    parser.add_argument("--algebras", nargs="+", help="only these")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--probe", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.probe:
        name, algebra, *cell = options.probe
        return probe(name, tuple(map(int, cell)), algebra)
    command = f"python benchmarks/bench_signatures.py --repeats {options.repeats}"
    command += f" --limit {options.limit:g} --dtypes " + " ".join(options.dtypes)
    command += " --quick" if options.quick else ""
    settings = {
        "command": command,
        "limit": options.limit,
        "largest_differences": gaps(),
        "overhead_cpu_microseconds": overheads(),
        "machine": f"{os.cpu_count()} CPU cores, Python {platform.python_version()}, "
        f"jax {jax.__version__}",
    }
    chosen = QUICK if options.quick else CELLS
    if options.cells:
        chosen = [tuple(map(int, cell.split(","))) for cell in options.cells]
    folder = Path(__file__).parent / "results"
    rows = stored_rows(folder) if options.resume or options.again else []
    done = set() if options.again else {key(row) for row in rows}
    for dtype in options.dtypes:
        for cell in chosen:
            for algebra in ALGEBRAS:
                if options.algebras and algebra.__name__ not in options.algebras:
                    continue
                here = (*cell, dtype, algebra.__name__)
                if here in done:
                    continue
                fresh = list(run_algebra(cell, dtype, algebra, options, rows))
                rows = [row for row in rows if key(row) != here]
                rows = sorted(rows + fresh, key=place)
                write(rows, settings, folder)
                for row in fresh:
                    print(_line(row), flush=True)


def key(row: dict) -> tuple:
    return (*row["cell"], row["dtype"], row["algebra"])


def place(row: dict) -> tuple:
    """The order of the table, whatever the order of the runs."""
    names = [algebra.__name__ for algebra in ALGEBRAS]
    cell = tuple(row["cell"])
    known = CELLS.index(cell) if cell in CELLS else len(CELLS)
    return row["dtype"], known, names.index(row["algebra"])


def _line(row: dict) -> str:
    if "refused" in row:
        return f"{row['cell']} {row['dtype']} {row['algebra']} {row['refused']}"
    ratios = " ".join(f"{name} {shown(row, name)}" for name in RIVALS)
    return (
        f"{row['cell']} {row['dtype']} {row['algebra']} {row['quantity']} "
        f"{row['mode']} {1e3 * row['cpu_seconds']['arborax']:.2f} ms, {ratios}, "
        f"compile {given(row, 'compile_cpu_seconds', '.1f')} s"
    )


if __name__ == "__main__":
    main()

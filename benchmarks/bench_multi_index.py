"""Multi-indices against trees for scalar equations: sizes, run and compile times.

    python benchmarks/bench_multi_index.py

Two channels, depths 4 to 6, float64. Log-signatures of 64 paths of 65 points with
realised brackets; the window field at 256 states; value and gradient of the final
states of 64 solves of 8 windows in their starting points. Both algebras take turns in
one process; least CPU time of several calls, compilation apart. Writes
`benchmarks/results/multi_index.json` and `.md`.
"""

import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr

import arborax as abx


PATHS, POINTS, STATES, WINDOW, CALLS = 64, 65, 256, 8, 7
ALGEBRAS = (abx.GrossmanLarson, abx.MultiIndex)
CELLS = ("log-signature", "window field", "solve", "gradient of solve")


def fields(y):
    return jnp.stack([jnp.sin(y) + 1.2, 0.8 * jnp.cos(2 * y)])


def cells(alg) -> dict[str, tuple[Callable, tuple]]:
    ts = jnp.linspace(0.0, 1.0, POINTS)
    xs = abx.fractional_brownian(POINTS - 1, 0.3, key=jr.key(0), dim=2, shape=PATHS)
    states = jnp.linspace(-1.0, 1.0, STATES)[:, None]
    lam = 0.1 * jr.normal(jr.key(1), (STATES, alg.primitive_size))
    controls = jax.jit(
        jax.vmap(
            lambda x: abx.rough_path(ts, x, alg, window=WINDOW, brackets="realised")
        )
    )(xs)
    field = jax.vmap(abx.lift(fields, alg, abx.Euclidean(1)))

    def solve(y0, controls):
        final = lambda y, c: abx.solve(fields, y, c, throw=False).ys[-1]  # noqa: E731
        return jnp.sum(jax.vmap(final)(y0, controls) ** 2)

    return {
        "log-signature": (lambda x: abx.log_signature(x, alg, "realised"), (xs,)),
        "window field": (field, (states, lam)),
        "solve": (solve, (states[:PATHS], controls)),
        "gradient of solve": (jax.grad(solve), (states[:PATHS], controls)),
    }


def measure(depth: int) -> list[dict]:
    rows: list[dict] = []
    programs = []
    for cls in ALGEBRAS:
        alg = cls(2, depth)
        row = {"algebra": cls.__name__, "depth": depth}
        row |= {"primitives": alg.primitive_size, "compile": {}, "run": {}}
        for name, (function, args) in cells(alg).items():
            start = time.process_time()
            program = jax.jit(function).lower(*args).compile()
            row["compile"][name] = time.process_time() - start
            programs.append((row["run"], name, program, args))
        rows.append(row)
    for _ in range(CALLS):
        for run, name, program, args in programs:
            start = time.process_time()
            jax.block_until_ready(program(*args))
            spent = time.process_time() - start
            run[name] = min(spent, run.get(name, spent))
    return rows


def write(rows: list[dict], folder: Path) -> None:
    machine = f"{os.cpu_count()} CPU cores, Python {platform.python_version()}"
    machine += f", JAX {jax.__version__}"
    command = "python benchmarks/bench_multi_index.py"
    document = {"settings": {"machine": machine, "command": command}, "rows": rows}
    (folder / "multi_index.json").write_text(json.dumps(document, indent=1) + "\n")
    lines = [
        "Scalar equations with two channels: CPU milliseconds to run, in brackets CPU "
        f"seconds to trace and compile. {machine}, `{command}`.",
        "",
        "| depth | algebra | primitives | " + " | ".join(CELLS) + " |",
        "|---|---|---|" + "---|" * len(CELLS),
    ]
    for row in rows:
        times = [
            f"{1e3 * row['run'][name]:.2f} ({row['compile'][name]:.1f})"
            for name in CELLS
        ]
        head = f"| {row['depth']} | {row['algebra']} | {row['primitives']} | "
        lines.append(head + " | ".join(times) + " |")
    (folder / "multi_index.md").write_text("\n".join(lines) + "\n")


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    rows = []
    for depth in (4, 5, 6):
        rows += measure(depth)
        print(*rows[-2:], sep="\n", flush=True)
    write(rows, Path(__file__).parent / "results")


if __name__ == "__main__":
    main()

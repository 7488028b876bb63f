"""Two source trees side by side: run and compile times of a fixed list of cells.

    python benchmarks/compare.py BEFORE AFTER [--cells solve gram] [--store NAME]

`BEFORE` and `AFTER` are checkouts (for instance two git worktrees); each is imported
from its `src` by a process of its own. The processes take turns, one cell at a time, so
that both see the same machine. Prints a Markdown table of CPU times (least of all
calls, tracing and compiling once) and their ratios; above one the second tree is
slower. `--store` keeps it in `results/NAME.json` and `.md`; cells may be added in later
calls. What the cells call may have other names in the two trees: `Tree` is the only
place that knows.
"""

import argparse
import datetime
import functools as ft
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from typing import Any


class Found(Exception):
    """Carries what an experiment hands to `fit`."""


class Tree:
    """The names of one source tree, chosen by what it offers."""

    def __init__(self) -> None:
        import arborax as abx

        self.abx = abx

    def solve(self, fields: Any, y0: Any, control: Any, geometry: Any) -> Any:
        options: dict[str, Any] = dict(geometry=geometry, throw=False)
        return self.abx.solve(fields, y0, control, **options).ys

    def find_run(self, experiment: str) -> Callable:
        """What `arborax run` calls for an experiment."""
        # Looked for in this tree, since another checkout may be installed.
        if (
            pathlib.Path(self.abx.__file__).parents[1] / "arborax_experiments"
        ).exists():
            laboratory = importlib.import_module("arborax_experiments")
            return ft.partial(laboratory.run, laboratory.find_task(experiment))
        experiments = importlib.import_module("arborax.experiments")
        return ft.partial(experiments.experiment(experiment).run, experiment)

    def training_step(self, experiment: str) -> tuple[Callable, tuple]:
        """Value and gradient of the objective of an experiment, and its arguments."""
        import equinox as eqx
        import jax

        from arborax import training

        def fit(model, data, objective, *, key, **options):
            raise Found(model, data, objective, key)

        # The experiments must import the name after it is replaced.
        real, training.fit = training.fit, fit
        run = self.find_run(experiment)
        with tempfile.TemporaryDirectory() as folder:
            try:
                run(
                    preset="quick",
                    folder=folder,
                    cache=folder,
                    progress=False,
                    changes=dict(paths=2048, target_paths=1024, batch=64),
                )
            except Found as found:
                model, data, objective, key = found.args
            else:
                raise RuntimeError(f"{experiment} did not call `fit`.")
        training.fit = real
        batch = jax.tree.map(jax.numpy.asarray, data(key, 0))
        params, static = eqx.partition(model, eqx.is_inexact_array)

        def step(params, batch, key):
            def loss(params):
                return objective(eqx.combine(params, static), batch, key)

            return jax.value_and_grad(loss)(params)

        return step, (params, batch, key)


def _walk(*shape: int) -> Any:
    import jax.numpy as jnp
    import numpy as np

    steps = np.random.default_rng(0).standard_normal(shape) / np.sqrt(shape[-2])
    return jnp.asarray(np.cumsum(steps, axis=-2), jnp.float32)


def solve_cell(geometry: str, size: int, algebra: str, dim: int, depth: int):
    """Value and gradient of 64 log-ODEs of 32 windows with MLP fields."""

    def build(tree: Tree):
        import jax
        import jax.numpy as jnp
        import jax.random as jr

        abx = tree.abx
        space = getattr(abx, geometry)(size)
        alg = getattr(abx, algebra)(dim, depth)
        points = 1
        for n in space.point_shape:
            points *= n
        mlp = abx.models.MLP(
            *(points, dim * space.dim, 32, 2),
            activation=jnp.tanh,
            final_activation=jnp.tanh,
            key=jr.PRNGKey(0),
        )
        fields = abx.models.VectorField(mlp, dim, space.dim)
        y0 = space.random_point(key=jr.PRNGKey(1), dtype=jnp.float32)
        ts = jnp.linspace(0.0, 1.0, 129)
        brackets = None if algebra == "Shuffle" else "realised"

        def control(x):
            return abx.rough_path(ts, x, alg, window=4, brackets=brackets)

        controls = jax.jit(jax.vmap(control))(_walk(64, 129, dim))

        def loss(fields, controls):
            ys = jax.vmap(lambda c: tree.solve(fields, y0, c, space))(controls)
            return jnp.mean(ys**2)

        return jax.value_and_grad(loss), (fields, controls)

    return build


def signature_cell(
    algebra: str, dim: int, depth: int, batch: int, times: int, gradient: bool
):
    def build(tree: Tree):
        import jax
        import jax.numpy as jnp

        alg = getattr(tree.abx, algebra)(dim, depth)
        brackets = "realised" if algebra == "Ito" else None

        def signature(path):
            return tree.abx.signature(path, alg, brackets=brackets)

        def loss(path):
            return jnp.sum(jnp.sin(signature(path)))

        function = jax.value_and_grad(loss) if gradient else signature
        return function, (_walk(batch, times, dim),)

    return build


def gram_cell(**options: Any):
    def build(tree: Tree):
        import jax
        import jax.numpy as jnp

        def loss(x):
            return jnp.sum(jnp.sin(tree.abx.signature_gram(x, **options)))

        return jax.value_and_grad(loss), (_walk(32, 64, 3),)

    return build


def features_cell():
    def build(tree: Tree):
        import jax
        import jax.numpy as jnp

        key = jax.random.PRNGKey(0)
        maps = tree.abx.RandomFourierSignature(3, features=64, key=key)

        def loss(x):
            return jnp.sum(jnp.sin(maps.features(x)))

        return jax.value_and_grad(loss), (_walk(64, 64, 3),)

    return build


def eager_cell(tree: Tree):
    """A small signature as a user calls it, checks included."""
    alg = tree.abx.Shuffle(2, 3)

    def call(path):
        return tree.abx.signature(path, alg)

    call.eager = True
    return call, (_walk(20, 2),)


def sde_cell(gradient: bool):
    """Prices of 10,000 SABR paths of 16 windows, noise and areas included."""

    def build(tree: Tree):
        import jax
        import jax.numpy as jnp

        def drift(t, y, args):
            return -jnp.stack([jnp.exp(2 * y[1]), args**2]) / 2

        def diffusion(t, y, args):
            price = jnp.stack([jnp.exp(y[1]), jnp.zeros_like(y[1])])
            return jnp.stack([price, args * jnp.array([-0.5, 0.75**0.5])])

        def price(args, key):
            y0, ends = jnp.array([0.0, -1.6]), jnp.array([0.0, 1.0])
            options = dict(key=key, args=args, paths=10_000, windows=16, throw=False)
            sol = tree.abx.solve_sde(drift, diffusion, y0, ends, **options)
            return jnp.mean(jnp.exp(sol.ys[:, -1, 0]))

        program = jax.value_and_grad(price) if gradient else price
        return program, (jnp.array(0.4), jax.random.PRNGKey(0))

    return build


def training_cell(experiment: str):
    return lambda tree: tree.training_step(experiment)


# Seconds that are timed at least: clocks of CPU time are coarse.
SHORTEST = 0.05
CELLS: dict[str, Callable] = {
    "solve R^32 GL(2,2)": solve_cell("Euclidean", 32, "GrossmanLarson", 2, 2),
    "solve R^32 Ito(2,3)": solve_cell("Euclidean", 32, "Ito", 2, 3),
    "solve SO(3) Shuffle(10,2)": solve_cell("SO", 3, "Shuffle", 10, 2),
    "solve SO(3) Shuffle(4,3)": solve_cell("SO", 3, "Shuffle", 4, 3),
    "solve SPD(3) Ito(7,2)": solve_cell("SPD", 3, "Ito", 7, 2),
    "solve SPD(3) Ito(7,3)": solve_cell("SPD", 3, "Ito", 7, 3),
    **{
        f"signature {algebra}({dim},{depth}) {times} x {batch}"
        + (" gradient" if gradient else ""): signature_cell(
            algebra, dim, depth, batch, times, gradient
        )
        for algebra, dim, depth, batch, times in (
            ("Shuffle", 4, 3, 128, 256),
            ("MuntheKaasWright", 4, 3, 128, 256),
            ("Ito", 3, 2, 32, 2048),
        )
        for gradient in (False, True)
    },
    "gram complete": gram_cell(),
    "gram branched depth 4": gram_cell(kind="branched", depth=4),
    "gram rbf": gram_cell(static_kernel="rbf"),
    "random features": features_cell(),
    "eager signature": eager_cell,
    "solve_sde": sde_cell(False),
    "solve_sde gradient": sde_cell(True),
    "step rough-bergomi": training_cell("rough-bergomi"),
    "step spd": training_cell("spd"),
}


def child(cells: str) -> None:
    """Answers requests on standard input until it ends. A cell of the module `cells` is
    traced when it is first asked for, and compiled and timed when it is asked for
    seconds; for none, the answer is a checksum of its program."""
    import equinox as eqx
    import jax

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the library prints must not get between the answers
    tree, ready, known = Tree(), {}, importlib.import_module(cells).CELLS
    for line in sys.stdin:
        name, seconds = json.loads(line)
        try:
            start = time.process_time()
            if name not in ready:
                ready.clear()  # one cell at a time in memory
                program, arguments = known[name](tree)
                start = time.process_time()
                if not getattr(program, "eager", False):
                    program = eqx.filter_jit(program).lower(*arguments)
                ready[name] = program, arguments, time.process_time() - start
                start = time.process_time()
            program, arguments, compiled = ready[name]
            if seconds and hasattr(program, "compile"):
                program = program.compile()
                jax.block_until_ready(program(*arguments))
                compiled += time.process_time() - start
                ready[name] = program, arguments, compiled
            best, end, calls = float("inf"), time.perf_counter() + seconds, 1
            while seconds and (best == float("inf") or time.perf_counter() < end):
                start = time.process_time()
                for _ in range(calls):
                    jax.block_until_ready(program(*arguments))
                used = time.process_time() - start
                if used < SHORTEST:
                    calls *= 2
                else:
                    best = min(best, used / calls)
            answer = {"compile": compiled, "run": best}
            if not seconds:
                answer = {"program": zlib.crc32(program.as_text().encode())}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), file=answers, flush=True)


class Worker:
    """A process that has imported one tree."""

    def __init__(self, tree: pathlib.Path, cells: str = "compare", **variables: str):
        source = str(tree.resolve() / "src")
        # The order of sets shows in programs.
        fixed = {"PYTHONPATH": source, "PYTHONHASHSEED": "0"}
        environment = {**os.environ, **fixed, **variables}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--child", cells],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, name: str, seconds: float) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps([name, seconds]), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of a tree ended during {name!r}.")
        return json.loads(line)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compare(workers: list[Worker], name: str, rounds: int, seconds: float) -> dict:
    """Seconds of both trees, or what failed."""
    first = [worker.ask(name, seconds) for worker in workers]
    for answer in first:
        if "error" in answer:
            return answer
    best = [answer["run"] for answer in first]
    for turn in range(1, rounds):
        order = (0, 1) if turn % 2 == 0 else (1, 0)
        for k in order:
            best[k] = min(best[k], workers[k].ask(name, seconds)["run"])
    return {"run": best, "compile": [answer["compile"] for answer in first]}


HEAD = (
    "| cell | before ms | after ms | ratio | compile s | after | ratio |\n"
    "|---|---|---|---|---|---|---|"
)


def row(name: str, found: dict) -> str:
    """One row of the table."""
    if "error" in found:
        return f"| {name} | {found['error'].splitlines()[0]} | | | | | |"
    best, compiled = found["run"], found["compile"]
    cells = [f"{1e3 * value:.3g}" for value in best] + [f"{best[1] / best[0]:.2f}"]
    if min(compiled) > 0.05:
        cells += [f"{value:.1f}" for value in compiled]
        cells += [f"{compiled[1] / compiled[0]:.2f}"]
    else:
        cells += ["", "", ""]
    return f"| {name} | {' | '.join(cells)} |"


def commit(tree: pathlib.Path) -> str:
    command = ["git", "-C", str(tree), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def store(name: str, trees: list[pathlib.Path], new: dict[str, dict]) -> None:
    """Write `results/NAME.json` and `.md`; cells of the same commits are kept."""
    file = pathlib.Path(__file__).parent / "results" / f"{name}.json"
    known = {"before": commit(trees[0]), "after": commit(trees[1])}
    old = json.loads(file.read_text()) if file.exists() else {}
    same = {key: old.get(key) for key in known} == known
    cells = (old["cells"] if same else {}) | new
    cells = {cell: cells[cell] for cell in CELLS if cell in cells}
    day = f"{datetime.date.today():%d %B %Y}"
    document = known | {"date": day, "cells": cells}
    file.write_text(json.dumps(document, indent=1) + "\n")
    rows = [row(*item) for item in cells.items()]
    place = f"Commit `{known['after']}` against `{known['before']}`, {day}."
    file.with_suffix(".md").write_text("\n".join([place, "", HEAD, *rows]) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--cells", nargs="*", default=[""], help="parts of names")
    parser.add_argument("--rounds", type=int, default=6, help="turns of each tree")
    parser.add_argument("--seconds", type=float, default=0.5, help="length of a turn")
    parser.add_argument("--store", metavar="NAME", help="keep as results/NAME.json")
    options = parser.parse_args()
    trees = [options.before, options.after]
    workers = [Worker(tree) for tree in trees]
    print(HEAD)
    for name in CELLS:
        if any(part in name for part in options.cells):
            found = compare(workers, name, options.rounds, options.seconds)
            print(row(name, found), flush=True)
            if options.store:
                store(options.store, trees, {name: found})
    for worker in workers:
        worker.close()


if __name__ == "__main__":
    child(sys.argv[2]) if sys.argv[1:2] == ["--child"] else main()

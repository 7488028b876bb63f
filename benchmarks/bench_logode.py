"""Speed and memory of the log-ODE solve, with rivals in the same run.

    python benchmarks/bench_logode.py [--cells i ii iii iv memory] [--reps 20]

Value and gradient, compile time, run time and peak temporary memory in float32 of
(i) Euclidean space, (ii) SO(3), (iii) SPD(3), (iv) the same at depth 3; each through
`abx.solve`, through `diffrax.diffeqsolve`, and with a naive lift that traces and
evaluates every primitive field on its own. Rivals of cell iv run in processes of their
own with a time limit (`--limit`); if it is reached, the table says so. Results go to
`benchmarks/results`; rows that are not run again are kept.
"""

import argparse
import datetime
import json
import pathlib
import platform
import subprocess
import sys
import time

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import arborax as abx


MEMORY_NOTE = (
    "Temporary memory of the compiled gradient, without its arguments. The reversible "
    "adjoint reads the log-signatures where they are and adds one integer a window."
)
NOTES = (
    "## Goals and misses",
    "",
    "- Gradient within 4x of the value: met in every cell, on Euclidean space and at "
    "depth 2 on SPD(3) by two to four per cent, which is as much as repeated runs "
    "differ by. Matrix products alone make it four: the forward pass, its "
    "recomputation in reverse, and two products for each of them.",
    "- 3x the naive lift at d = 7: met; at depth 3 the naive lift does not finish in "
    "two minutes. At d = 2 there are few primitives, and the compiler finds what they "
    "share: there the naive value is slower by little at depth 2 and by half or more "
    "at depth 3, its gradient much.",
    "- Compile below 10 s for (i) to (iii): met, in CPU seconds.",
    "- Flat memory of the reversible adjoint: met, see below.",
    "",
)
RESULTS = pathlib.Path(__file__).parent / "results"


def make_fields(d, geometry, key):
    """Driving fields from one network, as models have them: width 32, two hidden
    layers."""
    size = int(np.prod(geometry.point_shape))
    bounded = lambda x: 0.3 * jnp.tanh(x)  # noqa: E731
    mlp = abx.models.MLP(
        *(size, d * geometry.dim, 32, 2),
        activation=jnp.tanh,
        final_activation=bounded,
        key=key,
    )
    return abx.models.VectorField(mlp, d, geometry.dim)


def naive_lift(fields, alg, geometry):
    """Every primitive field traced and evaluated on its own, then contracted."""
    V = [lambda y, i=i: geometry.frame(y, fields(y)[i]) for i in range(alg.dim)]

    def jacobi(U, W):
        return lambda y: jax.jvp(W, (y,), (U(y),))[1] - jax.jvp(U, (y,), (W(y),))[1]

    def nabla(U, W):
        def out(y):
            w = lambda z: geometry.coordinates(z, W(z))  # noqa: E731
            value, dot = jax.jvp(w, (y,), (U(y),))
            u = geometry.coordinates(y, U(y))
            return geometry.frame(y, dot + geometry.christoffel(y, u, value))

        return out

    def tree(t):
        colour, children = t
        if not children:
            return V[colour]
        if len(children) == 1:
            return nabla(tree(children[0]), V[colour])
        first, second = (tree(child) for child in children)
        one = nabla(first, nabla(second, V[colour]))
        two = nabla(nabla(first, second), V[colour])
        return lambda y: one(y) - two(y)

    def letter(x):
        if isinstance(alg, abx.Shuffle):
            return V[x]
        if isinstance(alg, abx.Ito):
            if len(x) == 1:
                return V[x[0]]
            one, two = nabla(V[x[0]], V[x[1]]), nabla(V[x[1]], V[x[0]])
            return lambda y: (one(y) + two(y)) / 2
        return tree(x)

    basis = set(alg.primitive_basis)

    def primitive(key):
        if isinstance(alg, abx.GrossmanLarson):
            sigma = abx.algebra.symmetry_factor(key)
            field = tree(key)
            return lambda y: field(y) / sigma
        if len(key) == 1:
            return letter(key[0])
        cut = next(k for k in range(1, len(key)) if key[k:] in basis)
        return jacobi(primitive(key[:cut]), primitive(key[cut:]))

    functions = [primitive(key) for key in alg.primitive_basis]

    def field(y, lam):
        rows = jnp.stack([geometry.coordinates(y, f(y)) for f in functions])
        return lam @ rows

    return field


def naive_solve(fields, y0, lams, alg, geometry, solver):
    field = naive_lift(fields, alg, geometry)
    one, zero = jnp.ones((), y0.dtype), jnp.zeros((), y0.dtype)

    @jax.checkpoint
    def body(y, lam):
        return solver.step(lambda s, z: field(z, lam), geometry, zero, y, one), None

    return jax.lax.scan(body, y0, lams)[0]


def measure(functions, args, reps):
    """A dictionary for each function: times in seconds, temporary memory in megabytes.
    Tracing and compiling in CPU time, which other work on the machine disturbs less;
    the run in both. Runs of several functions alternate."""
    rows, programs = [], []
    for function in functions:
        start = time.process_time()
        lowered = jax.jit(function).lower(*args)
        traced = time.process_time()
        compiled = lowered.compile()
        row = {"trace_s": traced - start, "compile_s": time.process_time() - traced}
        memory = compiled.memory_analysis()
        row["temp_mb"] = memory.temp_size_in_bytes / 1e6 if memory else None
        jax.block_until_ready(compiled(*args))
        programs.append(compiled)
        rows.append(row)
    times = [[] for _ in programs]
    for _ in range(reps):
        for program, found in zip(programs, times):
            begin, cpu = time.perf_counter(), time.process_time()
            jax.block_until_ready(program(*args))
            found.append((time.perf_counter() - begin, time.process_time() - cpu))
    for row, found in zip(rows, times):
        row["run_s"], row["cpu_s"] = map(float, np.min(found, axis=0))
    return rows


def problem(geometry, alg, windows, batch):
    keys = jr.split(jr.PRNGKey(0), 3)
    fields = make_fields(alg.dim, geometry, keys[0])
    y0 = geometry.random_point(key=keys[1], dtype=jnp.float32)
    steps = 4 * windows
    dx = jr.normal(keys[2], (batch, steps, alg.dim)) / np.sqrt(steps)
    xs = jnp.concatenate([jnp.zeros((batch, 1, alg.dim)), jnp.cumsum(dx, 1)], axis=1)
    ts = jnp.linspace(0.0, 1.0, steps + 1)
    brackets = None if isinstance(alg, abx.Shuffle) else "realised"
    make = jax.jit(
        jax.vmap(lambda x: abx.rough_path(ts, x, alg, window=4, brackets=brackets))
    )
    return fields, y0, make(xs)


def through_solve(geometry, solver, adjoint):
    def one(fields, y0, control):
        return abx.solve(
            fields,
            y0,
            control,
            geometry=geometry,
            solver=solver,
            saveat=diffrax.SaveAt(t1=True),
            adjoint=adjoint,
            throw=False,
        ).ys[0]

    return one


def through_diffrax(geometry, solver):
    def one(fields, y0, control):
        return diffrax.diffeqsolve(
            abx.RoughTerm(fields, control, geometry),
            abx.LogODE(solver),
            control.knots[0],
            control.knots[-1],
            None,
            y0,
            stepsize_controller=diffrax.StepTo(control.knots),
            max_steps=control.knots.shape[0],
        ).ys[0]

    return one


def through_naive(geometry, solver, alg):
    def one(fields, y0, control):
        return naive_solve(fields, y0, control.log_signatures, alg, geometry, solver)

    return one


def methods_of(geometry, alg, solver, rivals):
    """What is measured in a cell: `{(method, "value" or "gradient"): function}`."""
    ours = "arborax"
    out = {(ours, "value"): through_solve(geometry, solver, abx.CheckpointedAdjoint())}
    out[ours, "gradient"] = out[ours, "value"]
    if solver.reversible:
        reversible = through_solve(geometry, solver, abx.ReversibleAdjoint())
        out["arborax reversible", "gradient"] = reversible
    for what in rivals.get("diffeqsolve", ()):
        out["diffeqsolve", what] = through_diffrax(geometry, solver)
    for what in rivals.get("naive lift", ()):
        out["naive lift", what] = through_naive(geometry, solver, alg)
    return out


def run_rows(cell, method, kinds, reps):
    """Rows of the table: value, gradient or both, alternating."""
    name, geometry, alg, windows, batch, solver, rivals = cell
    fields, y0, control = problem(geometry, alg, windows, batch)
    dynamic, static = eqx.partition(fields, eqx.is_array)
    methods = methods_of(geometry, alg, solver, rivals)

    def target(what):
        one = methods[method, what]

        def value(dynamic, y0, control):
            fields = eqx.combine(dynamic, static)
            return jax.vmap(one, in_axes=(None, None, 0))(fields, y0, control)

        def gradient(dynamic, y0, control):
            # Squares alone would be constant on rotations.
            loss = lambda d: jnp.mean((value(d, y0, control) - 0.5) ** 2)  # noqa: E731
            return jax.grad(loss)(dynamic)

        return value if what == "value" else gradient

    rows = measure([target(what) for what in kinds], (dynamic, y0, control), reps)
    return [{**label(cell, method, what), **row} for what, row in zip(kinds, rows)]


def label(cell, method, what):
    name, geometry, alg, *_ = cell
    return {
        "cell": name,
        "geometry": type(geometry).__name__,
        "algebra": f"{type(alg).__name__}({alg.dim}, {alg.depth})",
        "method": method,
        "what": what,
    }


def run_limited(index, method, what, reps, limit):
    """As `run_row`, in a process of its own that is ended after `limit` seconds."""
    command = [sys.executable, __file__, "--reps", str(reps)]
    command += ["--row", str(index), method, what]
    try:
        done = subprocess.run(command, capture_output=True, timeout=limit, check=True)
    except subprocess.TimeoutExpired:
        return {**label(CELLS[index], method, what), "not_finished_s": limit}
    return json.loads(done.stdout.splitlines()[-1])


def memory_rows():
    """Temporary memory of the gradient against the number of windows."""
    geometry, alg, batch = abx.SO(3), abx.Shuffle(2, 2), 64
    fields = make_fields(alg.dim, geometry, jr.PRNGKey(0))
    y0 = geometry.random_point(key=jr.PRNGKey(1), dtype=jnp.float32)
    dynamic, static = eqx.partition(fields, eqx.is_array)
    field = lambda f: abx.lift(f, alg, geometry)  # noqa: E731
    rows = []
    adjoints = {
        "reversible": abx.ReversibleAdjoint(),
        "checkpointed": abx.CheckpointedAdjoint(),
    }
    for name, adjoint in adjoints.items():
        for windows in (16, 256, 4096):
            control = _Control(alg, jnp.linspace(0.0, 1.0, windows + 1), None)

            def loss(dynamic, lams, adjoint=adjoint, control=control):
                model = eqx.combine(dynamic, static)

                def one(lam):
                    given = _Control(alg, control.knots, lam)
                    return abx.solve(
                        field(model),
                        y0,
                        given,
                        geometry=geometry,
                        saveat=diffrax.SaveAt(t1=True),
                        adjoint=adjoint,
                        throw=False,
                    ).ys

                return jnp.mean((jax.vmap(one)(lams) - 0.5) ** 2)

            shape = (batch, windows, alg.primitive_size)
            lams = jax.ShapeDtypeStruct(shape, jnp.float32)
            compiled = jax.jit(jax.grad(loss)).lower(dynamic, lams).compile()
            memory = compiled.memory_analysis().temp_size_in_bytes / 1e6
            row = {"adjoint": name, "windows": windows, "temp_mb": memory}
            print(row, flush=True)
            rows.append(row)
    return rows


class _Control(eqx.Module):
    alg: object = eqx.field(static=True)
    knots: jax.Array
    log_signatures: jax.Array | None
    calculus: str = eqx.field(static=True, default="stratonovich")


def format_row(row):
    keys = ("cell", "geometry", "algebra", "method", "what")
    if "not_finished_s" in row:
        numbers = [f"not finished in {row['not_finished_s']} s", "", "", "", ""]
    else:
        figures = [row["trace_s"], row["compile_s"]]
        figures += [1e3 * row["run_s"], 1e3 * row["cpu_s"], row["temp_mb"]]
        numbers = [f"{figure:.4g}" for figure in figures]
    return "| " + " | ".join([*(row[key] for key in keys), *numbers]) + " |"


def ratios(rows):
    """Rivals over ours, and gradient over value, cell by cell.

    In CPU time, which other work on the machine disturbs less than the clock.
    """
    table = {}
    for row in rows:
        if "not_finished_s" in row:
            continue
        cell = (row["cell"], row["algebra"])
        table.setdefault(cell, {})[row["method"], row["what"]] = row["cpu_s"]
    out = []
    for (cell, algebra), runs in table.items():
        entry = {"cell": cell, "algebra": algebra}
        ours = runs["arborax", "value"]
        best = min(
            time
            for (method, what), time in runs.items()
            if what == "gradient" and method.startswith("arborax")
        )
        # Of runs that alternated.
        entry["gradient / value"] = runs["arborax", "gradient"] / ours
        for rival in ("diffeqsolve", "naive lift"):
            if (rival, "value") in runs:
                entry[f"{rival} / arborax, value"] = runs[rival, "value"] / ours
            if (rival, "gradient") in runs:
                entry[f"{rival} / arborax, gradient"] = runs[rival, "gradient"] / best
        out.append(entry)
    return out


def write(results):
    """JSON and Markdown."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "logode.json").write_text(json.dumps(results, indent=1))
    lines = [
        "# Log-ODE benchmark",
        "",
        f"float32, {results['machine']}. Trace and compile are CPU seconds; ratios are "
        "of CPU times.",
        "",
        "| cell | geometry | algebra | method | what | trace s | compile s | run ms | "
        "CPU ms | temp MB |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(format_row(row) for row in results["rows"]),
        "",
        "## Ratios",
        "",
    ]
    for entry in results["ratios"]:
        parts = [f"{k}: {v:.2f}" for k, v in entry.items() if isinstance(v, float)]
        lines.append(f"- {entry['cell']}, {entry['algebra']}: " + "; ".join(parts))
    lines += [
        "",
        *NOTES,
        "## Temporary memory of the gradient, MB (SO(3), d=2, batch 64)",
        "",
    ]
    lines += ["| adjoint | windows | MB |", "|---|---|---|"]
    for row in results["memory"]:
        lines.append(f"| {row['adjoint']} | {row['windows']} | {row['temp_mb']:.4g} |")
    lines += ["", MEMORY_NOTE]
    (RESULTS / "logode.md").write_text("\n".join(lines) + "\n")


BOTH = ("value", "gradient")
CELLS = [
    (name, geometry, alg, windows, batch, solver, rivals)
    for name, geometry, algebras, windows, batch, solver, rivals in (
        (
            "i",
            abx.Euclidean(32),
            (abx.Shuffle(2, 2), abx.GrossmanLarson(2, 2)),
            *(32, 256, abx.Heun()),
            {"diffeqsolve": BOTH, "naive lift": BOTH},
        ),
        (
            "ii",
            abx.SO(3),
            (abx.Shuffle(10, 2),),
            *(5, 256, abx.CFEES25()),
            # At d = 7 and more the gradient of the naive lift compiles for very long.
            {"diffeqsolve": BOTH, "naive lift": BOTH[:1]},
        ),
        (
            "iii",
            abx.SPD(3),
            (abx.MuntheKaasWright(7, 2), abx.Ito(7, 2)),
            *(16, 64, abx.CFEES25()),
            {"diffeqsolve": BOTH, "naive lift": BOTH[:1]},
        ),
        (
            "iv",
            abx.Euclidean(32),
            (abx.Shuffle(2, 3), abx.GrossmanLarson(2, 3)),
            *(32, 256, abx.Heun()),
            {"diffeqsolve": BOTH, "naive lift": BOTH},
        ),
        (
            "iv",
            abx.SO(3),
            (abx.Shuffle(10, 3),),
            *(5, 256, abx.CFEES25()),
            {"diffeqsolve": BOTH, "naive lift": BOTH[:1]},
        ),
        (
            "iv",
            abx.SPD(3),
            (abx.MuntheKaasWright(7, 3), abx.Ito(7, 3)),
            *(16, 64, abx.CFEES25()),
            {"diffeqsolve": BOTH, "naive lift": BOTH[:1]},
        ),
    )
    for alg in algebras
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--cells", nargs="*", default=["i", "ii", "iii", "iv", "memory"]
    )
    parser.add_argument("--reps", type=int, default=20)
    parser.add_argument("--methods", nargs="*", help="default: all")
    parser.add_argument("--algebras", nargs="*", help="by name, default: all")
    parser.add_argument("--limit", type=int, default=120, help="seconds, cell iv")
    parser.add_argument("--row", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        index, method, what = options.row
        rows = run_rows(CELLS[int(index)], method, (what,), options.reps)
        print(json.dumps(rows[0]))
        return
    file = RESULTS / "logode.json"
    old = json.loads(file.read_text()) if file.exists() else {}
    results = {
        "machine": f"{platform.machine()}, jax {jax.__version__}, "
        f"{datetime.date.today():%d %B %Y}",
        "rows": old.get("rows", []),
        "ratios": [],
        "memory": old.get("memory", []),
    }
    place = lambda row: (row["cell"], row["algebra"], row["method"], row["what"])  # noqa: E731
    jobs = [
        (index, *job)
        for index, (_, geometry, alg, _, _, solver, rivals) in enumerate(CELLS)
        for job in methods_of(geometry, alg, solver, rivals)
    ]
    rank = {place(label(CELLS[k], *job)): n for n, (k, *job) in enumerate(jobs)}
    for index, method, what in jobs:
        cell = CELLS[index]
        name, alg = cell[0], cell[2]
        if name not in options.cells:
            continue
        if options.methods and method not in options.methods:
            continue
        if options.algebras and type(alg).__name__ not in options.algebras:
            continue
        if name == "iv" and not method.startswith("arborax"):
            found = [run_limited(index, method, what, options.reps, options.limit)]
        elif (method, what) == ("arborax", "gradient"):
            continue  # measured together with the value
        else:
            kinds = BOTH if method == "arborax" else (what,)
            found = run_rows(cell, method, kinds, options.reps)
        for row in found:
            print(format_row(row), flush=True)
            # Rows that are not asked for keep what was measured before.
            rows = [r for r in results["rows"] if place(r) != place(row)] + [row]
            rows = [r for r in rows if place(r) in rank]
            results["rows"] = sorted(rows, key=lambda r: rank[place(r)])
        results["ratios"] = ratios(results["rows"])
        write(results)
    if "memory" in options.cells:
        results["memory"] = memory_rows()
    results["ratios"] = ratios(results["rows"])
    write(results)


if __name__ == "__main__":
    main()

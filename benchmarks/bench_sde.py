"""Time to a given strong and weak error of stochastic equations, with rivals.

    python benchmarks/bench_sde.py [--paths 10000] [--reps 5] [--cells GBM SABR ...]

Errors are measured on one Brownian path for all schemes, by its increments, and for
ours and Milstein by its areas over each window, against the log-ODE with 256 windows.
Times are those of production: noise is drawn, with Davie's areas where a scheme takes
them. For each scheme a line is fitted to the logarithm of its errors over the number of
steps, and one to its times; together they give the CPU time to the target error, which
is ours at 16 windows. The rivals are hand-written scans (Euler and, in flat space,
Milstein; the geodesic Euler scheme on manifolds) and `diffrax.diffeqsolve` with `Euler`
(on manifolds in ambient coordinates) and, where noise commutes, `ItoMilstein`. Writes
`benchmarks/results/sde.json` and `.md`.
"""

import argparse
import json
import os
import pathlib
import platform
import time

import diffrax
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from summary import short

import arborax as abx


RESULTS = pathlib.Path(__file__).parent / "results"
FINE, REFERENCE, TARGET = 1024, 256, 16
SIZES = (4, 8, 16, 32, 64)
WEAK_TARGET = 64
TIMED = {"ours": (8, 32), "euler": (32, 128), "milstein": (8, 32), "diffrax": (32, 128)}


class Problem:
    """An Itô equation: `drift(y)`, `diffusion(y)`, where it lives and starts."""

    def __init__(self, name, drift, diffusion, y0, geometry=None, commutes=False):
        self.name, self.drift, self.diffusion = name, drift, diffusion
        self.y0 = jnp.asarray(y0, jnp.float32)
        self.flat = geometry is None
        self.geometry = abx.Euclidean(len(self.y0)) if geometry is None else geometry
        self.commutes = commutes
        self.noise = jax.eval_shape(diffusion, self.y0).shape[1]


def gbm():
    return Problem(
        "GBM", lambda y: 0.1 * y, lambda y: 0.4 * y[:, None], [1.0], commutes=True
    )


def sabr(beta=0.7, nu=0.6, rho=-0.5):
    root = (1 - rho**2) ** 0.5

    def diffusion(y):
        s, a = y
        first = jnp.stack([a * s**beta, jnp.zeros_like(a)])
        return jnp.stack([first, nu * a * jnp.array([rho, root])])

    return Problem("SABR", jnp.zeros_like, diffusion, [1.0, 0.3])


def heston(kappa=2.0, theta=0.09, sigma=0.3, rho=-0.7):
    """Of the logarithm of the price, far from zero variance."""
    root = (1 - rho**2) ** 0.5

    def drift(y):
        return jnp.stack([-y[1] / 2, kappa * (theta - y[1])])

    def diffusion(y):
        vol = jnp.sqrt(y[1])
        first = jnp.stack([vol, jnp.zeros_like(vol)])
        return jnp.stack([first, sigma * vol * jnp.array([rho, root])])

    return Problem("Heston", drift, diffusion, [0.0, 0.09])


def bounded(name, geometry, y0, noise, scale, shrink=lambda y: y):
    """Smooth bounded fields without symmetry."""
    rng = np.random.default_rng(0)
    size = int(np.prod(np.shape(y0)))
    weight = rng.normal(size=(noise + 1, geometry.dim, size)) / np.sqrt(size)
    bias = rng.normal(size=(noise + 1, geometry.dim))
    weight, bias = (jnp.asarray(x, jnp.float32) for x in (weight, bias))

    def fields(y):
        return scale * jnp.sin(weight @ jnp.ravel(shrink(y)) + bias)

    flat = isinstance(geometry, abx.Euclidean)
    drift, diffusion = lambda y: fields(y)[0], lambda y: fields(y)[1:].T
    return Problem(name, drift, diffusion, y0, None if flat else geometry)


def problems():
    yield gbm
    yield sabr
    yield heston
    yield lambda: bounded("3-d", abx.Euclidean(3), [0.1, 0.2, 0.3], 3, 0.7)
    yield lambda: bounded("SO(3)", abx.SO(3), np.eye(3), 3, 0.6)
    yield lambda: bounded("S2", abx.Sphere(2), [0.0, 0.6, 0.8], 2, 0.7)
    inside = lambda y: y / (1 + jnp.trace(y))  # noqa: E731
    yield lambda: bounded("SPD(3)", abx.SPD(3), np.eye(3), 3, 0.6, inside)


# Schemes on given noise: final states `(paths, ..)` for steps `(paths, n, ..)`.


def ours(problem, steps):
    """The control and solve that `solve_sde` builds."""
    d, n = problem.noise, steps.increments.shape[1]
    knots = jnp.linspace(0.0, 1.0, n + 1)
    h = jnp.full((n, 1), 1 / n)
    alg = abx.Ito(d + 1, 2)
    solver = abx.Heun() if problem.flat else abx.CFEES25()
    fields = lambda y: jnp.concatenate(  # noqa: E731
        [problem.drift(y)[None], problem.diffusion(y).T]
    )
    spread = jnp.concatenate([0 * h, jnp.full((n, d), 1 / n)], axis=1)

    def one(w, space_time, areas):
        control = abx.rough_path_from_areas(
            knots,
            jnp.concatenate([h, w], axis=1),
            jnp.concatenate([-h * space_time, areas], axis=1),
            alg,
            jax.vmap(jnp.diag)(spread),
            check=False,
        )
        return abx.solve(
            fields,
            problem.y0,
            control,
            geometry=problem.geometry,
            solver=solver,
            saveat=diffrax.SaveAt(t1=True),
            throw=False,
        ).ys[0]

    return jax.vmap(one)(*steps)


def euler(problem, steps):
    """By hand: the geodesic Euler-Maruyama scheme, in flat space the usual one."""
    n = steps.increments.shape[1]

    def body(y, dw):
        u = problem.drift(y) / n + problem.diffusion(y) @ dw
        return problem.geometry.exp(y, u), None

    rows = jnp.swapaxes(steps.increments, 0, 1)
    start = jnp.broadcast_to(problem.y0, (rows.shape[1], *problem.y0.shape))
    batch = lambda ys, dws: (jax.vmap(body)(ys, dws)[0], None)  # noqa: E731
    return jax.lax.scan(batch, start, rows)[0]


def milstein(problem, steps):
    """By hand, flat space: with areas where noise does not commute."""
    d, n = problem.noise, steps.increments.shape[1]
    i, j = np.triu_indices(d, 1)

    def body(y, row):
        dw, area = row
        double = (jnp.outer(dw, dw) - jnp.eye(d) / n) / 2
        double = double.at[i, j].add(area).at[j, i].add(-area)
        g = problem.diffusion(y)
        slopes = jax.jacfwd(problem.diffusion)(y)  # (dim, d, dim)
        second = jnp.einsum("nja,ai,ij->n", slopes, g, double)
        return y + problem.drift(y) / n + g @ dw + second

    rows = (jnp.swapaxes(x, 0, 1) for x in (steps.increments, steps.areas))
    start = jnp.broadcast_to(problem.y0, (steps.areas.shape[0], *problem.y0.shape))
    batch = lambda ys, row: (jax.vmap(body)(ys, row), None)  # noqa: E731
    return jax.lax.scan(batch, start, tuple(rows))[0]


def in_diffrax(problem, solver, n, key):
    """One path of `diffeqsolve`, in ambient coordinates."""
    space, shape = problem.geometry, problem.y0.shape

    def column(y, i):
        return space.frame(y, problem.diffusion(y)[:, i])

    def drift(t, y, args):
        z = y.reshape(shape)
        out = space.frame(z, problem.drift(z))
        if problem.flat:
            return out
        for i in range(problem.noise):  # Itô in the space is Itô around it, corrected
            v = lambda x, i=i: problem.diffusion(x)[:, i]  # noqa: E731
            nabla = space.covariant_derivative(v, z, v(z))
            along = jax.jvp(lambda x, i=i: column(x, i), (z,), (column(z, i),))[1]
            out = out + (along - space.frame(z, nabla)) / 2
        return out.ravel()

    def diffusion(t, y, args):
        z = y.reshape(shape)
        rows = [column(z, i).ravel() for i in range(problem.noise)]
        return jnp.stack(rows, axis=1)

    motion = diffrax.UnsafeBrownianPath((problem.noise,), key=key)
    if problem.commutes:  # one Brownian motion; Milstein wants it so
        motion = diffrax.UnsafeBrownianPath((), key=key)
        diffusion_ = lambda t, y, args: diffusion(t, y, args)[:, 0]  # noqa: E731
    else:
        diffusion_ = diffusion
    return diffrax.diffeqsolve(
        diffrax.MultiTerm(
            diffrax.ODETerm(drift), diffrax.ControlTerm(diffusion_, motion)
        ),
        solver,
        0.0,
        1.0,
        1 / n,
        problem.y0.ravel(),
        saveat=diffrax.SaveAt(t1=True),
        max_steps=n + 1,
        adjoint=diffrax.DirectAdjoint(),
        throw=False,
    ).ys[0]


def window_steps(dw, n) -> abx.BrownianSteps:
    """Increments and areas over `n` windows of paths with fine increments `dw`."""
    paths, fine, d = dw.shape
    pieces = dw.reshape(paths, n, fine // n, d)
    total = pieces.sum(axis=2)
    before = jnp.cumsum(pieces, axis=2) - pieces
    double = jnp.einsum("pnti,pntj->pnij", before, pieces)
    i, j = np.triu_indices(d, 1)
    areas = (double - jnp.swapaxes(double, 2, 3))[..., i, j] / 2
    space_time = (before + pieces / 2).mean(axis=2) - total / 2
    return abx.BrownianSteps(total, space_time, areas)


def error_rows(problem, paths):
    """Strong errors, and weak ones of the mean of a smooth function, by scheme."""
    dw = jr.normal(jr.key(1), (paths, FINE, problem.noise)) / FINE**0.5
    reference = jax.jit(lambda dw: ours(problem, window_steps(dw, REFERENCE)))(dw)
    test = lambda y: jnp.sum(jnp.sin(y.reshape(paths, -1)), axis=1)  # noqa: E731
    schemes = {"ours": ours, "euler": euler}
    if problem.flat:
        schemes["milstein"] = milstein
    out = {}
    for name, scheme in schemes.items():
        rows = []
        for n in SIZES if name != "euler" else (*SIZES, 128, 256):
            run = jax.jit(lambda dw, n=n, s=scheme: s(problem, window_steps(dw, n)))
            ends = run(dw)
            gap = np.asarray(ends - reference).reshape(paths, -1)
            means = np.asarray(test(ends) - test(reference))
            rows.append(
                {
                    "steps": n,
                    "strong": float(np.sqrt(np.mean(np.sum(gap**2, axis=1)))),
                    "weak": float(abs(means.mean())),
                    "weak_error": float(means.std() / np.sqrt(paths)),
                }
            )
        out[name] = rows
    return out


def programs(problem, paths):
    """What is timed: `{(scheme, steps): compiled}` of a key, noise included."""
    draw = lambda key, n, method: abx.brownian_areas(  # noqa: E731
        jnp.linspace(0.0, 1.0, n + 1), problem.noise, paths, key=key, method=method
    )
    areas = None if problem.commutes else "davie"

    def ours_(n, key):
        return abx.solve_sde(
            problem.drift,
            problem.diffusion,
            problem.y0,
            jnp.array([0.0, 1.0]),
            key=key,
            geometry=problem.geometry,
            paths=paths,
            windows=n,
            levy_area=areas,
            throw=False,
        ).ys[:, -1]

    def euler_(n, key):
        dw = jr.normal(key, (paths, n, problem.noise)) / n**0.5
        return euler(problem, abx.BrownianSteps(dw, dw, dw))

    def through(solver):
        return lambda n, key: jax.vmap(lambda one: in_diffrax(problem, solver, n, one))(
            jr.split(key, paths)
        )

    chosen = {"ours": ours_, "euler": euler_, "diffrax euler": through(diffrax.Euler())}
    if problem.flat:
        chosen["milstein"] = lambda n, key: milstein(problem, draw(key, n, areas))
    if problem.commutes:
        chosen["diffrax milstein"] = through(diffrax.ItoMilstein())
    out = {}
    for name, function in chosen.items():
        for n in TIMED[name.split()[0]]:
            call = lambda key, n=n, f=function: f(n, key)  # noqa: E731
            out[name, n] = jax.jit(call).lower(jr.key(0)).compile()
    return out


def time_rows(problem, paths, reps):
    """Best CPU seconds of each program; programs take turns."""
    compiled = programs(problem, paths)
    best = dict.fromkeys(compiled, np.inf)
    for k in range(reps + 1):
        for label, program in compiled.items():
            key = jr.key(k)
            start = time.process_time()
            jax.block_until_ready(program(key))
            if k:  # the first is a warm-up
                best[label] = min(best[label], time.process_time() - start)
    return [{"scheme": s, "steps": n, "cpu_s": t} for (s, n), t in best.items()]


def time_to(target, errors, times, what):
    """CPU seconds to an error, and the number of steps that it takes."""
    x = np.log([row["steps"] for row in errors])
    y = np.log([row[what] for row in errors])
    slope, level = np.polyfit(x, y, 1)
    steps = float(np.exp((np.log(target) - level) / slope))
    (n, s), (m, t) = ((row["steps"], row["cpu_s"]) for row in times)
    rate = max((t - s) / (m - n), 0.0)
    return {"steps": steps, "cpu_s": s + rate * (steps - n), "order": -float(slope)}


def weak_times(errors, times):
    """CPU seconds to the weak error of Euler with 64 steps: ours with the fewest
    windows whose error is not above it."""
    at = {row["steps"]: row["weak"] for row in errors["euler"]}
    target = at[WEAK_TARGET]
    enough = [row["steps"] for row in errors["ours"] if row["weak"] <= target]
    out = {"weak": target}
    for name, steps in (("euler", WEAK_TARGET), ("ours", min(enough, default=None))):
        if steps is not None:
            own = [row for row in times if row["scheme"] == name]
            (n, s), (m, t) = ((row["steps"], row["cpu_s"]) for row in own)
            rate = max((t - s) / (m - n), 0.0)
            out[name] = {"steps": steps, "cpu_s": s + rate * (steps - n)}
    return out


def compare(errors, times):
    """The cell of a problem: times to the error of ours at 16 windows."""
    mine = next(row for row in errors["ours"] if row["steps"] == TARGET)
    out = {"strong": mine["strong"]}
    for name in dict.fromkeys(row["scheme"] for row in times):
        kind = name.split()[-1]
        own = [row for row in times if row["scheme"] == name]
        out[name] = time_to(mine["strong"], errors[kind], own, "strong")
    return out


def describe(document):
    settings = document["settings"]
    lines = [
        "CPU milliseconds to the strong error that `solve_sde` has with "
        f"{TARGET} windows, {settings['paths']} paths in float32 (a fifth on "
        "manifolds), noise included; in parentheses the steps it takes, from a fit to "
        "errors on shared noise. Errors are root mean squares over "
        f"{settings['error_paths']} paths. Slower or faster: time over that of "
        f"`solve_sde`. {settings['machine']}, `{settings['command']}`.",
        "",
        "| equation | error | solve_sde | Euler | Milstein | Diffrax Euler | "
        "Diffrax Milstein | Euler / ours | Diffrax / ours |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    gains = {"euler": [], "diffrax": []}
    for cell in document["cells"]:
        found = cell["to_error"]

        def shown(name, found=found):
            if name not in found:
                return "–"
            one = found[name]
            return f"{short(1e3 * one['cpu_s'])} ({one['steps']:.0f})"

        mine = found["ours"]["cpu_s"]
        euler_ = found["euler"]["cpu_s"] / mine
        theirs = [v["cpu_s"] for k, v in found.items() if k.startswith("diffrax")]
        diffrax_ = min(theirs) / mine
        gains["euler"].append(euler_)
        gains["diffrax"].append(diffrax_)
        names = ("ours", "euler", "milstein", "diffrax euler", "diffrax milstein")
        columns = " | ".join(shown(name) for name in names)
        lines.append(
            f"| {cell['name']} | {found['strong']:.2g} | {columns} | {short(euler_)} | "
            f"{short(diffrax_)} |"
        )
    means = {k: float(np.exp(np.mean(np.log(v)))) for k, v in gains.items()}
    lines += [
        "",
        f"Geometric means: {short(means['euler'])} against Euler, "
        f"{short(means['diffrax'])} against the better Diffrax scheme. Areas cost "
        "noise of their own, so at loose errors, where few steps of Euler are enough, "
        "the ratio is smaller; it grows like one over the error.",
        "",
        "Weak errors of the mean of `sum(sin(y))` on the same paths, with their "
        f"standard error, and CPU milliseconds to that of Euler with {WEAK_TARGET} "
        "steps (in parentheses the windows of `solve_sde` that are enough):",
        "",
        "| equation | solve_sde, 4 | 16 | 64 | Euler, 4 | 16 | 64 | ours | Euler |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for cell in document["cells"]:
        cells = []
        for name in ("ours", "euler"):
            for row in cell["errors"][name]:
                if row["steps"] in (4, 16, 64):
                    cells.append(f"{row['weak']:.1e} ± {row['weak_error']:.0e}")
        weak = cell["to_weak_error"]
        mine = "not reached"
        if "ours" in weak:
            mine = f"{short(1e3 * weak['ours']['cpu_s'])} ({weak['ours']['steps']})"
        cells += [mine, short(1e3 * weak["euler"]["cpu_s"])]
        lines.append(f"| {cell['name']} | {' | '.join(cells)} |")
    (RESULTS / "sde.md").write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paths", type=int, default=10_000)
    parser.add_argument("--error-paths", type=int, default=1000)
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--cells", nargs="*")
    parser.add_argument("--draw", action="store_true", help="only write the page")
    options = parser.parse_args()
    file = RESULTS / "sde.json"
    document = json.loads(file.read_text()) if file.exists() else {"cells": []}
    if options.draw:
        return describe(document)
    document["settings"] = {
        "command": f"python benchmarks/bench_sde.py --paths {options.paths}",
        "paths": options.paths,
        "error_paths": options.error_paths,
        "machine": f"{os.cpu_count()} CPU cores, Python {platform.python_version()}, "
        f"jax {jax.__version__}",
    }
    kept = {cell["name"]: cell for cell in document["cells"]}
    for make in problems():
        problem = make()
        if options.cells and problem.name not in options.cells:
            continue
        paths = options.paths if problem.flat else options.paths // 5
        errors = error_rows(problem, options.error_paths)
        times = time_rows(problem, paths, options.reps)
        found = compare(errors, times)
        kept[problem.name] = {
            "name": problem.name,
            "paths": paths,
            "errors": errors,
            "times": times,
            "to_error": found,
            "to_weak_error": weak_times(errors, times),
        }
        print(problem.name, json.dumps(found), flush=True)
        document["cells"] = list(kept.values())
        file.write_text(json.dumps(document, indent=1) + "\n")
    describe(document)


if __name__ == "__main__":
    main()

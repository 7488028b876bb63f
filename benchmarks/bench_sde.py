"""Time to a given strong and weak error of stochastic equations, with rivals.

    python benchmarks/bench_sde.py [--paths 10000] [--reps 5] [--cells GBM SABR ...]

Strong errors are measured on one driver for all schemes: increments and areas over 8192
fine steps (16384 for SABR), joined over longer ones, against the log-ODE with 512
windows. The target is our error at 16 windows. The steps that a scheme needs are
interpolated between the two measured sizes around the target; if no measured size
reaches it they come from a line fitted to the errors, and the table marks them. Times
are those of production: noise is drawn, with Davie's areas where a scheme takes them.
They are measured at two sizes and taken as linear in the number of steps. Weak errors
are those of a mean, on shared noise too, and CPU time to that of Euler with 32 steps.
Peak memory is that of a process that computes a SABR price and its derivative.

The rivals are hand-written scans (Euler and, in flat space, Milstein; the geodesic
Euler scheme on manifolds) and `diffrax.diffeqsolve` with `Euler` (on manifolds in
ambient coordinates) and, where noise commutes, `ItoMilstein`. Writes
`benchmarks/results/sde.json` and `.md`.
"""

import argparse
import functools as ft
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

import diffrax
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from summary import short

import arborax as abx


RESULTS = pathlib.Path(__file__).parent / "results"
FINE, REFERENCE, TARGET = 8192, 512, 16
SIZES = tuple(2**k for k in range(2, 15))
WEAK_FINE, WEAK_REFERENCE, WEAK_SIZES = 256, 64, (1, 2, 4, 8, 16, 32)
TIMED = {
    "ours": (8, 32),
    "euler": (256, 1024),
    "milstein": (16, 64),
    "diffrax euler": (256, 1024),
    "diffrax milstein": (16, 64),
}
# Whose errors a scheme of Diffrax has.
ERRORS_OF = {"diffrax euler": "ambient euler", "diffrax milstein": "milstein"}


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


def sabr(beta=0.9, nu=0.4, rho=-0.5):
    """Of the logarithms of forward and volatility. The logarithm needs `beta` near 1:
    forwards with a smaller one reach zero, and a few of many paths leave floats."""
    root = (1 - rho**2) ** 0.5

    def volatility(y):
        return jnp.exp(y[1] + (beta - 1) * y[0])

    def drift(y):
        return -jnp.stack([volatility(y) ** 2, jnp.full_like(y[1], nu**2)]) / 2

    def diffusion(y):
        vol = volatility(y)
        first = jnp.stack([vol, jnp.zeros_like(vol)])
        return jnp.stack([first, nu * jnp.array([rho, root])])

    return Problem("SABR", drift, diffusion, [0.0, -1.2])


def heston(kappa=2.0, theta=0.09, sigma=0.3, rho=-0.7):
    """Of the logarithm of the price; the root is smoothed near zero, which long steps
    would leave behind."""
    root = (1 - rho**2) ** 0.5

    def drift(y):
        return jnp.stack([-y[1] / 2, kappa * (theta - y[1])])

    def diffusion(y):
        vol = (y[1] ** 2 + 1e-4) ** 0.25
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


def ours(problem, steps, weak=False):
    """The control and solve that `solve_sde` builds."""
    d, n = problem.noise, steps.increments.shape[1]
    knots = jnp.linspace(0.0, 1.0, n + 1)
    h = jnp.full((n, 1), 1 / n)
    alg = abx.Shuffle(d + 1, 3) if weak else abx.Ito(d + 1, 2)
    solver = abx.CF4() if weak else abx.CFEES25()

    def fields(y):
        drift, v = problem.drift(y), problem.diffusion(y).T
        for i in range(d) if weak else ():
            along = lambda z, i=i: problem.diffusion(z)[:, i]  # noqa: E731
            drift = drift - problem.geometry.covariant_derivative(along, y, v[i]) / 2
        return jnp.concatenate([drift[None], v])

    spread = jnp.concatenate([0 * h, jnp.full((n, d), 1 / n)], axis=1)

    def one(w, space_time, areas):
        control = abx.rough_path_from_areas(
            knots,
            jnp.concatenate([h, w], axis=1),
            jnp.concatenate([-h * space_time, areas], axis=1),
            alg,
            None if weak else jax.vmap(jnp.diag)(spread),
            variances=spread if weak else None,
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


def weak_two(problem, steps):
    """`solve_sde` with `weak_order=2`."""
    return ours(problem, steps, weak=True)


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


def ambient(problem):
    """Drift and diffusion of the Itô equation in ambient coordinates."""
    space, shape = problem.geometry, problem.y0.shape

    def column(y, i):
        return space.frame(y, problem.diffusion(y)[:, i])

    def drift(y):
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

    def diffusion(y):
        z = y.reshape(shape)
        rows = [column(z, i).ravel() for i in range(problem.noise)]
        return jnp.stack(rows, axis=1)

    return drift, diffusion


def ambient_euler(problem, steps):
    """What Diffrax's `Euler` computes, by hand."""
    n, (drift, diffusion) = steps.increments.shape[1], ambient(problem)

    def body(y, dw):
        return y + drift(y) / n + diffusion(y) @ dw

    rows = jnp.swapaxes(steps.increments, 0, 1)
    start = jnp.broadcast_to(problem.y0.ravel(), (rows.shape[1], problem.y0.size))
    batch = lambda ys, dws: (jax.vmap(body)(ys, dws), None)  # noqa: E731
    return jax.lax.scan(batch, start, rows)[0].reshape(-1, *problem.y0.shape)


def in_diffrax(problem, solver, n, key):
    """One path of `diffeqsolve`, in ambient coordinates."""
    drift, diffusion = ambient(problem)
    motion = diffrax.UnsafeBrownianPath((problem.noise,), key=key)
    if problem.commutes:  # one Brownian motion; Milstein wants it so
        motion = diffrax.UnsafeBrownianPath((), key=key)
        diffusion_ = lambda t, y, args: diffusion(y)[:, 0]  # noqa: E731
    else:
        diffusion_ = lambda t, y, args: diffusion(y)  # noqa: E731
    return diffrax.diffeqsolve(
        diffrax.MultiTerm(
            diffrax.ODETerm(lambda t, y, args: drift(y)),
            diffrax.ControlTerm(diffusion_, motion),
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


def fine_steps(problem, paths, fine, seed) -> abx.BrownianSteps:
    """The driver that all schemes share: increments and areas of fine steps."""
    ts = jnp.linspace(0.0, 1.0, fine + 1)
    return abx.brownian_areas(
        ts, problem.noise, paths, key=jr.key(seed), method="davie"
    )


def window_steps(fine: abx.BrownianSteps, n) -> abx.BrownianSteps:
    """Increments and areas over `n` windows, joined from fine ones."""
    cut = lambda x: x.reshape(x.shape[0], n, x.shape[1] // n, -1)  # noqa: E731
    pieces, space_time, areas = (cut(x) for x in fine)
    total = pieces.sum(axis=2)
    before = jnp.cumsum(pieces, axis=2) - pieces
    double = jnp.einsum("pnti,pntj->pnij", before, pieces)
    i, j = np.triu_indices(total.shape[-1], 1)
    joined = (double - jnp.swapaxes(double, 2, 3))[..., i, j] / 2 + areas.sum(axis=2)
    mean = (before + pieces / 2 + space_time).mean(axis=2)
    return abx.BrownianSteps(total, mean - total / 2, joined)


def error_rows(problem, paths):
    """Strong errors by scheme, at doubled sizes until ours at 16 windows is reached."""
    longest = 2 * FINE if problem.name == "SABR" else FINE
    fine = fine_steps(problem, paths, longest, 1)

    def run(scheme, n):
        return jax.jit(lambda fine: scheme(problem, window_steps(fine, n)))(fine)

    reference = run(ours, REFERENCE)
    if not np.isfinite(reference).all():
        raise ValueError(f"{problem.name}: the reference is not finite.")

    def strong(scheme, n):
        gap = np.asarray(run(scheme, n) - reference, np.float64).reshape(paths, -1)
        return float(np.sqrt(np.mean(np.sum(gap**2, axis=1))))

    schemes = {"ours": ours, "euler": euler, "ambient euler": ambient_euler}
    if problem.flat:
        schemes["milstein"] = milstein
        del schemes["ambient euler"]
    target, out = strong(ours, TARGET), {}
    for name, scheme in schemes.items():
        out[name] = rows = []
        for n in (n for n in SIZES if n <= longest):
            rows.append({"steps": n, "strong": strong(scheme, n)})
            if rows[-1]["strong"] <= target and n >= 64:
                break
    if problem.flat:
        out["ambient euler"] = out["euler"]
    return out


def compiled(function, n):
    """The program of a scheme with `n` steps, from a key to final states."""
    return jax.jit(lambda key: function(n, key)).lower(jr.key(0)).compile()


def take_turns(calls, reps):
    """Best CPU seconds of each program."""
    best = dict.fromkeys(calls, np.inf)
    for k in range(reps + 1):
        for label, program in calls.items():
            key = jr.key(k)
            start = time.process_time()
            jax.block_until_ready(program(key))
            if k:  # the first is a warm-up
                best[label] = min(best[label], time.process_time() - start)
    return best


def functions(problem, paths):
    """What is timed, noise included: functions of the number of steps and a key."""
    draw = lambda key, n, method: abx.brownian_areas(  # noqa: E731
        jnp.linspace(0.0, 1.0, n + 1), problem.noise, paths, key=key, method=method
    )
    areas = None if problem.commutes else "davie"

    def ours_(n, key, weak_order=1):
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
            weak_order=weak_order,
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
    chosen["weak 2"] = ft.partial(ours_, weak_order=2)
    if problem.flat:
        chosen["milstein"] = lambda n, key: milstein(problem, draw(key, n, areas))
    if problem.commutes:
        chosen["diffrax milstein"] = through(diffrax.ItoMilstein())
    return chosen


def time_rows(problem, paths, reps):
    """Times of all schemes at two numbers of steps each."""
    chosen = functions(problem, paths)
    del chosen["weak 2"]
    calls = {
        (name, n): compiled(function, n)
        for name, function in chosen.items()
        for n in TIMED[name]
    }
    best = take_turns(calls, reps)
    return [{"scheme": s, "steps": n, "cpu_s": t} for (s, n), t in best.items()]


def time_to(target, errors, times, what):
    """CPU seconds to an error, and the number of steps that it takes: between the two
    measured sizes around it, or from a fit if none reaches it."""
    x = np.log([row["steps"] for row in errors])
    y = np.log([row[what] for row in errors])
    finite = np.isfinite(y)
    slope, level = np.polyfit(x[finite], y[finite], 1)
    goal = np.log(target)
    measured = bool(np.any(y <= goal))
    if measured:
        k = max(int(np.argmax(y <= goal)), 1)
        share = (goal - y[k - 1]) / (y[k] - y[k - 1])
        steps = float(np.exp(x[k - 1] + share * (x[k] - x[k - 1])))
    else:
        steps = float(np.exp((goal - level) / slope))
    (n, s), (m, t) = ((row["steps"], row["cpu_s"]) for row in times)
    rate = max((t - s) / (m - n), 0.0)
    return {
        "steps": steps,
        "measured": measured,
        "cpu_s": max(s + rate * (steps - n), s * min(steps / n, 1.0)),
        "order": -float(slope),
    }


def weak_times(problem, paths, reps):
    """Weak errors on shared noise of many paths, and CPU seconds to that of Euler with
    32 steps. Of each scheme the fewest steps are taken from which on no error is above
    it by more than two of its standard errors."""
    fine = fine_steps(problem, paths, WEAK_FINE, 2)
    test = lambda y: jnp.sum(jnp.sin(y.reshape(paths, -1)), axis=1)  # noqa: E731
    run = lambda s, n: jax.jit(  # noqa: E731
        lambda fine: test(s(problem, window_steps(fine, n)))
    )(fine)
    reference = run(weak_two, WEAK_REFERENCE)
    if not np.isfinite(reference).all():
        raise ValueError(f"{problem.name}: the reference is not finite.")
    schemes = {"euler": euler, "ours": ours, "weak 2": weak_two}
    if not problem.flat:
        schemes["ambient euler"] = ambient_euler
    errors = {}
    for name, scheme in schemes.items():
        errors[name] = []
        for n in WEAK_SIZES:
            gap = np.asarray(run(scheme, n) - reference, np.float64)
            row = {"steps": n, "weak": float(abs(gap.mean()))}
            errors[name].append({**row, "se": float(gap.std() / np.sqrt(paths))})
    target = errors["euler"][-1]["weak"]
    bound, enough = target + 2 * errors["euler"][-1]["se"], {}
    for name, rows in errors.items():
        above = [r["steps"] for r in rows if not r["weak"] <= bound]
        enough[name] = min(2 * max(above, default=0) or 1, WEAK_SIZES[-1])
    enough["euler"] = WEAK_SIZES[-1]
    enough["diffrax euler"] = enough.pop("ambient euler", enough["euler"])
    timed = paths if problem.flat else paths // 5
    chosen = functions(problem, timed)
    calls = {name: compiled(chosen[name], n) for name, n in enough.items()}
    seconds = take_turns(calls, reps)
    return {
        "errors": errors,
        "target": target,
        "steps": enough,
        "paths": timed,
        "cpu_s": seconds,
    }


def compare(errors, times):
    """The cell of a problem: times to the error of ours at 16 windows."""
    mine = next(row for row in errors["ours"] if row["steps"] == TARGET)
    out = {"strong": mine["strong"]}
    for name in dict.fromkeys(row["scheme"] for row in times):
        own = [row for row in times if row["scheme"] == name]
        rows = errors[ERRORS_OF.get(name, name)]
        out[name] = time_to(mine["strong"], rows, own, "strong")
    return out


PEAK = """
import resource, sys, time
import jax, jax.numpy as jnp
import arborax as abx

ends, y0 = jnp.array([0.0, 1.0]), jnp.array([0.0, -1.6])
drift = lambda t, y, args: -jnp.stack([jnp.exp(2 * y[1]), args**2]) / 2
def diffusion(t, y, args):
    vol = jnp.exp(y[1])
    rows = [jnp.stack([vol, jnp.zeros_like(vol)]), args * jnp.array([-0.5, 0.75**0.5])]
    return jnp.stack(rows)

@jax.jit
@jax.value_and_grad
def price(nu):
    options = dict(key=jax.random.key(0), args=nu, paths=int(sys.argv[1]), windows=32)
    sol = abx.solve_sde(drift, diffusion, y0, ends, **options)
    return jnp.mean(jnp.maximum(jnp.exp(sol.ys[:, -1, 0]) - 1, 0))

value, slope = price(jnp.array(0.4))
print(float(value), float(slope), time.process_time())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def memory_rows():
    """Peak memory of a process by the number of paths."""
    rows = []
    for paths in (10_000, 100_000, 1_000_000):
        run = [sys.executable, "-c", PEAK, str(paths)]
        out = subprocess.run(run, stdout=subprocess.PIPE, check=True).stdout.split()
        keys = ("price", "slope", "cpu_s", "peak_mb")
        rows.append({"paths": paths} | dict(zip(keys, map(float, out))))
        print(rows[-1], flush=True)
    return rows


def behind(cells, gains):
    """The rows that are slower than a rival, for a sentence."""
    rows = [
        f"{cell['name']} against {rival} ({short(ratio)})"
        for rival, ratios in gains.items()
        for cell, ratio in zip(cells, ratios)
        if ratio < 1
    ]
    return ", ".join(rows) or "none"


def describe(document):
    settings = document["settings"]
    lines = [
        "CPU milliseconds to the strong error that `solve_sde` has with "
        f"{TARGET} windows, {settings['paths']} paths in float32 (a fifth on "
        "manifolds), noise included; in parentheses the steps it takes, between the "
        "two measured sizes around the error (with ~: extrapolated, no measured size "
        "is that accurate). Times of Euler are measured at 256 and 1024 steps and "
        "linear in their number. Errors are root mean squares over "
        f"{settings['error_paths']} paths. Slower or faster: time over that of "
        f"`solve_sde`. {settings['machine']}, `{settings['command']}`.",
        "",
        "| equation | error | solve_sde | Euler | Milstein | Diffrax Euler | "
        "Diffrax Milstein | Euler / ours | Diffrax / ours |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    gains = {"Euler": [], "Diffrax": []}
    for cell in document["cells"]:
        found = cell["to_error"]

        def shown(name, found=found):
            if name not in found:
                return "–"
            one = found[name]
            about = "" if one["measured"] else "~"
            return f"{short(1e3 * one['cpu_s'])} ({about}{one['steps']:.0f})"

        mine = found["ours"]["cpu_s"]
        euler_ = found["euler"]["cpu_s"] / mine
        theirs = [v["cpu_s"] for k, v in found.items() if k.startswith("diffrax")]
        diffrax_ = min(theirs) / mine
        gains["Euler"].append(euler_)
        gains["Diffrax"].append(diffrax_)
        names = ("ours", "euler", "milstein", "diffrax euler", "diffrax milstein")
        columns = " | ".join(shown(name) for name in names)
        lines.append(
            f"| {cell['name']} | {found['strong']:.2g} | {columns} | {short(euler_)} | "
            f"{short(diffrax_)} |"
        )
    means = {k: float(np.exp(np.mean(np.log(v)))) for k, v in gains.items()}
    faster = [
        f"{cell['name']} ({short(found['ours']['cpu_s'] / found['milstein']['cpu_s'])})"
        for cell in document["cells"]
        for found in [cell["to_error"]]
        if "milstein" in found and found["milstein"]["cpu_s"] < found["ours"]["cpu_s"]
    ]
    lines += [
        "",
        f"Geometric means: {short(means['Euler'])} against Euler, "
        f"{short(means['Diffrax'])} against the better Diffrax scheme. Areas cost "
        "noise of their own, so at loose errors, where few steps of Euler are enough, "
        "the ratio is smaller; it grows like one over the error. Behind: "
        f"{behind(document['cells'], gains)}. Milstein's scheme by hand, with the "
        "same areas, is faster than `solve_sde` in these rows, by the factor in "
        f"parentheses: {', '.join(faster) or 'none'}. It needs one stage per step "
        "where the log-ODE needs three, and exists in flat space only. Areas, where "
        '`solve_sde` and Milstein draw any, are those of `levy_area="davie"`.',
    ]
    weak_lines = [
        "",
        "Weak errors of the mean of `sum(sin(y))` on shared noise, with their standard "
        "error, and CPU milliseconds to that of Euler with 32 steps (in parentheses "
        "the fewest steps, of powers of two up to 32, from which on no error is above "
        "it by more than two of its standard errors):",
        "",
        "| equation | Euler, 32 | ours, 4 | weak_order=2, 4 | Euler | Diffrax Euler | "
        "ours | weak_order=2 | Euler / best of ours | Diffrax / best of ours |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    weak_gains = {"Euler": [], "Diffrax": []}
    weak_cells = [cell for cell in document["cells"] if "weak" in cell]
    for cell in weak_cells:
        weak, cells = cell["weak"], []
        for name, steps in (("euler", 32), ("ours", 4), ("weak 2", 4)):
            row = next(r for r in weak["errors"][name] if r["steps"] == steps)
            cells.append(f"{row['weak']:.1e} ± {row['se']:.0e}")
        names = ("euler", "diffrax euler", "ours", "weak 2")
        cells += [
            f"{short(1e3 * weak['cpu_s'][k])} ({weak['steps'][k]})" for k in names
        ]
        best = min(weak["cpu_s"][k] for k in names[2:])
        for name, ratios in zip(names, weak_gains.values()):
            ratios.append(weak["cpu_s"][name] / best)
            cells.append(short(ratios[-1]))
        weak_lines.append(f"| {cell['name']} | {' | '.join(cells)} |")
    if weak_cells:
        lines += weak_lines
        lines += [
            "",
            f"Behind: {behind(weak_cells, weak_gains)}. A mean needs no strong order, "
            "so Euler is hard to beat at loose errors; the third derivatives of "
            "`weak_order=2` are dear on manifolds.",
        ]
    if "memory" in document:
        lines += [
            "",
            "Peak memory of a process that computes a SABR price and its derivative in "
            "one parameter, 32 windows, and its CPU seconds, compilation included:",
            "",
            "| paths | peak memory, MB | CPU seconds |",
            "|---|---|---|",
        ]
        for row in document["memory"]:
            cells = f"{row['peak_mb']:.0f} | {short(row['cpu_s'])}"
            lines.append(f"| {row['paths']:,} | {cells} |")
    (RESULTS / "sde.md").write_text("\n".join(lines) + "\n")


def save(file, document, kept):
    order = ("GBM", "SABR", "Heston", "3-d", "SO(3)", "S2", "SPD(3)")
    document["cells"] = [kept[name] for name in order if name in kept]
    file.write_text(json.dumps(document, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paths", type=int, default=10_000)
    parser.add_argument("--error-paths", type=int, default=1000)
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--cells", nargs="*")
    parser.add_argument("--weak-paths", type=int, default=20_000)
    parser.add_argument("--weak", action="store_true", help="only weak errors")
    parser.add_argument("--memory", action="store_true", help="only memory")
    parser.add_argument("--draw", action="store_true", help="only write the page")
    options = parser.parse_args()
    file = RESULTS / "sde.json"
    document = json.loads(file.read_text()) if file.exists() else {"cells": []}
    if options.draw:
        return describe(document)
    if options.memory:
        document["memory"] = memory_rows()
        file.write_text(json.dumps(document, indent=1) + "\n")
        return describe(document)
    document["memory"] = memory_rows()
    document["settings"] = {
        "command": f"python benchmarks/bench_sde.py --paths {options.paths}",
        "paths": options.paths,
        "error_paths": options.error_paths,
        "weak_paths": options.weak_paths,
        "machine": f"{os.cpu_count()} CPU cores, Python {platform.python_version()}, "
        f"jax {jax.__version__}",
    }
    kept = {cell["name"]: cell for cell in document["cells"]}
    for make in problems():
        problem = make()
        if options.cells and problem.name not in options.cells:
            continue
        paths = options.paths if problem.flat else options.paths // 5
        weak = weak_times(problem, options.weak_paths, options.reps)
        print(problem.name, json.dumps(weak), flush=True)
        if options.weak:
            kept[problem.name]["weak"] = weak
            save(file, document, kept)
            continue
        errors = error_rows(problem, options.error_paths)
        times = time_rows(problem, paths, options.reps)
        found = compare(errors, times)
        kept[problem.name] = {
            "name": problem.name,
            "paths": paths,
            "errors": errors,
            "times": times,
            "to_error": found,
            "weak": weak,
        }
        print(problem.name, json.dumps(found), flush=True)
        save(file, document, kept)
    describe(document)


if __name__ == "__main__":
    main()

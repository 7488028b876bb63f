"""Golden numbers: values and gradients that later versions must reproduce.

    python tests/golden/make.py                 # writes tests/golden/numbers.json
    python tests/golden/make.py solve kernel    # only cases with such a name

Everything here uses public names and float64. A case returns arrays; what is stored are
projections on fixed vectors, a dozen numbers per array. If a constructor is renamed,
change the case; if a bug fix changes numbers, make the file again and name the fix in
the commit. Cases avoid numbers that depend on a known fault. One change of
the file was no bug fix: when the experiment on rotations was redesigned (a2691db),
`RotationForecaster` got other arguments and numbers, and `FilterBank` replaced
`RotationMixture` and `RotationBNRDE`, which are gone.
"""

import functools as ft
import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import arborax as abx
import arborax_experiments.rotations as R


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)  # the test suite has it on

FILE = pathlib.Path(__file__).parent / "numbers.json"
KEY = jr.PRNGKey(2024)
M = abx.models
CASES: dict[str, Callable[[], Any]] = {}


def case(name: str) -> Callable:
    """Registers a function without arguments that returns named arrays."""

    def register(function: Callable) -> Callable:
        assert name not in CASES, name
        CASES[name] = function
        return function

    return register


def project(array: Any) -> list[float]:
    """The array itself if it is short, or its products with six fixed vectors."""
    flat = np.asarray(array, np.float64).ravel()
    if flat.size > 12:
        places = np.arange(flat.size)
        flat = np.stack([np.cos((k + 1) * places + k) for k in range(6)]) @ flat
    return flat.tolist()


def numbers(name: str) -> dict[str, list[float]]:
    """What is stored of one case."""
    return {f"{name}: {part}": v for part, v in CASES[name]().items()}


def weighted(tree: Any) -> Any:
    """A scalar that depends on every number of a tree of arrays."""
    total: Any = 0.0
    for leaf in jax.tree.leaves(tree):
        weights = np.cos(1.0 + np.arange(leaf.size)).reshape(leaf.shape)
        total = total + jnp.sum(leaf * jnp.asarray(weights, leaf.dtype))
    return total


def value_and_gradient(function: Callable, *arguments: Any) -> dict[str, list[float]]:
    """Outputs, and the gradient of a weighted sum of them, of a compiled function.

    Gradients are stored array by array in ascending order, so that they do not depend
    on the order of fields in a module.
    """
    moving, fixed = eqx.partition(arguments, eqx.is_inexact_array)

    @eqx.filter_jit
    def run(moving):
        def loss(moving):
            out = function(*eqx.combine(moving, fixed))
            return weighted(out), out

        return jax.value_and_grad(loss, has_aux=True)(moving)

    (_, out), gradient = run(moving)
    values = [project(leaf) for leaf in jax.tree.leaves(out)]
    slopes = sorted(project(leaf) for leaf in jax.tree.leaves(gradient))
    return {"value": sum(values, []), "gradient": sum(slopes, [])}


def normal(*shape: int, seed: int = 0) -> Any:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape))


def paths(*shape: int, seed: int = 0) -> Any:
    """Random walks of unit length in time, `(..., times, channels)`."""
    steps = normal(*shape, seed=seed) / np.sqrt(shape[-2])
    return jnp.cumsum(steps, axis=-2)


def bracket_steps(*shape: int, seed: int = 1) -> Any:
    """Positive semi-definite increments `(..., steps, channels, channels)`."""
    factor = normal(*shape, shape[-1], seed=seed)
    return factor @ jnp.swapaxes(factor, -1, -2) / (shape[-1] * shape[-2])


# Signatures and log-signatures

ALGEBRAS = {
    "Shuffle": abx.Shuffle,
    "Ito": abx.Ito,
    "GrossmanLarson": abx.GrossmanLarson,
    "MuntheKaasWright": abx.MuntheKaasWright,
}
MODES = {
    "Shuffle": (None,),
    "Ito": ("array", "realised"),
    "GrossmanLarson": ("array", None, "realised", "left-point"),
    "MuntheKaasWright": ("array", None, "realised", "left-point"),
}


def both(alg: Any, path: Any, brackets: Any) -> Any:
    return (
        abx.signature(path, alg, brackets=brackets),
        abx.log_signature(path, alg, brackets=brackets),
    )


def signature_case(alg: Any, mode: str | None, batch: int, times: int) -> Any:
    path = paths(batch, times, alg.dim)
    if mode == "array":
        steps = bracket_steps(batch, times - 1, alg.dim)
        return value_and_gradient(ft.partial(both, alg), path, steps)
    return value_and_gradient(lambda p: both(alg, p, mode), path)


for _name, _kind in ALGEBRAS.items():
    for _mode in MODES[_name]:
        _all = _mode == MODES[_name][0]
        for _depth in (1, 2, 3, 4) if _all else (2, 3):
            case(f"signature {_name}(2,{_depth}) {_mode}")(
                ft.partial(signature_case, _kind(2, _depth), _mode, 2, 7)
            )

# Long paths are cut into blocks, large batches into pieces.
for _alg, _mode in (
    (abx.Shuffle(2, 3), None),
    (abx.Ito(2, 3), "array"),
    (abx.GrossmanLarson(2, 3), "left-point"),
    (abx.MuntheKaasWright(2, 2), "realised"),
):
    case(f"signature {_alg} {_mode} long")(
        ft.partial(signature_case, _alg, _mode, 1, 400)
    )
for _alg, _mode in (
    (abx.Shuffle(4, 2), None),
    (abx.Shuffle(4, 3), None),
    (abx.Ito(3, 2), "array"),
    (abx.MuntheKaasWright(2, 3), None),
):
    case(f"signature {_alg} {_mode} many")(
        ft.partial(signature_case, _alg, _mode, 600, 65)
    )


for _alg in (abx.MultiIndex(2, 3), abx.BranchedWords(2, 3)):
    for _mode in ("array", "realised"):
        case(f"signature {_alg} {_mode}")(ft.partial(signature_case, _alg, _mode, 2, 7))


@case("signature at keys and over intervals")
def _():
    alg = abx.Ito(2, 3)
    keys = alg.basis[1:12:5]
    ts = jnp.linspace(0.0, 1.0, 9)

    def run(x, steps):
        control = abx.rough_path(ts, x, alg, window=2, brackets=steps)
        tree = abx.signature_tree(control)
        return (
            abx.selected_signature(x, keys, alg, steps),
            tree.log_signature(0.1, 0.83),
        )

    return value_and_gradient(run, paths(9, 2), bracket_steps(8, 2))


@case("signature streams")
def _():
    alg = abx.MuntheKaasWright(2, 2)

    def run(x, steps):
        first = abx.signature(x[:4], alg)
        return (
            abx.expanding_signature(x, alg),
            abx.windowed_signature(x, alg, 3),
            abx.windowed_log_signature(x, alg, 3),
            abx.extend_signature(first, x[3:], alg),
            abx.combine(first, abx.signature(x[3:], alg), alg),
            abx.signature_from_increments(steps, alg),
        )

    return value_and_gradient(run, paths(9, 2), normal(5, alg.primitive_size))


@case("signature masks and lengths")
def _():
    ts = jnp.linspace(0.0, 1.0, 9)
    mask = jnp.asarray(np.random.default_rng(5).random((2, 9)) < 0.7)
    mask = mask.at[:, 0].set(True)
    lengths = jnp.asarray([9, 6])
    alg = abx.Shuffle(2, 3)

    def run(x):
        return (
            abx.signature(abx.SampledPath(ts, x, lengths=lengths), alg),
            abx.signature(abx.SampledPath(ts, x, mask=mask), alg),
        )

    return value_and_gradient(run, paths(2, 9, 2))


@case("signature augmentations")
def _():
    ts = jnp.linspace(0.0, 1.0, 6)
    alg = abx.Shuffle(3, 2)

    def run(x):
        path = abx.SampledPath(ts, x)
        timed = abx.add_basepoint(abx.add_time(path))
        return abx.signature(timed, alg), abx.lead_lag(path).xs

    return value_and_gradient(run, paths(6, 2))


# Window fields and solves

GEOMETRIES = {
    "Euclidean": abx.Euclidean(3),
    "SO": abx.SO(3),
    "SE": abx.SE(3),
    "SPD": abx.SPD(2),
    "Sphere": abx.Sphere(2),
    "Hyperbolic": abx.Hyperbolic(2),
    "Product": abx.Product(abx.SO(3), abx.Euclidean(1)),
}


def plain_fields(weights: Any, d: int, geometry: Any) -> Callable:
    """Smooth fields of a point, without any structure that a fast path could use."""

    def fields(y):
        flat = jnp.concatenate([leaf.reshape(-1) for leaf in jax.tree.leaves(y)])
        inner = jnp.sin(weights[:, :, : flat.size] @ flat)
        return 0.5 * jnp.tanh(inner + weights[:, :, -1])

    return fields


def field_weights(d: int, geometry: Any, seed: int = 3) -> Any:
    return 0.5 * normal(d, geometry.dim, 20, seed=seed)


def network(d: int, geometry: Any) -> Any:
    sizes = [leaf.size for leaf in jax.tree.leaves(geometry.random_point(key=KEY))]
    mlp = M.MLP(sum(sizes), d * geometry.dim, 4, 1, final_activation=jnp.tanh, key=KEY)
    return M.VectorField(mlp, d, geometry.dim)


def field_case(alg: Any, geometry: Any, neural: bool) -> Any:
    """The window field, batched, in the state, the log-signature and the weights."""
    keys = jr.split(KEY, 2)
    points = jax.vmap(lambda k: geometry.random_point(key=k))(keys)
    lam = 0.3 * normal(2, alg.primitive_size, seed=4)
    if neural:
        start: Any = network(alg.dim, geometry)
        make = lambda net: net  # noqa: E731
    else:
        start = field_weights(alg.dim, geometry)
        make = lambda w: plain_fields(w, alg.dim, geometry)  # noqa: E731

    def run(weights, points, lam):
        return jax.vmap(abx.lift(make(weights), alg, geometry))(points, lam)

    return value_and_gradient(run, start, points, lam)


for _place, _geometry in GEOMETRIES.items():
    for _name, _kind in ALGEBRAS.items():
        if _name == "GrossmanLarson" and _place != "Euclidean":
            continue
        for _depth in (2, 3):
            case(f"field {_place} {_name}(2,{_depth})")(
                ft.partial(field_case, _kind(2, _depth), _geometry, _depth == 2)
            )
case("field SO Shuffle(2,3) neural")(
    ft.partial(field_case, abx.Shuffle(2, 3), abx.SO(3), True)
)
case("field Euclidean Ito(2,3) neural")(
    ft.partial(field_case, abx.Ito(2, 3), abx.Euclidean(3), True)
)
case("field Sphere Shuffle(2,4)")(
    ft.partial(field_case, abx.Shuffle(2, 4), abx.Sphere(2), False)
)


def solve_case(alg: Any, geometry: Any, **options: Any) -> Any:
    """A solve in the path, the initial state and the weights of plain fields."""
    times = 9
    ts = jnp.linspace(0.0, 1.0, times)
    y0 = geometry.random_point(key=KEY)
    ito = isinstance(alg, abx.Ito)

    def run(weights, xs, steps, y0):
        control = abx.rough_path(ts, xs, alg, window=4, brackets=steps if ito else None)
        fields = plain_fields(weights, alg.dim, geometry)
        solution = abx.solve(fields, y0, control, geometry=geometry, **options)
        return solution.ys

    return value_and_gradient(
        run,
        field_weights(alg.dim, geometry),
        paths(times, alg.dim),
        bracket_steps(times - 1, alg.dim),
        y0,
    )


for _place, _geometry in GEOMETRIES.items():
    case(f"solve {_place} Ito(2,2)")(
        ft.partial(solve_case, abx.Ito(2, 2), _geometry, substeps=2)
    )
_SOLVES: dict[str, tuple[Any, dict[str, Any]]] = {
    "Euclidean Heun": (abx.Euclidean(3), dict(solver=abx.Heun())),
    "Euclidean reversible": (abx.Euclidean(3), dict(adjoint=abx.ReversibleAdjoint())),
    "SO reversible": (abx.SO(3), dict(adjoint=abx.ReversibleAdjoint(), substeps=2)),
    "SO CF4": (abx.SO(3), dict(solver=abx.CF4())),
    "SO CFEES27": (abx.SO(3), dict(solver=abx.CFEES27())),
    "SO RKMK": (abx.SO(3), dict(solver=abx.RKMK())),
    "SO LieEuler": (abx.SO(3), dict(solver=abx.LieEuler(), substeps=2)),
    "SO final": (abx.SO(3), dict(saveat=diffrax.SaveAt(t1=True))),
    "SO times": (
        abx.SO(3),
        dict(saveat=diffrax.SaveAt(ts=jnp.asarray([0.1, 0.5, 0.83]))),
    ),
    "Sphere geodesic": (
        abx.Sphere(2),
        dict(
            saveat=diffrax.SaveAt(ts=jnp.asarray([0.1, 0.6])), interpolation="geodesic"
        ),
    ),
}
for _name, (_geometry, _options) in _SOLVES.items():
    case(f"solve {_name} Shuffle(2,2)")(
        ft.partial(solve_case, abx.Shuffle(2, 2), _geometry, **_options)
    )


@case("solve batched")
def _():
    alg, geometry = abx.Ito(2, 2), abx.SPD(2)
    ts = jnp.linspace(0.0, 1.0, 9)
    y0 = geometry.random_point(key=KEY)

    def run(net, xs):
        def one(x):
            control = abx.rough_path(ts, x, alg, window=4, brackets="realised")
            return abx.solve(net, y0, control, geometry=geometry).ys

        return jax.vmap(one)(xs)

    return value_and_gradient(run, network(2, geometry), paths(3, 9, 2))


for _alg in (abx.Ito(2, 3), abx.MuntheKaasWright(2, 3)):

    @case(f"solve linear {_alg}")
    def _(alg=_alg):
        ts = jnp.linspace(0.0, 1.0, 9)

        def run(a, b, xs, y0):
            control = abx.rough_path(ts, xs, alg, window=4, brackets="realised")
            return abx.solve(abx.LinearFields(a, b), y0, control).ys

        a, b = normal(2, 3, 3, seed=5), normal(2, 3, seed=6)
        return value_and_gradient(run, a, b, paths(9, 2), normal(3, seed=7))


@case("solve linear SO Magnus")
def _():
    alg, geometry = abx.Shuffle(2, 2), abx.SO(3)
    ts, y0 = jnp.linspace(0.0, 1.0, 9), geometry.random_point(key=KEY)

    def run(a, xs):
        skew = a - jnp.swapaxes(a, 1, 2)
        fields = abx.LinearFields(skew, geometry=geometry, side="right")
        control = abx.rough_path(ts, xs, alg, window=4)
        return abx.solve(fields, y0, control, geometry=geometry, solver=abx.Magnus()).ys

    return value_and_gradient(run, normal(2, 3, 3, seed=5), paths(9, 2))


@case("solve MultiIndex(2,3)")
def _():
    ts, alg = jnp.linspace(0.0, 1.0, 9), abx.MultiIndex(2, 3)

    def run(weights, xs):
        control = abx.rough_path(ts, xs, alg, window=4, brackets="realised")
        fields = lambda y: jnp.sin(weights[:, :1] * y[None] + weights[:, 1:])  # noqa: E731
        return abx.solve(fields, jnp.asarray([0.3]), control).ys

    return value_and_gradient(run, normal(2, 2, seed=5), paths(9, 2))


for _place, _calculus in (("Euclidean", "ito"), ("SO", "stratonovich")):

    @case(f"solve SDE {_place}")
    def _(geometry=GEOMETRIES[_place], calculus=_calculus):
        ts, y0 = jnp.linspace(0.0, 1.0, 3), geometry.random_point(key=KEY)

        def run(weights, y0):
            fields = plain_fields(weights, 3, geometry)
            return abx.solve_sde(
                lambda y: fields(y)[0],
                lambda y: fields(y)[1:].T,
                y0,
                ts,
                key=KEY,
                calculus=calculus,
                geometry=geometry,
                paths=2,
                windows=2,
            ).ys

        return value_and_gradient(run, field_weights(3, geometry), y0)


@case("solve adaptive")
def _():
    alg, geometry = abx.Shuffle(2, 2), abx.SO(3)
    ts = jnp.linspace(0.0, 1.0, 9)
    control = abx.dyadic_control(ts, paths(9, 2), alg)
    fields = plain_fields(field_weights(2, geometry), 2, geometry)
    solution = abx.solve_adaptive(
        fields, geometry.random_point(key=KEY), control, geometry=geometry
    )
    return {"value": project(solution.ys), "times": project(solution.ts)}


@case("solve by Diffrax")
def _():
    geometry = abx.SO(3)
    ts = jnp.linspace(0.0, 1.0, 9)
    y0 = geometry.random_point(key=KEY)

    def run(weights, xs):
        control = abx.rough_path(ts, xs, abx.Shuffle(2, 2), window=4)
        term = abx.RoughTerm(
            plain_fields(weights, 2, geometry), control, geometry=geometry
        )
        solution = diffrax.diffeqsolve(
            term,
            abx.LogODE(),
            0.0,
            1.0,
            None,
            y0,
            stepsize_controller=diffrax.StepTo(ts=control.knots),
        )
        return solution.ys

    return value_and_gradient(run, field_weights(2, geometry), paths(9, 2))


# Kernels

X, Y = paths(3, 6, 2, seed=7) / 2, paths(2, 5, 2, seed=8) / 2
KINDS = ("geometric", "ito", "branched", "planar")
_KERNELS: dict[str, dict[str, Any]] = {
    **{f"{kind} depth 3": dict(kind=kind, depth=3) for kind in KINDS},
    **{f"{kind} complete": dict(kind=kind) for kind in KINDS},
    "geometric rbf": dict(static_kernel="rbf"),
    "ito rational-quadratic 3": dict(
        kind="ito", depth=3, static_kernel="rational-quadratic"
    ),
    "branched rbf 3": dict(kind="branched", depth=3, static_kernel="rbf"),
    "planar rbf 2": dict(kind="planar", depth=2, static_kernel="rbf"),
    "series": dict(solver="series"),
    "features": dict(depth=4, method="features"),
    "recursion": dict(depth=4, method="recursion"),
    "trees": dict(kind="branched", depth=3, inner_product="trees"),
    "augmented": dict(depth=3, add_time=True, add_basepoint=True, lead_lag=True),
    "normalised": dict(kind="ito", depth=3, normalise=True, scale=0.7),
}
for _name, _options in _KERNELS.items():
    case(f"gram {_name}")(
        ft.partial(
            value_and_gradient,
            lambda x, y, o=_options: abx.signature_gram(x, y, **o),
            X,
            Y,
        )
    )
for _kind in KINDS[1:]:
    case(f"gram {_kind} brackets")(
        ft.partial(
            value_and_gradient,
            lambda x, y, a, b, k=_kind: abx.signature_gram(
                x, y, k, 3, brackets_x=a, brackets_y=b
            ),
            X,
            Y,
            bracket_steps(3, 5, 2),
            bracket_steps(2, 4, 2),
        )
    )


def halved(x: Any) -> Any:
    """The path with the middle of each segment."""
    middle = (x[:, 1:] + x[:, :-1]) / 2
    pairs = jnp.stack([x[:, :-1], middle], axis=2)
    return jnp.concatenate([pairs.reshape(len(x), -1, x.shape[-1]), x[:, -1:]], axis=1)


case("gram refined")(
    ft.partial(
        value_and_gradient,
        lambda x, y: abx.signature_gram(halved(x), halved(y)),
        X,
        Y,
    )
)


@case("gram symmetric")
def _():
    def run(x):
        return abx.signature_gram(x), abx.signature_gram(x, None, "branched", 3)

    return value_and_gradient(run, X)


@case("kernel of pairs")
def _():
    options: dict[str, Any] = dict(static_kernel=abx.RBFKernel(0.8))
    return value_and_gradient(
        lambda x, y: abx.signature_kernel(x, y, "geometric", **options), X[:2], Y
    )


@case("distances of laws")
def _():
    linear = abx.SignatureKernel("branched", 3)
    rbf = abx.SignatureKernel("geometric", static_kernel="rbf")

    def run(x, y):
        return (
            abx.mmd(x, y, linear),
            abx.mmd(x, y, linear, unbiased=False),
            abx.mmd(x, y, rbf),
            abx.signature_score(x, y, rbf),
            abx.expected_signature(x, 3),
            abx.expected_signature(x, 3, martingale=True),
        )

    return value_and_gradient(run, paths(5, 6, 2), paths(4, 6, 2, seed=1))


@case("two-sample test")
def _():
    kernel = abx.SignatureKernel("geometric", 3)
    found = abx.two_sample_test(
        paths(6, 5, 2), paths(5, 5, 2, seed=1), kernel, key=KEY, permutations=20
    )
    return {"value": project(found.statistic), "permuted": project(found.permuted)}


for _kind in ("geometric", "ito", "branched"):

    @case(f"random Fourier features {_kind}")
    def _(kind=_kind):
        kernel = abx.RandomFourierSignature(2, key=KEY, kind=kind, features=5)
        fitted = kernel.fit(paths(8, 6, 2, seed=1))
        target = abx.embed(paths(8, 6, 2, seed=2), fitted)

        def run(x):
            return kernel.features(x), fitted.features(x), abx.mmd(x, target, fitted)

        return value_and_gradient(run, X)


# Models

SMALL: dict[str, Any] = dict(hidden=4, width=5, depth=1)
WINDOWED: dict[str, Any] = dict(window=4, **SMALL)
_MODELS: dict[str, Callable[[], Any]] = {
    "BNRDE vector": lambda: M.BNRDE(abx.GrossmanLarson(3, 2), 2, **WINDOWED, key=KEY),
    "BNRDE depth 3": lambda: M.BNRDE(abx.Ito(2, 3), 1, **WINDOWED, key=KEY),
    "BNRDE SO": lambda: M.BNRDE(
        abx.MuntheKaasWright(2, 2), geometry=abx.SO(3), window=4, width=5, key=KEY
    ),
    "BNRDE SPD": lambda: M.BNRDE(
        abx.Ito(2, 2), geometry=abx.SPD(2), window=4, width=5, key=KEY
    ),
    "BNRDE log-ode": lambda: M.BNRDE(
        abx.Shuffle(2, 2), 1, interpolation="log-ode", **WINDOWED, key=KEY
    ),
    "BNRDE joined": lambda: M.BNRDE(
        abx.Shuffle(2, 2),
        abx.SO(3),
        interpolation="linear",
        basepoint=False,
        **WINDOWED,
        key=KEY,
    ),
    "LogNCDE": lambda: M.LogNCDE(2, 1, **WINDOWED, key=KEY),
    "NRDE": lambda: M.NRDE(2, 1, **WINDOWED, key=KEY),
    "NCDE": lambda: M.NCDE(2, 1, **SMALL, key=KEY),
    "NCDEpp": lambda: M.NCDEpp(2, abx.SO(3), **SMALL, key=KEY),
    "GRU": lambda: M.GRU(2, abx.SPD(2), hidden=4, width=5, key=KEY),
    "XLSTM": lambda: M.XLSTM(2, 1, size=4, heads=2, chunk=4, key=KEY),
    "StackedXLSTM": lambda: M.XLSTM(2, 1, size=4, heads=2, layers=2, chunk=4, key=KEY),
    "LinearBNRDE block": lambda: M.LinearBNRDE(
        abx.Ito(2, 2), 1, hidden=4, block=2, layers=2, window=4, key=KEY
    ),
    "LinearBNRDE dense": lambda: M.LinearBNRDE(
        abx.MuntheKaasWright(2, 3), abx.SO(3), hidden=4, structure="dense", key=KEY
    ),
    "LinearBNRDE diagonal": lambda: M.LinearBNRDE(
        abx.Shuffle(2, 2),
        1,
        hidden=4,
        structure="diagonal",
        contractive=True,
        mode="associative",
        window=2,
        key=KEY,
    ),
    "LinearBNRDE low-rank": lambda: M.LinearBNRDE(
        abx.Ito(2, 2), 1, hidden=4, structure="low-rank", rank=1, window=4, key=KEY
    ),
    "Reservoir": lambda: M.Reservoir(
        abx.Ito(2, 2), 1, hidden=4, block=2, memory=(0.1, 1.0), window=2, key=KEY
    ),
    "Reservoir tanh": lambda: M.Reservoir(
        abx.GrossmanLarson(2, 2), 1, hidden=4, activation=jnp.tanh, window=4, key=KEY
    ),
}


def moved(model: Any) -> Any:
    """The model with other weights, so that nothing that begins at zero is missed."""

    def move(leaf):
        waves = np.cos(1.0 + np.arange(leaf.size)).reshape(leaf.shape)
        return leaf + jnp.asarray(0.1 * waves, leaf.dtype)

    arrays, rest = eqx.partition(model, eqx.is_inexact_array)
    return eqx.combine(jax.tree.map(move, arrays), rest)


def model_case(make: Callable) -> Any:
    model = moved(make())
    ts = jnp.linspace(0.1, 1.0, 10)
    driver = paths(10, model.channels)
    steps = None
    if model.calculus == "ito":
        steps = bracket_steps(9, model.channels)

    def run(model, xs, steps):
        return model(abx.SampledPath(ts, xs, brackets=steps))

    return value_and_gradient(run, model, driver, steps)


for _name, _make in _MODELS.items():
    case(f"model {_name}")(ft.partial(model_case, _make))


def rotations(times: int) -> tuple[Any, Any]:
    ts = jnp.linspace(0.0, 1.0, times)
    start = abx.SO(3).random_point(key=KEY)
    along = jnp.stack([jnp.sin(2 * ts), ts, ts**2], axis=1)
    return ts, jax.vmap(lambda u: abx.SO(3).exp(start, u))(along)


def _mlp_front() -> Any:
    return R.MLPExtrapolator(6, key=KEY)


_ROTATION_MODELS: dict[str, Callable[[], Any]] = {
    "Hold": R.Hold,
    "ConstantVelocity": R.ConstantVelocity,
    "Linear": R.Linear,
    "Hermite": R.Hermite,
    "SavitzkyGolay": lambda: R.SavitzkyGolay(2, knots=6, key=KEY),
    "MLPExtrapolator": _mlp_front,
    "RotationForecaster": lambda: R.RotationForecaster(
        _mlp_front(), M.GRU(7, 3, hidden=4, width=5, key=KEY)
    ),
    "SavitzkyGolayNCDE": lambda: R.SavitzkyGolayNCDE(
        **SMALL, solver=abx.Heun(), key=KEY
    ),
    "FilterBank": lambda: R.FilterBank(bodies=R.BODIES, learned=True),
}


def rotation_case(make: Callable) -> Any:
    ts, truth = rotations(9)
    model = moved(make())
    mask = jnp.asarray([True, True, True, False, True, True])

    def run(model, seen):
        return model(ts[:6], seen, ts, mask)

    return value_and_gradient(run, model, truth[:6])


for _name, _make in _ROTATION_MODELS.items():
    case(f"rotation {_name}")(ft.partial(rotation_case, _make))


@case("model MNODE")
def _():
    ts, truth = rotations(12)
    xs = jnp.concatenate([ts[:, None], truth.reshape(12, 9)], axis=1)
    heun: dict[str, Any] = dict(solver=abx.Heun(), key=KEY)
    model = moved(M.MNODE(width=5, depth=1, substeps=1, **heun))

    def run(model, xs):
        return model(abx.SampledPath(ts, xs))

    return value_and_gradient(run, model, xs)


# Training


@case("training")
def _():
    model = M.BNRDE(abx.Ito(2, 2), 1, **WINDOWED, brackets="realised", key=KEY)
    ts = jnp.linspace(0.0, 1.0, 9)
    xs = paths(12, 9, 2)
    target = jnp.cumsum(xs[..., :1] ** 2, axis=1)

    def objective(model, batch, key):
        x, y = batch
        return jnp.mean((model.predict(abx.SampledPath(ts, x)) - y) ** 2)

    fitted = abx.fit(
        model,
        (xs, target),
        objective,
        key=KEY,
        steps=20,
        batch_size=4,
        learning_rate=1e-2,
        progress=False,
    )
    weights = jax.tree.leaves(eqx.filter(fitted.last, eqx.is_inexact_array))
    return {
        "loss": fitted.history.loss,
        "weights": sum(sorted(project(leaf) for leaf in weights), []),
    }


def main(parts: list[str]) -> None:
    """Computes all cases, or those whose names contain one of `parts`, and writes the
    file; other numbers in it are kept."""
    chosen = [n for n in CASES if not parts or any(part in n for part in parts)]
    stored = json.loads(FILE.read_text(encoding="utf-8")) if parts else {}
    for name in chosen:
        print(name, flush=True)
        found = numbers(name)
        assert all(np.isfinite(values).all() for values in found.values()), name
        stored |= found
    order = {name: place for place, name in enumerate(CASES)}
    lines = [
        f"{json.dumps(part)}: {json.dumps(stored[part])}"
        for part in sorted(stored, key=lambda part: order[part.rsplit(": ", 1)[0]])
    ]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Every public function of arrays under every transform of JAX: one table.

`TABLE` is the single source. A row is a function of one array and a point to try it at;
what does not hold stands in the row, with the reason. `docs/transforms.md` is made from
it: `python tests/test_transforms.py` writes the page.
"""

import functools as ft
import importlib.util
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec as P

import arborax as abx


COLUMNS = (
    "jit",
    "vmap",
    "grad",
    "jvp",
    "linearize",
    "reverse over reverse",
    "checkpoint",
    "scan",
    "shard_map",
    "export",
)
PAGE = pathlib.Path(__file__).parents[1] / "docs" / "transforms.md"
KEY = jr.PRNGKey(0)
RNG = np.random.default_rng(0)
TS = np.linspace(0.0, 1.0, 5)
KNOTS = np.array([0.0, 0.4, 1.0])
PATH = 0.4 * RNG.normal(size=(5, 2))
LONG = 0.05 * RNG.normal(size=(300, 2))
POINT = 0.3 * RNG.normal(size=3)
OTHER = 0.4 * RNG.normal(size=(2, 4, 2))
BATCH = 0.4 * RNG.normal(size=(2, 5, 2))


class Row(NamedTuple):
    """A function of one array, where to try it, and the columns it does without."""

    group: str
    name: str
    function: Callable[[Any], Any]
    at: Any
    without: dict[str, str] = {}
    slow: bool = False  # a second row of a function, or one of many alike

    def __str__(self):
        return f"{self.group}-{self.name}".replace(" ", "-")


def without(reason: str, *columns: str) -> dict[str, str]:
    return dict.fromkeys(columns, reason)


SH2, SH3, ITO = abx.Shuffle(2, 2), abx.Shuffle(2, 3), abx.Ito(2, 2)
GL, MKW = abx.GrossmanLarson(2, 3), abx.MuntheKaasWright(2, 2)


def once(make):
    """What `make` returns, computed when it is first needed, outside of any trace."""

    @ft.cache
    def made(*args):
        with jax.ensure_compile_time_eval():
            return make(*args)

    return made


@once
def start(space):
    return space.random_point(key=KEY, dtype=jnp.float64)


def element(alg, size="size"):
    return 0.3 * np.random.default_rng(1).normal(size=getattr(alg, size))


def algebra_rows():
    a, primitive = element(GL), element(GL, "primitive_size")
    full = {
        "product": (lambda x: GL.product(x, 1.5 * x), a),
        "exp": (GL.exp, a),
        "log": (GL.log, a),
        "antipode": (GL.antipode, a),
        "to_primitive": (GL.to_primitive, a),
        "from_primitive": (GL.from_primitive, primitive),
    }
    for name, (function, at) in full.items():
        yield Row("algebra", name, function, at)


def signature_rows():
    def row(name, function, at=PATH, **kw):
        return Row("signatures", name, function, at, **kw)

    yield row("signature (Shuffle, depth 2)", lambda x: abx.signature(x, SH2))
    yield row("signature (Ito)", lambda x: abx.signature(x, abx.Ito(2, 3), "realised"))
    yield row("signature (left-point)", lambda x: abx.signature(x, GL, "left-point"))
    yield row("signature (300 points)", lambda x: abx.signature(x, SH3), LONG)
    yield row("log_signature (Shuffle)", lambda x: abx.log_signature(x, SH3))
    yield row(
        "log_signature (MuntheKaasWright)",
        lambda x: abx.log_signature(x, MKW, "realised"),
    )
    for alg in (abx.BranchedWords(2, 3), abx.MultiIndex(2, 3)):
        left = lambda x, alg=alg: abx.log_signature(x, alg, "left-point")  # noqa: E731
        yield row(f"log_signature ({type(alg).__name__})", left, slow=True)
    yield row(
        "selected_signature",
        lambda x: abx.selected_signature(x, [(0, 1), (1, 0, 0)], SH3),
    )
    yield row("combine", lambda x: abx.combine(x, 0.5 * x, GL), element(GL))
    yield row("expanding_signature", lambda x: abx.expanding_signature(x, SH2))
    yield row(
        "expanding_log_signature",
        lambda x: abx.expanding_log_signature(x, ITO, "realised"),
    )
    yield row(
        "SignatureTree.log_signature",
        lambda x: abx.signature_tree(abx.rough_path(TS, x, SH2)).log_signature(
            0.1, 0.7
        ),
        slow=True,
    )
    yield row(
        "SignatureTree.signature",
        lambda x: abx.signature_tree(
            abx.rough_path(TS, x, ITO, window=2, brackets="realised")
        ).signature(0.1, 0.7),
        slow=True,
    )
    before = jnp.asarray(element(SH2))
    yield row("extend_signature", lambda x: abx.extend_signature(before, x, SH2))
    yield row("windowed_signature", lambda x: abx.windowed_signature(x, SH2, 2))
    yield row(
        "windowed_log_signature",
        lambda x: abx.windowed_log_signature(x, ITO, 2, "realised"),
    )
    steps = 0.3 * RNG.normal(size=(4, SH2.primitive_size))
    yield row(
        "signature_from_increments",
        lambda x: abx.signature_from_increments(x, SH2),
        steps,
    )
    yield row(
        "rough_path (window)",
        lambda x: abx.rough_path(TS, x, ITO, window=2, brackets="realised"),
    )
    cut = lambda x: abx.rough_path(TS, x, SH2, KNOTS)  # noqa: E731
    yield row("rough_path (knots)", cut, slow=True)
    areas = 0.1 * RNG.normal(size=(4, 1))
    yield row(
        "rough_path_from_areas",
        lambda x: abx.rough_path_from_areas(TS, x, areas, SH3, variances=x**2),
        PATH[1:],
    )
    yield row(
        "RoughPath.log_signature",
        lambda x: abx.rough_path(TS, x, SH2, KNOTS).log_signature(0.1, 0.3),
    )


def path_rows():
    def row(name, function, at=PATH, extra={}):
        return Row("paths", name, function, at, extra)

    sampled = lambda x: abx.SampledPath(TS, x)  # noqa: E731
    by_time = ft.partial(abx.windows_by_time, max_points=5)
    yield row("SampledPath.filled", lambda x: sampled(x).filled())
    holes = np.ones((5, 2), bool)
    holes[1, 0] = holes[3, 1] = False
    yield row("fill_missing", lambda x: abx.fill_missing(TS, x, holes))
    yield row(
        "SampledPath.realised_brackets",
        lambda x: [
            abx.SampledPath(TS, x, holes).realised_brackets(kind)
            for kind in ("previous-tick", "hayashi-yoshida")
        ],
    )
    yield row(
        "merge_channels, SampledPath.from_list, from_channels, from_dataframe",
        lambda x: abx.merge_channels([TS, TS], [x[:, 0], x[:, 1]]),
        extra=without("samples are sorted and stacked on the host", *COLUMNS),
    )
    yield row("add_time", lambda x: abx.add_time(sampled(x)))
    yield row("add_basepoint", lambda x: abx.add_basepoint(sampled(x)))
    yield row("lead_lag", lambda x: abx.lead_lag(sampled(x)))
    yield row("rectilinear", lambda x: abx.rectilinear(sampled(x)))
    yield row("windows_by_points", lambda x: abx.windows_by_points(sampled(x), 2))
    yield row("windows_by_time", lambda x: by_time(sampled(x), KNOTS))
    at = np.array([0.1, 0.5, 0.93])
    kinds = abx.LinearInterpolation, abx.HermiteInterpolation
    for kind in (*kinds, abx.RectilinearInterpolation):
        yield row(
            f"{kind.__name__}", lambda x, kind=kind: kind(TS, x).evaluate(jnp.array(at))
        )
    yield row("brownian", lambda ts: abx.brownian(ts, 2, key=KEY), TS)
    yield row("brownian_brackets", lambda ts: abx.brownian_brackets(ts, 2), TS)
    yield row("brownian_areas", lambda ts: abx.brownian_areas(ts, 2, key=KEY), TS)
    variance = dict(kappa=1.0, theta=0.1, sigma=0.3, rho=-0.5, key=KEY)
    yield row(
        "square_root_driver",
        lambda v: abx.square_root_driver(TS, v[0], shape=2, **variance),
        np.array([0.1]),
    )
    yield row(
        "interpolate",
        lambda x: abx.interpolate(abx.SampledPath(TS, x, lengths=4)).derivative(at),
    )
    draws = RNG.normal(size=(4, 2))
    yield row(
        "riemann_liouville",
        lambda x: abx.riemann_liouville(4, 0.3, dim=2, increments=x, key=KEY)[0],
        draws,
    )


def geometry_rows():
    spaces = {
        "Euclidean": abx.Euclidean(3),
        "SO(3)": abx.SO(3),
        "SO(4)": abx.SO(4),
        "SE": abx.SE(3),
        "SPD(2)": abx.SPD(2),
        "SPD(3)": abx.SPD(3),
        "SPD(2), root frame": abx.SPD(2, "root"),
        "Sphere": abx.Sphere(2),
        "Hyperbolic": abx.Hyperbolic(2),
        "Product": abx.Product(abx.SO(3), abx.Euclidean(1)),
    }
    for name, space in spaces.items():

        def everything(u, space=space):
            """Exponential, logarithm, frame and action."""
            z = space.exp(start(space), u)
            log = space.log(start(space), z)
            return log, space.frame(z, u), space.act(space.generator(z, u), z)

        at = 0.3 * np.random.default_rng(2).normal(size=space.dim)
        slow = name not in ("Euclidean", "SO(3)", "SPD(2)", "Sphere")
        yield Row("geometry", name, everything, at, slow=slow)
    yield Row("heads", "gram_schmidt_6d", abx.gram_schmidt_6d, RNG.normal(size=6))
    near = np.eye(3) + 0.3 * RNG.normal(size=(3, 3))
    yield Row("heads", "project_rotation", abx.project_rotation, near)
    triangle = np.array([0.2, 0.1, 0.4, -0.3, 0.2, -0.1])
    yield Row("heads", "spd_from_vech", abx.spd_from_vech, triangle)
    yield Row("heads", "vech, unvech", lambda v: abx.vech(abx.unvech(v)), triangle)

    def functions(v):
        p = abx.geometry.expm(abx.unvech(v))
        low, root = abx.geometry.cholesky(p), abx.geometry.sqrtm(p)
        half = abx.geometry.lyapunov(root, abx.unvech(v))
        return low, root, half, abx.geometry.logm(p)

    yield Row("heads", "expm, logm, sqrtm, cholesky, lyapunov", functions, triangle)
    clipped = lambda v: abx.geometry.clip_spectrum(abx.unvech(v), -0.1, 0.3)  # noqa: E731
    yield Row("heads", "clip_spectrum", clipped, triangle)


def solve_rows():
    def fields(y, dim=3):
        rates = jnp.cos(jnp.arange(2.0 * dim)).reshape(2, dim) / 2
        return rates * (1 + jnp.sin(jnp.sum(y)))

    def row(name, alg, space, brackets=None, extra={}, slow=False, **kw):
        def function(x):
            control = abx.rough_path(TS, x, alg, window=2, brackets=brackets)
            driving = ft.partial(fields, dim=space.dim)
            return abx.solve(driving, start(space), control, geometry=space, **kw).ys

        return Row("solve", name, function, PATH, extra, slow)

    yield row("Euclidean, Shuffle, depth 2", SH2, abx.Euclidean(3))
    yield row("SO(3), Itô", ITO, abx.SO(3), "realised")
    scalar, words = abx.MultiIndex(2, 3), abx.BranchedWords(2, 3)
    yield row("scalar, MultiIndex", scalar, abx.Euclidean(1), "left-point", slow=True)
    yield row("BranchedWords", words, abx.Euclidean(3), "left-point", slow=True)
    yield row("SO(3), Shuffle, depth 3", SH3, abx.SO(3), slow=True)
    yield row("SPD(3), depth 1", abx.Shuffle(2, 1), abx.SPD(3))
    rkmk = abx.RKMK()
    yield row("SO(3), Itô, RKMK", ITO, abx.SO(3), "realised", slow=True, solver=rkmk)
    yield row("SPD(2), Itô", ITO, abx.SPD(2), "realised", slow=True)
    yield row(
        "SO(3), MuntheKaasWright, CF4",
        MKW,
        abx.SO(3),
        solver=abx.CF4(),
        slow=True,
    )
    yield row(
        "states between knots",
        SH2,
        abx.Euclidean(3),
        solver=abx.Heun(),
        saveat=diffrax.SaveAt(ts=jnp.array([0.1, 0.7])),
    )

    def evaluate(x):
        control = abx.rough_path(TS, x, SH2, window=2)
        return abx.solve(fields, jnp.zeros(3), control).evaluate(jnp.array([0.1, 0.7]))

    yield Row("solve", "Solution.evaluate", evaluate, PATH)

    def with_args(rates):
        driven = lambda t, y, args: fields(y) * args["rates"][None]  # noqa: E731
        control = abx.rough_path(TS, jnp.asarray(PATH), SH2, window=2)
        return abx.solve(driven, jnp.zeros(3), control, args={"rates": rates}).ys

    yield Row("solve", "args of the fields", with_args, POINT)

    def linear(x):
        matrices = jnp.cos(jnp.arange(18.0)).reshape(2, 3, 3)
        control = abx.rough_path(TS, x, ITO, window=2, brackets="realised")
        sol = abx.solve(abx.LinearFields(matrices), jnp.ones(3), control)
        return sol.ys, sol.evaluate(jnp.array([0.1, 0.7]))

    yield Row("solve", "LinearFields, Magnus", linear, PATH)

    def bridge(x):
        term = abx.RoughTerm(fields, abx.rough_path(TS, x, SH2), abx.SO(3))
        options = dict(stepsize_controller=diffrax.StepTo(jnp.asarray(TS)))
        forward = dict(adjoint=diffrax.DirectAdjoint(), throw=False)
        return diffrax.diffeqsolve(
            term, abx.LogODE(), 0.0, 1.0, None, jnp.eye(3), **options, **forward
        ).ys

    diffrax_own = without("Diffrax checks its steps on the host", "shard_map", "export")
    name = "RoughTerm, LogODE (Diffrax)"
    yield Row("solve", name, bridge, PATH, diffrax_own, slow=True)
    first_order = "the reversible adjoint has reverse mode of first order only"
    yield row(
        "reversible adjoint",
        SH2,
        abx.SO(3),
        adjoint=abx.ReversibleAdjoint(),
        substeps=8,  # it steps back with an error of order five
        extra=without(first_order, "jvp", "linearize", "reverse over reverse"),
    )

    def simulated(y):
        sde = lambda y: 0.3 * jnp.sin(fields(y, 2).T)  # noqa: E731
        options = dict(key=KEY, paths=20, chunk=16)
        return abx.solve_sde(lambda y: -y[:2], sde, y[:2], TS[:3], **options).ys

    yield Row("solve", "solve_sde", simulated, POINT)

    def simulated_on_so3(rates):
        turn = lambda t, y, args: args * (1 + jnp.sin(y @ args))  # noqa: E731
        noise = lambda t, y, args: 0.3 * jnp.cos(y) * args[:, None]  # noqa: E731
        options = dict(key=KEY, args=rates, geometry=abx.SO(3), paths=2)
        return abx.solve_sde(turn, noise, jnp.eye(3), TS[:2], **options).ys

    def weakly(y):
        sde = lambda y: 0.3 * jnp.sin(fields(y, 2).T)  # noqa: E731
        options = dict(key=KEY, paths=4, weak_order=2, antithetic=True)
        options["calculus"] = "stratonovich"
        return abx.solve_sde(lambda y: -y[:2], sde, y[:2], TS[:2], **options).ys

    yield Row("solve", "solve_sde (args, SO(3))", simulated_on_so3, POINT, slow=True)
    yield Row("solve", "solve_sde (weak order 2)", weakly, POINT, slow=True)
    host = "windows are chosen on the host, from the values"
    control = once(lambda: abx.dyadic_control(TS, PATH, SH2))
    yield Row(
        "solve",
        "solve_adaptive",
        lambda y: (
            abx.solve_adaptive(fields, y, control(), geometry=abx.Euclidean(3)).ys
        ),
        POINT,
        without(host, *COLUMNS),
    )
    yield Row(
        "solve",
        "dyadic_control",
        lambda x: abx.dyadic_control(TS, x, SH2).levels,
        PATH,
        without("the time span is cut on the host", *COLUMNS),
    )
    field = abx.lift(fields, ITO, abx.SO(3))
    lam = jnp.asarray(element(ITO, "primitive_size"))
    turn = lambda u: abx.SO(3).exp(jnp.eye(3), u)  # noqa: E731
    yield Row("solve", "lift", lambda u: field(turn(u), lam), POINT)
    each = abx.lifted_fields(fields, ITO, abx.SO(3))
    yield Row("solve", "lifted_fields", lambda u: each(turn(u)), POINT, slow=True)
    jet = abx.lift(ft.partial(fields, dim=1), scalar, abx.Euclidean(1))
    weights = jnp.asarray(element(scalar, "primitive_size"))
    yield Row("solve", "lift (MultiIndex)", lambda y: jet(y, weights), POINT[:1])


def kernel_rows():
    def row(name, function, at=BATCH, extra={}, slow=False):
        return Row("kernels", name, function, at, extra, slow)

    other = jnp.asarray(OTHER)
    gram = lambda **kw: lambda x: abx.signature_gram(x, other, **kw)  # noqa: E731
    rbf = abx.RBFKernel(1.0)
    yield row("signature_kernel", lambda x: abx.signature_kernel(x, other[0]), PATH)
    yield row("signature_gram (geometric)", gram())
    yield row("signature_gram (Itô, RBF)", gram(kind="ito", static_kernel=rbf))
    yield row("signature_gram (branched)", gram(kind="branched", depth=3))
    yield row("signature_gram (planar)", gram(kind="planar", depth=2), slow=True)
    kernel = abx.SignatureKernel(kind="branched", depth=2)
    yield row("mmd", lambda x: abx.mmd(x, other, kernel))
    yield row("signature_score", lambda x: abx.signature_score(x, other[0:1], kernel))
    yield row("expected_signature", lambda x: abx.expected_signature(x, 3))
    random = once(lambda: abx.RandomFourierSignature(2, key=KEY, features=3, levels=2))
    yield row("RandomFourierSignature", lambda x: random().features(x))
    trees = once(
        lambda: abx.RandomFourierSignature(2, kind="branched", key=KEY, features=3)
    )
    yield row(
        "RandomFourierSignature (branched)",
        lambda x: trees().features(x, brackets="realised"),
        slow=True,
    )
    rational = abx.RationalQuadraticKernel(1.0)
    name = "signature_gram (RationalQuadraticKernel)"
    yield row(name, gram(kind="ito", static_kernel=rational), slow=True)
    name = "signature_gram (CustomKernel)"
    custom = abx.CustomKernel(lambda x, y: jnp.exp(-jnp.sum((x - y) ** 2)))
    yield row(name, gram(kind="ito", static_kernel=custom), slow=True)
    bounded = lambda x: abx.robust_normalisation(x, SH3.weights, bound=1.5)  # noqa: E731
    yield row("robust_normalisation", bounded, 4 * element(SH3))
    constant = without("a constant to derivatives, by contract", *COLUMNS[2:6])
    yield row("embed", lambda x: abx.embed(x, random()).mean, extra=constant)
    yield row(
        "two_sample_test",
        lambda x: abx.two_sample_test(x, other, kernel, key=KEY, permutations=3)[:2],
    )


def model_rows():
    small: dict[str, Any] = dict(
        hidden=3, width=4, depth=1, initial_depth=1, window=2, key=KEY
    )
    model = once(lambda: abx.models.BNRDE(ITO, 1, brackets="realised", **small))
    turning = once(lambda: abx.models.BNRDE(SH2, geometry=abx.SO(3), **small))
    path = lambda x: abx.SampledPath(TS, x)  # noqa: E731
    yield Row("models", "BNRDE", lambda x: model()(path(x)), PATH)
    on_so = lambda x: turning()(path(x))  # noqa: E731
    yield Row("models", "BNRDE on SO(3)", on_so, PATH, slow=True)
    linear = once(
        lambda: abx.models.LinearBNRDE(
            ITO, 1, hidden=4, window=2, brackets="realised", key=KEY
        )
    )
    yield Row("models", "LinearBNRDE", lambda x: linear()(path(x)), PATH)
    reservoir = once(
        lambda: abx.models.Reservoir(
            ITO, 2, hidden=4, window=2, memory=(0.1, 1.0), brackets="realised", key=KEY
        )
    )
    yield Row("models", "Reservoir", lambda x: reservoir()(path(x)), PATH)

    ahead = abx.SampledPath(TS + 2, PATH)
    forecast = lambda x: turning().forecast(path(x), ahead)  # noqa: E731
    yield Row("models", "forecast", forecast, PATH, slow=True)
    drawn = lambda ts: turning().sample(ts, 2, key=KEY)  # noqa: E731
    yield Row("models", "sample, brownian_driver", drawn, TS, slow=True)
    plain = {key: value for key, value in small.items() if key != "window"}
    others = {
        "NRDE": lambda: abx.models.NRDE(2, 1, **small),
        "LogNCDE": lambda: abx.models.LogNCDE(2, 1, **small),
        "NCDE": lambda: abx.models.NCDE(2, 1, **plain),
        "NCDEpp": lambda: abx.models.NCDEpp(2, 1, **plain),
        "GRU": lambda: abx.models.GRU(2, 1, hidden=3, width=4, key=KEY),
        "XLSTM": lambda: abx.models.XLSTM(2, 1, size=4, heads=2, chunk=2, key=KEY),
    }
    others = {name: once(make) for name, make in others.items()}
    for name, one in others.items():
        out = lambda x, one=one: one()(path(x))  # noqa: E731
        yield Row("models", name, out, PATH, slow=True)

    def stream(x):
        """Outputs of streams, sample by sample."""
        made = [others[name]() for name in ("NRDE", "NCDE", "GRU", "XLSTM")]
        return [follow(model, x) for model in (linear(), turning(), *made)]

    def follow(model, x):
        state, first = model.start(TS[0], x[0])
        samples = jnp.asarray(TS[1:]), x[1:]
        _, rest = jax.lax.scan(lambda s, new: model.update(s, *new), state, samples)
        return first, rest

    yield Row("models", "start, update", stream, PATH, slow=True)


def training_rows():
    def row(name, function, at=BATCH, **kw):
        return Row("training", name, function, at, **kw)

    metrics = abx.training.metrics
    features = once(
        lambda: abx.training.objectives.PathFeatures(
            np.concatenate([BATCH, 2 * BATCH, 0.5 * BATCH]),
            kind="branched",
            features=3,
            cylinders=6,
            stride=2,
        )
    )
    yield row("PathFeatures, squared_distance", lambda x: features().distance(x))
    yield row("path_statistics", metrics.path_statistics, slow=True)
    two = lambda x: (metrics.ks(x, OTHER[:, :1]), metrics.wasserstein1(x, OTHER[:, :1]))  # noqa: E731
    yield row("ks, wasserstein1", two, BATCH[:, :1], slow=True)
    angle = lambda u: metrics.rotation_error(abx.SO(3).exp(jnp.eye(3), u), jnp.eye(3))  # noqa: E731
    yield row("rotation_error, frobenius", angle, POINT)


ROWS = (
    algebra_rows,
    signature_rows,
    path_rows,
    geometry_rows,
    solve_rows,
    kernel_rows,
    model_rows,
    training_rows,
)
TABLE = [row for rows in ROWS for row in rows()]


def arrays(tree):
    return [x for x in jax.tree.leaves(tree) if eqx.is_inexact_array(x)]


def loss(row: Row) -> Callable:
    """A number that every entry of the result moves in its own way."""

    def scalar(x):
        terms = []
        for leaf in arrays(row.function(x)):
            weights = jnp.cos(jnp.arange(leaf.size, dtype=leaf.dtype) + 0.3)
            terms.append(jnp.sum(jnp.sin(leaf.reshape(-1)) * weights))
        return sum(terms[1:], start=terms[0])

    return scalar


def points(row: Row) -> jax.Array:
    """Two points, for a batch."""
    at = jnp.asarray(row.at)
    return jnp.stack([at, 1.05 * at])


@ft.cache
def single(row_id: str) -> Callable:
    """Value and gradient at one point: the reference that others are compared with."""
    return jax.jit(jax.value_and_grad(loss(BY_NAME[row_id])))


BY_NAME = {str(row): row for row in TABLE}
rows = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if row.slow else ())
        for name, row in BY_NAME.items()
    ],
)


def close(got, want, tolerance=1e-9):
    got, want = np.asarray(got), np.asarray(want)
    scale = max(1.0, float(np.max(np.abs(want), initial=0.0)))
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale)


@rows
def test_derivatives(name):
    """grad, jvp, linearize, checkpoint and reverse over reverse, all compiled: against
    central differences of value and gradient."""
    row = BY_NAME[name]
    if "jit" in row.without:
        pytest.skip(row.without["jit"])
    f, x = loss(row), jnp.asarray(row.at)
    v = jnp.cos(jnp.arange(x.size, dtype=x.dtype) + 1).reshape(x.shape) / 4
    step = 1e-5
    _, gradient = single(name)(x)
    if "grad" in row.without:
        return close(gradient, jnp.zeros_like(x))
    (up, gradient_up), (down, gradient_down) = (
        single(name)(x + s * step * v) for s in (1, -1)
    )
    slope, curve = (up - down) / (2 * step), (gradient_up - gradient_down) / (2 * step)
    close(jnp.vdot(gradient, v), slope, 1e-7)
    again = jax.checkpoint(f)
    ways = {
        "jvp": lambda z: jax.jvp(f, (z,), (v,))[1],
        "linearize": lambda z: jax.linearize(f, z)[1](v),
        "reverse over reverse": jax.grad(lambda z: jnp.vdot(jax.grad(again)(z), v)),
    }
    ways = {key: way for key, way in ways.items() if key not in row.without}
    ways = ways or {"checkpoint": lambda z: jnp.vdot(jax.grad(again)(z), v)}
    got = jax.jit(lambda z: {key: way(z) for key, way in ways.items()})(x)
    for key in ways:
        close(got[key], curve if key == "reverse over reverse" else slope, 1e-6)


@rows
def test_vmap_in_scan_is_the_loop(name):
    """vmap and scan: value and gradient of a batch inside a loop."""
    row = BY_NAME[name]
    if "scan" in row.without:
        pytest.skip(row.without["scan"])
    xs, scales = points(row), jnp.array([1.0, 0.9])

    def total(xs):
        def body(carry, s):
            return carry + jnp.sum(jax.vmap(loss(row))(s * xs)), None

        return jax.lax.scan(body, jnp.zeros(()), scales)[0]

    value, gradient = jax.jit(jax.value_and_grad(total))(xs)
    each = [[single(name)(s * x) for x in xs] for s in scales]
    close(value, sum(one[0] for row in each for one in row))
    want = [sum(s * each[k][i][1] for k, s in enumerate(scales)) for i in range(2)]
    close(gradient, jnp.stack(want))


@rows
def test_shard_map(name):
    """Value and gradient on two devices, with default settings; one factor is the same
    on both, so that its gradient is a sum over devices."""
    row = BY_NAME[name]
    if "shard_map" in row.without:
        pytest.skip(row.without["shard_map"])
    mesh, xs = Mesh(np.array(jax.devices()[:2]), ("i",)), points(row)
    one = jnp.ones(xs.shape[1:])

    @ft.partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("i")), out_specs=P("i"))
    def on_two(factor, xs):
        return jax.vmap(lambda x: loss(row)(factor * x))(xs)

    def total(factor, xs):
        return jnp.sum(on_two(factor, xs))

    value, (shared, own) = jax.jit(jax.value_and_grad(total, (0, 1)))(one, xs)
    each = [single(name)(x) for x in xs]
    close(value, sum(one[0] for one in each))
    close(own, jnp.stack([one[1] for one in each]))
    close(shared, sum(x * one[1] for x, one in zip(xs, each)))


@rows
def test_export(name):
    """Lowered for three platforms at once, with a batch of any size; written, read and
    called."""
    row = BY_NAME[name]
    if "export" in row.without:
        pytest.skip(row.without["export"])
    xs = points(row)
    (size,) = jax.export.symbolic_shape("b")
    shape = jax.ShapeDtypeStruct((size, *xs.shape[1:]), xs.dtype)
    function = jax.jit(jax.vmap(jax.value_and_grad(loss(row))))
    platforms = ("cpu", "cuda", "tpu")
    exported = jax.export.export(function, platforms=platforms)(shape)
    if importlib.util.find_spec("flatbuffers"):  # what JAX writes files with
        exported = jax.export.deserialize(exported.serialize())
    value, gradient = exported.call(xs)
    each = [single(name)(x) for x in xs]
    close(value, jnp.stack([one[0] for one in each]))
    close(gradient, jnp.stack([one[1] for one in each]))


def render() -> str:
    """The table as a page of the documentation."""
    lines = [
        "# Transforms",
        "",
        "Every public function of arrays works under the transforms of JAX. The test",
        "suite runs each cell of these tables, and the page is made from the tests.",
        "",
        "- All cells are compiled (`jit`).",
        "- `grad`, `jvp`, `linearize`, reverse over reverse mode (of a function under",
        "  `checkpoint`): against finite differences.",
        "- `vmap` and `scan`: value and gradient of a batch inside a loop are those of",
        "  its members.",
        "- `shard_map`: value and gradient on two devices, with default settings.",
        "- `export`: value and gradient for cpu, cuda and tpu at once, with a batch of",
        "  symbolic size, written and read back.",
        "",
        "`jax.experimental.jet` is not supported.",
    ]
    notes: list[str] = []
    for group in dict.fromkeys(row.group for row in TABLE):
        lines += ["", f"## {group.capitalize()}", ""]
        lines += ["| | " + " | ".join(COLUMNS) + " |", "|---" * 11 + "|"]
        for row in (row for row in TABLE if row.group == group):
            cells = []
            for column in COLUMNS:
                reason = row.without.get(column)
                if reason is not None and reason not in notes:
                    notes.append(reason)
                number = None if reason is None else notes.index(reason) + 1
                cells.append("yes" if number is None else f"no ({number})")
            lines.append(f"| {row.name} | " + " | ".join(cells) + " |")
    lines += ["", "## Exceptions", ""]
    lines += [f"{k}. {note.capitalize()}." for k, note in enumerate(notes, start=1)]
    return "\n".join(lines) + "\n"


def test_the_page_is_up_to_date():
    """If not: run this file."""
    assert PAGE.read_text() == render()


if __name__ == "__main__":
    PAGE.write_text(render())

"""Wild arguments to solves, geometries, lifts and algebras.

Every call ends in one of three ways: a right answer, a result that says what went wrong
(`throw=False`), or a `ValueError` or `TypeError` that the library itself raised, in
under 300 characters. Values that only flow through arithmetic (elements of an algebra,
frame coordinates) may be NaN where the docstring says that they pass through.

Each input starts from a good call, of which a few arguments are replaced. The number of
inputs tried is printed; see it with `-rP`.
"""

import collections
import pathlib
import traceback

import diffrax
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest
from hypothesis import given, HealthCheck, settings, strategies as st

import arborax as abx
from arborax.geometry._checks import METHODS

from .harness import Control


LIBRARY = str(pathlib.Path(abx.__file__).parent)
SHORT = {"solve": 60, "path": 12, "adaptive": 8, "geometry": 150, "algebra": 150}
LONG = 40  # times as many
SPECIAL = [0.0, 1.0, -1.0, 0.3, 1e-30, 1e30, np.nan, np.inf, -np.inf]
DTYPES = [np.float32, np.float64, np.float16, np.int32, np.bool_, np.complex64]
SHAPES = [(), (0,), (1,), (2,), (3,), (2, 2), (3, 3), (2, 3), (4, 2), (1, 2, 2)]
OTHERS = [None, 0, 1.5, "north", [], [1.0, 2.0], [[1.0], [2.0, 3.0]], {}, (1, 2)]
OTHERS += [object(), np.array(["a"], object), np.datetime64("2020-01-01")]


@st.composite
def anything(draw, shapes=SHAPES):
    """An array of any shape, dtype and value, or something else altogether."""
    if draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(OTHERS))
    shape, dtype = draw(st.sampled_from(shapes)), draw(st.sampled_from(DTYPES))
    size = int(np.prod(shape))
    values = draw(st.lists(st.sampled_from(SPECIAL), min_size=size, max_size=size))
    with np.errstate(all="ignore"):
        array = np.array(values, np.float64).reshape(shape).astype(dtype)
    form = draw(st.sampled_from(["jax", "numpy", "list"]))
    if form == "jax":
        return jnp.asarray(array)
    return array if form == "numpy" else array.tolist()


def spoil(draw, good, wild, most=2):
    """The good arguments with up to `most` of them replaced."""
    count = draw(st.integers(0, most))
    names = draw(st.permutations(sorted(wild)))[:count]
    return {**good, **{name: draw(wild[name]) for name in names}}


def unspoilt(given_, good):
    return all(given_[name] is value for name, value in good.items())


def finite(*values):
    leaves = [x for x in jtu.tree_leaves(values) if np.ndim(x) or np.isscalar(x)]
    return all(np.all(np.isfinite(np.asarray(x, np.complex128))) for x in leaves)


def attempt(call):
    """The value of a call, or `None` if it was refused in the way it should be."""
    try:
        return call()
    except (ValueError, TypeError) as error:
        assert len(str(error)) < 300, str(error)
        innermost = traceback.extract_tb(error.__traceback__)[-1]
        assert innermost.filename.startswith(LIBRARY), innermost
        return None
    except NotImplementedError as error:  # SPD with the frame connection says so
        assert "connection" in str(error)
        return None


# Solves.

POINTS = {
    None: [0.2, -0.4],
    abx.Euclidean(2): [0.2, -0.4],
    abx.SO(3): np.eye(3).tolist(),
    abx.Sphere(1): [1.0, 0.0],
    abx.SPD(2): [[1.0, 0.2], [0.2, 2.0]],
}
DRIVER = np.array([[0.1, -0.2, 0.05], [0.3, 0.1, -0.02], [-0.1, 0.2, 0.01]])


def smooth(y):
    """Two bounded fields on any of the geometries."""
    flat = jnp.sin(jnp.ravel(y))
    n = {2: 2, 9: 3, 4: 3}[flat.size]
    return jnp.stack([flat[:n], flat[-n:] - 0.5])


FIELDS = [
    smooth,
    lambda t, y: smooth(y),
    lambda t, y, args: smooth(y) * jnp.sin(t),
    lambda y: smooth(y)[:1],
    lambda y: smooth(y).T,
    lambda y: list(smooth(y)),
    lambda y: [list(row) for row in smooth(y)],
    lambda y: smooth(y) * jnp.nan,
    lambda y: smooth(y) * 1e300,
    lambda y: smooth(y) > 0,
    lambda y: smooth(y) * 1j,
    lambda y: np.ones((2, 2)),
    lambda y: None,
    lambda: 0,
    lambda t, y, args: smooth(y),
    [lambda y: smooth(y)[0], lambda y: smooth(y)[1]],
    [lambda y: smooth(y)[0], lambda t, y, args: smooth(y)[1]],
    [smooth, smooth],
    [smooth],
    [],
]
SOLVERS = [
    abx.CFEES25(),
    abx.Heun(),
    abx.LieEuler(),
    abx.CF4(),
    diffrax.Tsit5(),
    abx.CF4,
    None,
]
SAVES = [
    diffrax.SaveAt(t1=True),
    diffrax.SaveAt(t0=True, t1=True, steps=2),
    diffrax.SaveAt(dense=True),
    diffrax.SaveAt(ts=[0.1, 1.0, 2.0]),
    diffrax.SaveAt(ts=[0.1, np.nan], t1=True),
    diffrax.SaveAt(ts=[-3, 7]),
    diffrax.SaveAt(ts=jnp.ones((2, 2))),
    diffrax.SaveAt(steps=-1),
    diffrax.SaveAt(),
    None,
]
KNOTS = [(4,), (3,), (1,), (0,), (2, 4)]


@st.composite
def controls(draw):
    """Mostly good ones."""
    good = {
        "alg": abx.Shuffle(2, 2),
        "knots": jnp.array([0.0, 0.5, 1.0, 2.0]),
        "log_signatures": jnp.asarray(DRIVER),
        "calculus": "stratonovich",
    }
    numbers = st.sampled_from([np.float32, np.float64])
    wild = {
        "alg": st.sampled_from([abx.Shuffle(2, 2), abx.Ito(1, 2), abx.Shuffle(3, 1)]),
        "knots": anything(KNOTS).filter(lambda x: hasattr(x, "shape"))
        | numbers.map(lambda d: jnp.array([0.0, 0.5, 2.0, 2.0], d))
        | st.just(1.7e9 + jnp.arange(4) / 8)
        | st.just(jnp.arange(4)),
        "log_signatures": anything([(3, 3), (0, 3), (1, 3, 3), (3, 2)]).filter(
            lambda x: hasattr(x, "shape") and x.dtype.kind == "f"
        ),
        "calculus": st.sampled_from(["ito", "stratonovich", "malliavin"]),
    }
    return Control(**spoil(draw, good, wild, 1))


@st.composite
def solves(draw):
    geometry = draw(st.sampled_from(list(POINTS)))
    good = {
        "fields": smooth,
        "y0": jnp.array(POINTS[geometry]),
        "control": Control(
            abx.Shuffle(2, 2), jnp.array([0.0, 0.5, 1.0, 2.0]), jnp.asarray(DRIVER)
        ),
        "geometry": geometry,
        "solver": abx.CFEES25(),
        "throw": draw(st.booleans()),
    }
    wild = {
        "fields": st.sampled_from(FIELDS) | st.sampled_from(OTHERS),
        "y0": anything() | st.just(jnp.array(POINTS[geometry], jnp.float32)),
        "control": controls() | anything(),
        "geometry": st.sampled_from([abx.SO, "SO(3)", abx.SO(2), abx.Hyperbolic(1)]),
        "solver": st.sampled_from(SOLVERS),
        "saveat": st.sampled_from(SAVES) | st.sampled_from(OTHERS),
        "args": st.sampled_from([1.0, {"rate": jnp.ones(2)}]),
        "interpolation": st.sampled_from(["geodesic", "linear", "cubic", 3]),
        "adjoint": st.sampled_from([abx.ReversibleAdjoint(), "magic", None]),
        "substeps": st.sampled_from([0, 2, -1, 1.5, True, "2"]),
    }
    return spoil(draw, good, wild, 3)


def check_solution(sol, y0, throw):
    """States that are finite, or a result that says why not."""
    success = bool(sol.result == abx.RESULTS.successful)
    assert success or not throw
    assert success == finite(sol.ys) or not success
    assert str(sol.result) and repr(sol.result).startswith("RESULTS.")
    for leaf, first in zip(jtu.tree_leaves(sol.ys), jtu.tree_leaves(y0)):
        assert leaf.shape[0] == sol.ts.shape[0] and leaf.shape[1:] == np.shape(first)
        assert not hasattr(first, "dtype") or leaf.dtype == jnp.asarray(first).dtype


def try_solve(arguments):
    options = dict(arguments)
    args = [options.pop(name) for name in ("fields", "y0", "control")]
    sol = attempt(lambda: abx.solve(*args, **options))
    if sol is not None:
        check_solution(sol, args[1], options["throw"])


@st.composite
def sampled_paths(draw):
    good = {
        "ts": jnp.linspace(0.0, 1.0, 9),
        "xs": jnp.sin(jnp.arange(18.0)).reshape(9, 2),
        "alg": abx.Ito(2, 2),
        "window": 4,
        "brackets": "realised",
    }
    order = np.array([0, 1, 2, 3, 5, 4, 6, 7, 8]) / 8
    wild = {
        "ts": anything([(9,), (8,)])
        | st.sampled_from([order, np.arange(9), 1.7e9 + np.arange(9) / 8]),
        "xs": anything([(9, 2), (9,), (2, 9), (1, 9, 2)])
        | st.sampled_from([1e-30, 1e3, 1e30]).map(lambda s: s * good["xs"]),
        "alg": st.sampled_from(
            [abx.Shuffle(2, 3), abx.MuntheKaasWright(2, 2), abx.Ito(3, 2)]
        ),
        "window": st.sampled_from([1, 3, 8, 100, 0, None]),
    }
    geometry = draw(st.sampled_from([None, abx.SO(3)]))
    return spoil(draw, good, wild), geometry


def try_path(arguments):
    options, geometry = dict(arguments[0]), arguments[1]
    args = [options.pop(name) for name in ("ts", "xs", "alg")]
    if isinstance(args[2], abx.Shuffle):
        options["brackets"] = None
    try:
        control = abx.rough_path(*args, **options)
    except Exception:
        return  # the fuzz of paths looks at these
    y0 = jnp.array(POINTS[geometry])
    for throw in (True, False):
        call = lambda throw=throw: abx.solve(  # noqa: E731
            smooth,
            y0,
            control,
            geometry=geometry,
            saveat=diffrax.SaveAt(ts=control.knots),
            throw=throw,
        )
        sol = attempt(call)
        if sol is not None:
            check_solution(sol, y0, throw)


@st.composite
def adaptive_solves(draw):
    ts = jnp.linspace(0.0, 1.0, 5)
    xs = jnp.sin(jnp.arange(10.0)).reshape(5, 2)
    geometry = abx.Euclidean(2)
    good = {
        "fields": smooth,
        "y0": jnp.array(POINTS[geometry]),
        "control": abx.dyadic_control(ts, xs, abx.Shuffle(2, 2)),
        "geometry": geometry,
        "atol": 0.1,
        "throw": draw(st.booleans()),
    }
    wild = {
        "fields": st.sampled_from(FIELDS),
        "y0": anything(),
        "control": anything(),
        "geometry": st.sampled_from([None, abx.SO(3), "SO(3)"]),
        "solver": st.sampled_from(SOLVERS),
        "atol": st.sampled_from([0.0, -1.0, np.nan, np.inf, 1e-12, "small", None]),
        "max_windows": st.sampled_from([0, 1, 2.5]),
        "substeps": st.sampled_from([0, 2, "2"]),
    }
    return spoil(draw, good, wild)


def try_adaptive(arguments):
    options = dict(arguments)
    args = [options.pop(name) for name in ("fields", "y0", "control")]
    sol = attempt(lambda: abx.solve_adaptive(*args, **options))
    if sol is not None:
        check_solution(sol, args[1], options["throw"])


# Geometries.

GEOMETRIES = [
    abx.Euclidean(2),
    abx.SO(2),
    abx.SO(3),
    abx.SE(3),
    abx.SPD(2),
    abx.SPD(2, "root"),
    abx.SPD(2, connection="frame"),
    abx.Sphere(2),
    abx.Hyperbolic(2),
    abx.Product(abx.SO(2), abx.Euclidean(2)),
]


@st.composite
def method_calls(draw):
    g = draw(st.sampled_from(GEOMETRIES))
    name = draw(st.sampled_from(sorted(METHODS)))
    dtype = draw(st.sampled_from([jnp.float32, jnp.float64]))
    y = g.random_point(key=jr.key(draw(st.integers(0, 3))), dtype=dtype)
    u = draw(st.sampled_from([0.0, 1e-30, 0.3, 2.0])) * jnp.ones(g.dim, dtype)
    values = {
        "point": y,
        "tangent": g.frame(y, u),
        "coordinates": u,
        "generator": g.generator(y, u),
        "matrix": jnp.eye(g.dim, dtype=dtype),
        "key": jr.key(0),
    }
    kinds = METHODS[name]
    good = {str(k): values[kind] for k, kind in enumerate(kinds)}
    shapes = [jnp.shape(x) for x in jtu.tree_leaves(good)] + SHAPES
    wild = {k: anything(shapes) for k in good}
    return g, name, good, spoil(draw, good, wild, 1)


def try_method(arguments):
    g, name, good, given_ = arguments
    method = getattr(g, name)
    if name == "random_point":
        out = attempt(lambda: method(key=given_["0"]))
    else:
        out = attempt(lambda: method(*given_.values()))
    if out is not None and unspoilt(given_, good):
        assert finite(out), (g, name)
    if name == "belongs" and out is not None:
        assert not bool(out) or finite(given_["0"])
        checked = attempt(lambda: g.check_point(given_["0"]))
        assert (checked is not None) == bool(out)
        compiled = jax.jit(g.check_point)(given_["0"])
        assert finite(compiled) == bool(out)


# Algebras and lifts.

ALGEBRAS = [abx.Shuffle(2, 2), abx.Ito(2, 2), abx.GrossmanLarson(1, 3)]
ALGEBRAS += [abx.MuntheKaasWright(2, 2)]
OPERATIONS = {"product": 2, "star": 2, "exp": 1, "log": 1, "antipode": 1}
OPERATIONS |= {"to_primitive": 1, "from_primitive": 1, "lift": 2}


@st.composite
def operations(draw):
    alg = draw(st.sampled_from(ALGEBRAS))
    name = draw(st.sampled_from(sorted(OPERATIONS)))
    primitive = name in ("from_primitive", "lift")
    size = alg.primitive_size if primitive else alg.size
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    make = draw(st.sampled_from([np.asarray, jnp.asarray]))
    good = {
        str(k): make(np.linspace(-0.5, 1.0, size, dtype=dtype) * (k + 1))
        for k in range(OPERATIONS[name])
    }
    if name == "lift":
        good["1"] = jnp.asarray(POINTS[None], dtype)
    shapes = [(size,), (2, size), (3, size), (0, size), (size, size), (size + 1,), ()]
    return alg, name, good, spoil(draw, good, {k: anything(shapes) for k in good})


def try_operation(arguments):
    alg, name, good, given_ = arguments
    values = list(given_.values())
    if name == "lift":
        call = lambda lam, y: abx.lift(smooth, alg, abx.Euclidean(2))(y, lam)  # noqa: E731
        if alg.dim != 2:
            return
    else:
        call = getattr(alg, name)
    out = attempt(lambda: call(*values))
    if out is None:
        return
    if unspoilt(given_, good):
        assert finite(out), (alg, name)
        assert out.dtype == values[0].dtype
    if name == "exp" and finite(values) and np.max(np.abs(values[0]), initial=0) < 2:
        back = alg.log(out)
        tol = 3e-3 if values[0].dtype == np.float16 else 1e-4
        np.testing.assert_allclose(back, values[0], atol=tol)


TARGETS = {
    "solve": (solves(), try_solve),
    "path": (sampled_paths(), try_path),
    "adaptive": (adaptive_solves(), try_adaptive),
    "geometry": (method_calls(), try_method),
    "algebra": (operations(), try_operation),
}


def run(target, examples, **options):
    strategy, check = TARGETS[target]
    counts = collections.Counter()

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        **options,
    )
    @given(strategy)
    def fuzz(arguments):
        counts["inputs"] += 1
        check(arguments)

    with np.errstate(all="ignore"):
        fuzz()
    print(f"{target}: {counts['inputs']} inputs tried")
    assert counts["inputs"] >= min(examples, 5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", TARGETS)
def test_wild_arguments(target, as_users):
    run(target, SHORT[target], derandomize=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", TARGETS)
def test_many_wild_arguments(target, as_users):
    run(target, LONG * SHORT[target])

"""Fuzz: every public function answers any input rightly, or refuses it clearly.

A right answer is finite, and equal to a plain loop where one is at hand. A clear
refusal is a `ValueError` or `TypeError` of under 300 characters that arborax itself
raised, never one of JAX or NumPy. The table `CASES` holds a name, a function of keyword
arguments, and a strategy for each of them (or one for all); rooms add their rows.

Run-time type checks of the tests are off here, and promotion is as users have it.
"""

import traceback
import zlib
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from hypothesis import given, HealthCheck, seed, settings

import arborax as abx


SHORT, LONG = 12, 1000
TRIED = {"answers": 0, "refusals": 0}
RAW = ("jaxpr", "broadcast_in_dim", "dot_general", "Tracer", "XlaRuntime", "ufunc")


# What arrays may look like. Shapes are few, so that programs are compiled once.


def _frame(array: np.ndarray) -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(array.reshape(-1, array.shape[-1]))


SPOIL = {
    "as it is": lambda x: x,
    "nan": lambda x: _with(x, np.nan),
    "inf": lambda x: _with(x, -np.inf),
    "huge": lambda x: x * 1e10,
    "tiny": lambda x: x * 1e-30,
    "half": lambda x: x.astype(np.float16),
    "int": lambda x: x.astype(np.int32),
    "bool": lambda x: x > 0,
    "complex": lambda x: x.astype(np.complex64),
    "text": lambda x: x.astype(str),
    "object": lambda x: x.astype(object),
    "dates": lambda x: x.astype("datetime64[s]"),
    "list": lambda x: x.tolist(),
    "ragged": lambda x: [[0.0], [1.0, 2.0]],
    "frame": lambda x: _frame(x) if x.ndim and x.size else x,
    "none": lambda x: None,
    "empty": lambda x: x[..., :0],
    "scalar": lambda x: 1.5,
    "swapped": lambda x: x.T,
    "jax": lambda x: jnp.asarray(x),
    "extra axis": lambda x: x[None],
    "dict": lambda x: {"x": x},
}
SPOIL_TIMES = SPOIL | {
    "unsorted": lambda t: t[..., ::-1],
    "repeated": lambda t: np.repeat(t[..., :1], t.shape[-1], -1),
    "epoch": lambda t: t + 1.7e9,
    "epoch single": lambda t: (t + 1.7e9).astype(np.float32),
}


def _with(x, value):
    x = np.array(x)
    if x.size:
        x.reshape(-1)[x.size // 2] = value
    return x


def mostly(usual, others):
    """`others` in one case of eight, so that many calls get through."""
    return st.integers(0, 7).flatmap(lambda n: usual if n < 7 else others)


def spoilt(good, table=SPOIL):
    """Mostly good arrays, now and then one of the others."""
    kinds = mostly(st.just("as it is"), st.sampled_from(sorted(table)))
    return st.tuples(good, kinds).map(lambda pair: table[pair[1]](pair[0]))


@st.composite
def arrays(draw, *shape):
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    dtype = draw(st.sampled_from([np.float64, np.float64, np.float32]))
    return rng.normal(size=shape).astype(dtype)


@st.composite
def replaced(draw, good, wild, most=2):
    """A good call, of which up to `most` arguments are replaced by wild ones.

    `good` maps names to values, `wild` maps names to strategies.
    """
    count = draw(st.integers(0, most))
    names = draw(st.permutations(sorted(wild)))[:count]
    return {**good, **{name: draw(wild[name]) for name in names}}


SIZES = st.sampled_from(
    [(4, 2), (4, 2), (1, 2), (2, 4, 2), (4, 1), (4, 3), (0, 2), (2,)]
)
values = spoilt(SIZES.flatmap(lambda shape: arrays(*shape)))
times = spoilt(st.just(np.array([0.0, 0.5, 1.5, 2.0])), SPOIL_TIMES)
knots = spoilt(
    mostly(
        st.sampled_from([[0.0, 2.0], [0.1, 0.2, 1.9]]),
        st.sampled_from([[0.0, 3.0], [1.0], [-1.0, 1.0]]),
    ).map(np.array),
    SPOIL_TIMES,
)
MASK = np.array([[True, False], [False, False], [True, True], [True, False]])
masks = mostly(
    st.sampled_from([None, MASK[:, 0], MASK]),
    st.sampled_from([np.ones((4, 2), int), np.ones(3, bool), "mask"]),
)
lengths = mostly(
    st.sampled_from([None, 3]), st.sampled_from([0, 9, 2.0, np.array([1, 4]), "3"])
)
marks = mostly(st.sampled_from([(), (0,), [1, 0]]), st.sampled_from([(5,), 1, ("a",)]))
counts = mostly(
    st.sampled_from([1, 2, 3]), st.sampled_from([0, -1, 2.0, "2", None, True])
)
keys = mostly(
    st.just(None).map(lambda _: jax.random.key(0)),
    st.sampled_from([0, None, "key", 1.5]),
)
algebras = st.sampled_from(
    [
        abx.Shuffle(2, 2),
        abx.Shuffle(2, 3),
        abx.Ito(2, 2),
        abx.GrossmanLarson(2, 2),
        abx.MuntheKaasWright(2, 2),
        abx.BranchedWords(2, 3),
        abx.MultiIndex(2, 3),
        abx.Shuffle(4, 1),
    ]
)
modes = st.one_of(
    st.sampled_from([None, "realised", "realised", "left-point"]),
    mostly(st.none(), st.sampled_from(["typo", 3.0])),
    spoilt(st.just(np.broadcast_to(np.eye(2), (3, 2, 2)).copy())),
)


def path(ts, xs, mask, lengths, finite_variation):
    return abx.SampledPath(ts, xs, mask, lengths, finite_variation=finite_variation)


PATH = dict(ts=times, xs=values, mask=masks, lengths=lengths, finite_variation=marks)


def on_path(function):
    """A case whose first argument is a path built from raw arrays."""

    def case(**arguments):
        parts = {name: arguments.pop(name) for name in PATH}
        return function(path(**parts), **arguments)

    return case


def either(function):
    """A case whose path is an array or, every other time, a container."""

    def case(container, **arguments):
        parts = {name: arguments.pop(name) for name in PATH}
        first = path(**parts) if container else parts["xs"]
        return function(first, **arguments)

    return case


def selected(container, keys, alg, brackets, **parts):
    """A key of the algebra by its place, or other keys as they are."""
    places = {"first": [0, 1], "last": [-1, 2]}
    if isinstance(keys, str) and keys in places:
        keys = [alg.basis[k] for k in places[keys]]
    first = path(**parts) if container else parts["xs"]
    return abx.selected_signature(first, keys, alg, brackets)


def control(container, ts, xs, alg, knots, brackets, window, s):
    first = (None, path(ts, xs, None, None, ())) if container else (ts, xs)
    out = abx.rough_path(*first, alg, knots, brackets, window=window)
    return out, out.log_signature(out.t0, out.t0 + s, 0)


def query(ts, xs, alg, brackets, s, t):
    """A log-signature over any interval."""
    whole = abx.rough_path(ts, xs, alg, brackets=brackets)
    return abx.signature_tree(whole).log_signature(s, t)


def sde(y0, ts, drift, diffusion, **options):
    """A few paths; `drift` and `diffusion` are factors, or callables of their own."""
    wrapped = [
        f if callable(f) or f is None else (lambda y, f=f: f * y)
        for f in (drift, diffusion)
    ]
    return abx.solve_sde(*wrapped, y0, ts, **options)


def matrix_noise(y):
    return 0.1 * jnp.ones((2, 3))


def wrong_shape(y):
    return jnp.ones((5, 2))


def a_list(y):
    return [1.0, 2.0]


def a_number(y):
    return 0.1


ALGEBRAIC = dict(container=st.booleans(), **PATH, alg=algebras, brackets=modes)


def elements(alg, size, names, lead):
    """Elements of one algebra, with or without leading axes."""
    one = mostly(
        arrays(*lead, size),
        st.sampled_from([(4,), (2, size)]).flatmap(lambda s: arrays(*s)),
    )
    return dict(alg=st.just(alg)) | {name: spoilt(one) for name in names}


def of_an_algebra(names, *, primitive=False, lead=(), **others):
    def rows(alg):
        size = alg.primitive_size if primitive else alg.size
        return st.fixed_dictionaries(elements(alg, size, names, lead) | others)

    return algebras.flatmap(rows)


CASES = [
    ("SampledPath", path, PATH),
    ("filled", on_path(lambda p: (p.filled(), p.dt, p.increments())), PATH),
    ("realised_brackets", on_path(abx.SampledPath.realised_brackets), PATH),
    ("observed_increments", on_path(abx.SampledPath.observed_increments), PATH),
    ("slice", on_path(abx.SampledPath.slice), PATH | dict(start=counts, stop=counts)),
    ("broadcast", on_path(abx.SampledPath.broadcast), PATH),
    ("add_time", on_path(abx.add_time), PATH),
    ("lead_lag", on_path(abx.lead_lag), PATH),
    ("rectilinear", on_path(abx.rectilinear), PATH),
    (
        "add_basepoint",
        on_path(abx.add_basepoint),
        PATH | dict(value=spoilt(arrays(2))),
    ),
    (
        "fill_missing",
        abx.fill_missing,
        dict(
            ts=times,
            xs=values,
            mask=masks,
            method=st.sampled_from(["linear", "forward", "up"]),
        ),
    ),
    (
        "interpolate",
        on_path(
            lambda p, kind, t: (
                abx.interpolate(p, kind).evaluate(t),
                abx.interpolate(p, kind).derivative(t),
            )
        ),
        PATH
        | dict(
            kind=st.sampled_from(["linear", "rectilinear", "hermite", "cubic"]),
            t=spoilt(st.just(np.array([0.3, 2.0]))),
        ),
    ),
    ("windows_by_points", on_path(abx.windows_by_points), PATH | dict(size=counts)),
    (
        "windows_by_time",
        on_path(abx.windows_by_time),
        PATH | dict(knots=knots, max_points=st.sampled_from([None, None, 2, 6, 1.5])),
    ),
    (
        "brownian",
        abx.brownian,
        dict(
            key=keys,
            ts=times,
            dim=counts,
            shape=st.sampled_from([(), (2,), 3, "2", (1.5,)]),
            dtype=st.sampled_from([None, np.float32, np.int32]),
        ),
    ),
    ("brownian_brackets", abx.brownian_brackets, dict(ts=times, dim=counts)),
    (
        "fractional_brownian",
        abx.fractional_brownian,
        dict(
            key=keys,
            num_steps=counts,
            hurst=mostly(
                st.sampled_from([0.3, 0.5]),
                st.sampled_from([0.0, 1.5, np.nan, "h", None]),
            ),
            horizon=mostly(st.just(1.0), st.sampled_from([0.0, np.inf, "1", None])),
        ),
    ),
    (
        "riemann_liouville",
        abx.riemann_liouville,
        dict(
            key=keys,
            num_steps=counts,
            hurst=st.sampled_from([0.3, 0.5, -1.0]),
            increments=st.one_of(st.none(), spoilt(arrays(2, 1))),
        ),
    ),
    ("signature", either(abx.signature), ALGEBRAIC),
    ("log_signature", either(abx.log_signature), ALGEBRAIC),
    ("expanding_signature", either(abx.expanding_signature), ALGEBRAIC),
    ("expanding_log_signature", either(abx.expanding_log_signature), ALGEBRAIC),
    (
        "signature_tree",
        query,
        dict(
            ts=times,
            xs=values,
            alg=algebras,
            brackets=modes,
            s=mostly(st.sampled_from([0.0, 0.3]), st.sampled_from([-1.0, None, "0"])),
            t=mostly(st.sampled_from([0.3, 2.0]), st.sampled_from([0.1, 9.0, np.nan])),
        ),
    ),
    (
        "merge_channels",
        lambda t, x, marks: abx.merge_channels(
            [t, [0.5, 1.0]], [x, [1.0, 2.0]], finite_variation=marks
        ),
        dict(t=times, x=spoilt(arrays(4)), marks=marks),
    ),
    (
        "hayashi_yoshida",
        on_path(lambda p, estimator: p.realised_brackets(estimator)),
        PATH | dict(estimator=mostly(st.just("hayashi-yoshida"), counts)),
    ),
    (
        "windowed_signature",
        either(abx.windowed_signature),
        ALGEBRAIC | dict(window=counts),
    ),
    (
        "windowed_log_signature",
        either(abx.windowed_log_signature),
        ALGEBRAIC | dict(window=counts),
    ),
    (
        "extend_signature",
        either(lambda p, alg, s, brackets: abx.extend_signature(s, p, alg, brackets)),
        of_an_algebra(["s"], container=st.booleans(), **PATH, brackets=modes),
    ),
    ("combine", abx.combine, of_an_algebra(["s", "t"])),
    (
        "signature_from_increments",
        abx.signature_from_increments,
        of_an_algebra(["ell"], primitive=True, lead=(3,)),
    ),
    (
        "rough_path",
        control,
        dict(
            container=st.booleans(),
            ts=times,
            xs=values,
            alg=algebras,
            knots=st.one_of(st.none(), knots),
            brackets=modes,
            window=st.one_of(st.none(), counts),
            s=st.sampled_from([0.0, 0.1]),
        ),
    ),
    (
        "selected_signature",
        selected,
        PATH
        | dict(
            container=st.booleans(),
            keys=mostly(
                st.sampled_from(["first", "last"]),
                st.sampled_from([[], [(0, 5)], [[0, 1]], "01", None, 3, [(0.5,)]]),
            ),
            alg=algebras,
            brackets=modes,
        ),
    ),
    (
        "solve_sde",
        sde,
        dict(
            y0=spoilt(st.just(np.array([1.0, 0.5]))),
            ts=times,
            drift=mostly(
                st.sampled_from([-0.1, a_number]),
                st.sampled_from([None, a_list, wrong_shape, np.nan]),
            ),
            diffusion=mostly(
                st.sampled_from([0.2, matrix_noise]),
                st.sampled_from([None, a_list, a_number, wrong_shape, np.inf]),
            ),
            key=keys,
            calculus=mostly(st.sampled_from(["ito", "stratonovich"]), st.just("typo")),
            paths=mostly(st.sampled_from([None, 4]), counts),
            windows=counts,
            levy_area=mostly(st.sampled_from(["foster", "davie", None]), st.just("x")),
            weak_order=mostly(st.just(1), counts),
            antithetic=mostly(st.just(False), st.sampled_from([True, 1, "yes"])),
            chunk=mostly(st.none(), counts),
        ),
    ),
    (
        "brownian_areas",
        abx.brownian_areas,
        dict(
            key=keys,
            ts=times,
            dim=counts,
            shape=st.sampled_from([(), (2,), 3, "2", (1.5,)]),
            method=mostly(st.sampled_from(["foster", "davie", None]), st.just("typo")),
            dtype=st.sampled_from([None, np.float32, np.int32]),
        ),
    ),
    (
        "rough_path_from_areas",
        abx.rough_path_from_areas,
        dict(
            ts=times,
            increments=spoilt(arrays(3, 2)),
            areas=spoilt(arrays(3, 1)),
            alg=algebras,
            brackets=modes,
            variances=mostly(st.none(), spoilt(st.just(np.ones((3, 2))))),
        ),
    ),
    (
        "square_root_driver",
        abx.square_root_driver,
        dict(
            ts=times,
            v0=mostly(st.just(0.04), st.sampled_from([-1.0, np.nan, "v", None])),
            kappa=mostly(st.just(1.5), st.sampled_from([0.0, -1.0, np.inf, "k"])),
            theta=mostly(st.just(0.04), st.sampled_from([-0.1, np.nan, None])),
            sigma=mostly(st.just(0.9), st.sampled_from([0.0, -1.0, np.nan])),
            rho=mostly(st.just(-0.7), st.sampled_from([-1.5, np.nan, "r"])),
            shape=st.sampled_from([(), 3, "2"]),
            key=keys,
        ),
    ),
]


# What a right answer is.


def _loop(xs) -> np.ndarray:
    """The signature of depth two of one path, segment by segment."""
    xs = np.asarray(xs, np.float64)
    first, second = np.zeros(xs.shape[1]), np.zeros((xs.shape[1],) * 2)
    for step in np.diff(xs, axis=0):
        second = second + np.outer(first, step) + np.outer(step, step) / 2
        first = first + step
    return np.concatenate([first, second.reshape(-1)])


def reference(name: str, arguments: dict, out: Any) -> None:
    """Compare with a plain loop where one is at hand."""
    if name != "signature" or arguments["container"] or np.ndim(arguments["xs"]) != 2:
        return
    if arguments["alg"] == abx.Shuffle(2, 2) and arguments["brackets"] is None:
        expected = _loop(arguments["xs"])
        tolerance = 20 * float(jnp.finfo(out.dtype).eps)
        scale = 1 + np.max(np.abs(np.asarray(arguments["xs"], np.float64)), initial=0)
        bound = tolerance * len(arguments["xs"]) * scale**2
        np.testing.assert_allclose(np.asarray(out, np.float64), expected, 0, bound)


def attempt(name: str, function, arguments: dict) -> None:
    """Call, and check the answer or the refusal."""
    try:
        out = jax.block_until_ready(function(**arguments))
    except (ValueError, TypeError, FileNotFoundError) as error:
        message = str(error)
        where = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__} from {where.filename}:{where.lineno}: {message}"
        assert "arborax" in where.filename, told
        assert len(message) < 300, told
        assert not any(word in message for word in RAW), told
        TRIED["refusals"] += 1
        return
    assert "typo" not in [v for v in arguments.values() if isinstance(v, str)]
    for leaf in jax.tree.leaves(out):
        real = isinstance(leaf, jax.Array | np.ndarray | np.generic)
        if real and jnp.issubdtype(leaf.dtype, jnp.inexact):
            assert np.all(np.isfinite(leaf)), "an answer with NaN or infinity"
    reference(name, arguments, out)
    TRIED["answers"] += 1


@pytest.fixture(autouse=True, scope="module")
def as_users_have_it():
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield
    jaxtyping.config.update("jaxtyping_disable", before)
    print(f"\nfuzz: {TRIED['answers']} answers, {TRIED['refusals']} refusals")


def fuzz(name: str, function, strategies: Any, examples: int) -> None:
    if isinstance(strategies, dict):
        strategies = st.fixed_dictionaries(strategies)

    @seed(zlib.crc32(name.encode()))
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(arguments=strategies)
    def run(arguments):
        attempt(name, function, arguments)

    run()


names = pytest.mark.parametrize(
    "name, function, strategies", CASES, ids=[c[0] for c in CASES]
)


@names
def test_a_right_answer_or_a_clear_refusal(name, function, strategies):
    fuzz(name, function, strategies, SHORT)


@pytest.mark.slow
@names
def test_many_inputs(name, function, strategies):
    fuzz(name, function, strategies, LONG)

"""Fuzz of the models: how they are built, called, sampled and fed with a stream.

See `tests/test_fuzz.py`. Each input is a good call, of which up to two arguments are
replaced.
"""

import inspect

import diffrax
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_fuzz import (
    as_users_have_it as as_users_have_it,
    fuzz,
    keys,
    replaced,
    spoilt,
    times,
)

import arborax as abx

from .cases import CAUSAL, driver, KEY


SHORT, LONG = 5, 60
M = abx.models
TS = np.array([0.0, 0.2, 0.5, 0.6, 1.0])
DRIVERS = {
    ito: M.brownian_driver(TS, 1, key=jax.random.key(1), brackets=ito)
    for ito in (False, True)
}
XS = np.asarray(DRIVERS[False].xs)
TINY = dict(hidden=3, width=4, depth=1, initial_depth=1, key=KEY)

sizes = st.sampled_from([1, 2, 0, -1, 2.0, "2", None, True, np.int64(3)])
geometries = st.sampled_from(
    [1, abx.SO(3), abx.SPD(2), abx.Sphere(2), abx.Product(abx.SO(2), abx.Euclidean(1))]
    + [0, -1, 1.5, "SO(3)", abx.SO, None, True]
)
algebras = st.sampled_from(
    [abx.Shuffle(2, 1), abx.Shuffle(2, 3), abx.GrossmanLarson(2, 2), abx.Ito(3, 2)]
    + [abx.MuntheKaasWright(2, 2), abx.Ito, "Ito", None, 2]
)
solvers = st.sampled_from(
    [None, abx.Heun(), abx.CFEES25(), abx.LieEuler(), abx.CF4(), diffrax.Tsit5()]
    + [abx.EuclideanRK(diffrax.Tsit5()), diffrax.Kvaerno3(), abx.Heun, "Heun", 2]
)
functions = st.sampled_from(
    [jnp.tanh, jax.nn.relu, abs, lambda: 0, "tanh", None, 1]
    + [lambda x: None, lambda x: x[None], lambda x: x > 0]
)
dtypes = st.sampled_from([np.float32, np.float64, np.float16, int, complex, "typo", 3])
flags = st.sampled_from([True, False, None, 1, "yes"])
inputs = st.one_of(
    spoilt(st.just(XS)).map(lambda xs: (TS, xs)),
    times.map(lambda ts: (ts, XS[:4])),
    st.sampled_from([1, 2]).map(lambda n: (TS[:n], XS[:n])),
    st.sampled_from([1e-30, 1e3, 1e10, 1e30, 1e200]).map(lambda s: (TS, s * XS)),
    st.sampled_from([(TS, XS[None]), (TS, XS[:, :1]), (TS, np.tile(XS, (1, 2)))]),
    st.just((TS, XS.astype(np.float32))),
    st.sampled_from([None, XS, DRIVERS[True], DRIVERS[False], "path", []]),
)
WILD = dict(
    alg=algebras,
    channels=sizes,
    output=geometries,
    geometry=geometries,
    log_depth=st.sampled_from([1, 2, 3, 0, 2.0, "2", None]),
    hidden=sizes,
    window=sizes,
    width=sizes,
    depth=st.sampled_from([0, 1, -1, 1.0, "1", None]),
    initial_width=sizes,
    initial_depth=st.sampled_from([0, 1, -1, 1.0, "1", None]),
    activation=functions,
    final_activation=functions,
    solver=solvers,
    substeps=sizes,
    basepoint=flags,
    interpolation=st.sampled_from(
        [None, "taylor", "log-ode", "geodesic", "linear", "typo", 2]
    ),
    calculus=st.sampled_from([None, "ito", "stratonovich", "typo", 1]),
    brackets=st.sampled_from([None, "realised", "typo", 1]),
    dtype=dtypes,
    key=keys,
    size=sizes,
    heads=sizes,
    layers=sizes,
    chunk=sizes,
    structure=st.sampled_from(["dense", "block", "diagonal", "low-rank", "typo", 2]),
    block=sizes,
    rank=sizes,
    affine=flags,
    normalise=flags,
    gated=flags,
    damped=flags,
    contractive=flags,
    outputs=st.sampled_from(["samples", "windows", "last", "typo", None]),
    mode=st.sampled_from([None, "scan", "associative", "typo", 1]),
    scale=st.sampled_from([0.5, 1e3, 0.0, -1.0, "1", None, np.nan]),
    path=inputs,
)


def as_path(given):
    return abx.SampledPath(*given) if isinstance(given, tuple) else given


def built(make):
    """Build the model and call it."""

    def case(path, **options):
        return make(**options)(as_path(path))

    return case


def row(name, make, good, more=()):
    known = {*inspect.signature(make.__init__).parameters, *more, "path"}
    wild = {option: WILD[option] for option in WILD if option in known}
    return name, built(make), replaced(good, wild)


def plain(**options):
    return dict(path=DRIVERS[False], **options)


CORE = ("hidden", "width", "depth", "initial_width", "initial_depth", "activation")
CORE += ("final_activation", "solver", "dtype")
WINDOWED = dict(window=2, **TINY)
ROTATION = np.concatenate([TS[:, None], np.tile(np.eye(3).ravel(), (5, 1))], 1)


def sampled(name, key, ts, shape, dtype):
    return MODELS[name].sample(ts, shape, key=key, dtype=dtype)


def forecast(name, path, future):
    return MODELS[name].forecast(as_path(path), as_path(future))


def stream(name, t, x, bracket):
    state, first = MODELS[name].start(0.0, XS[0])
    return first, MODELS[name].update(state, t, x, bracket)[1]


def started(name, t, x):
    return MODELS[name].start(t, x)


MODELS = {name: make() for name, make in CAUSAL.items()}
LATER = abx.SampledPath(TS + 2, XS)
which = st.sampled_from(sorted(MODELS))

CASES = [
    row("BNRDE", M.BNRDE, plain(alg=abx.Shuffle(2, 2), output=1, **WINDOWED)),
    row(
        "BNRDE on SO(3)",
        M.BNRDE,
        dict(path=DRIVERS[True], alg=abx.MuntheKaasWright(2, 2), geometry=abx.SO(3))
        | {k: v for k, v in WINDOWED.items() if k != "hidden"},
    ),
    row(
        "LinearBNRDE",
        M.LinearBNRDE,
        plain(alg=abx.Shuffle(2, 2), output=1, hidden=4, window=2, key=KEY),
    ),
    row(
        "Reservoir",
        M.Reservoir,
        plain(alg=abx.Shuffle(2, 2), output=1, hidden=4, window=2, key=KEY),
    ),
    row("LogNCDE", M.LogNCDE, plain(channels=2, output=1, **WINDOWED)),
    row("NRDE", M.NRDE, plain(channels=2, output=1, **WINDOWED)),
    row("NCDE", M.NCDE, plain(channels=2, output=1, **TINY), CORE),
    row("NCDEpp", M.NCDEpp, plain(channels=2, output=1, **TINY), CORE),
    row("GRU", M.GRU, plain(channels=2, output=1, hidden=3, width=4, key=KEY)),
    row(
        "XLSTM",
        M.XLSTM,
        plain(channels=2, output=1, size=4, heads=2, layers=2, key=KEY),
    ),
    row(
        "MNODE",
        M.MNODE,
        dict(path=abx.SampledPath(TS, ROTATION), width=4, depth=1, key=KEY),
    ),
    (
        "MLP",
        lambda x, **options: M.MLP(**options)(x),
        replaced(
            dict(in_size=2, out_size=3, width=4, depth=1, key=KEY, x=jnp.ones(2)),
            dict(in_size=sizes, out_size=sizes, width=sizes, depth=sizes, key=keys)
            | dict(activation=functions, final_activation=functions, dtype=dtypes),
        ),
    ),
    (
        "brownian_driver",
        M.brownian_driver,
        replaced(
            dict(key=KEY, ts=TS, dim=1),
            dict(key=keys, ts=times, dim=sizes, shape=st.sampled_from([(), (2,), 3]))
            | dict(brackets=flags, dtype=dtypes),
        ),
    ),
    (
        "sample",
        sampled,
        which.flatmap(
            lambda name: replaced(
                dict(name=name, key=KEY, ts=TS, shape=(), dtype=None),
                dict(key=keys, ts=times, dtype=dtypes)
                | dict(shape=st.sampled_from([(2,), 2, (0,), -1, 1.5, "2", None])),
            )
        ),
    ),
    (
        "predict",
        lambda name, path: MODELS[name].predict(as_path(path)),
        which.flatmap(
            lambda name: replaced(
                dict(name=name, path=driver(MODELS[name], 5)), dict(path=inputs)
            )
        ),
    ),
    (
        "call",
        lambda name, path: MODELS[name](as_path(path)),
        which.flatmap(
            lambda name: replaced(
                dict(name=name, path=driver(MODELS[name], 5)), dict(path=inputs)
            )
        ),
    ),
    (
        "forecast",
        forecast,
        which.flatmap(
            lambda name: replaced(
                dict(name=name, path=DRIVERS[False], future=LATER),
                dict(path=inputs, future=inputs),
            )
        ),
    ),
    (
        "update",
        stream,
        which.flatmap(
            lambda name: replaced(
                dict(name=name, t=0.1, x=XS[1], bracket=np.eye(2) / 9),
                dict(
                    x=spoilt(st.just(XS[1])),
                    t=st.sampled_from([0.1, None, "a", np.nan, TS]),
                    bracket=spoilt(st.just(np.eye(2) / 9)),
                ),
            )
        ),
    ),
    (
        "start",
        started,
        which.flatmap(
            lambda name: replaced(
                dict(name=name, t=0.0, x=XS[1]), dict(x=spoilt(st.just(XS[1])))
            )
        ),
    ),
]
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


n = np.int64
NEURAL = dict(hidden=n(3), width=n(3), depth=n(1), initial_depth=n(1), key=KEY)
STACK = dict(size=n(4), heads=n(2), chunk=n(4), key=KEY)
NUMPY_SIZES = {
    "BNRDE": lambda: M.BNRDE(abx.Ito(2, 2), n(1), window=n(4), **NEURAL),
    "LogNCDE": lambda: M.LogNCDE(n(2), n(1), log_depth=n(2), **NEURAL),
    "NRDE": lambda: M.NRDE(n(2), n(1), initial_width=n(2), **NEURAL),
    "NCDE": lambda: M.NCDE(n(2), n(1), **NEURAL),
    "NCDEpp": lambda: M.NCDEpp(n(2), n(1), **NEURAL),
    "GRU": lambda: M.GRU(n(2), n(1), hidden=n(3), initial_depth=n(1), key=KEY),
    "XLSTM": lambda: M.XLSTM(n(2), n(1), layers=n(2), **STACK),
    "MNODE": lambda: M.MNODE(width=n(3), depth=n(1), substeps=n(2), key=KEY),
}


@pytest.mark.parametrize("name", NUMPY_SIZES)
def test_sizes_of_numpy(name):
    """They are held as Python integers: static fields of another type warn, and
    warnings are errors here."""
    fields = jax.tree.leaves(vars(NUMPY_SIZES[name]()))
    assert not any(isinstance(field, np.generic) for field in fields)

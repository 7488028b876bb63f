"""Fuzz of readers of lists and frames, and of estimators; see `tests/test_fuzz.py`.

Each input is a good call, of which up to two arguments are replaced.
"""

import hypothesis.strategies as st
import numpy as np
import pytest


pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn")
pytest.importorskip("narwhals")

from test_fuzz import (  # noqa: E402
    as_users_have_it as as_users_have_it,
    fuzz,
    mostly,
    replaced,
    SPOIL,
    SPOIL_TIMES,
    spoilt,
)

import arborax as abx  # noqa: E402
from arborax import estimators  # noqa: E402
from arborax.estimators._collections import as_paths  # noqa: E402


# Two steps teach nothing, and the estimators say so.
pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 6, 2)).cumsum(axis=1)
Y = np.arange(12) % 2
SMALL = dict(options=dict(hidden=4), steps=2, average=None, random_state=0)

wholes = st.sampled_from([1, 2, 0, -1, 2.0, "2", None, True, np.int64(2), [1]])
parts = st.sampled_from([None, 0.25, 0.0, 1.0, -1.0, np.nan, "half", [0.2]])
words = st.sampled_from(["typo", None, 3, ["ito"], b"ito"])
units = st.sampled_from(["s", "D", "ms", "typo", None, 1])

series = st.one_of(
    spoilt(st.just(X)),
    st.just([x[: 3 + k % 4] for k, x in enumerate(X)]),
    st.lists(spoilt(st.just(X[0])), max_size=4),
    st.just([X[0], X[1][:, :1]]),
    st.sampled_from([[], "series", {}, None, [[]], [None], X[:1], X[:, :1], X[:0]]),
)
targets = st.one_of(
    spoilt(st.just(Y.astype(float))),
    st.sampled_from(
        [None, "y", Y[:5], np.zeros(12), Y[:, None], np.array(["a", "b"] * 6)]
    ),
)


def frame(time, group, price, volume):
    """A frame of pandas whose columns may hold anything of the right length."""
    columns = dict(t=time, id=group, price=price, volume=volume)
    return pd.DataFrame(
        {name: pd.Series(list(values)) for name, values in columns.items()}
    )


def column(values, table=SPOIL):
    """A column, now and then of another kind, as long as it should be."""

    def right(found):
        return isinstance(found, list) or np.ndim(found) == 1

    found = spoilt(st.just(values), table)
    return found.map(lambda v: v if right(v) and len(v) == len(values) else values)


TIMES = np.tile([0.0, 0.5, 1.5, 2.0], 3)
FRAME = dict(
    time=column(TIMES, SPOIL_TIMES),
    group=st.one_of(
        column(np.repeat([0.0, 1.0, 2.0], 4)),
        st.just(["a", "a", "a", "a", None, "b", "b", "b", "c", "c", "c", "c"]),
        st.just(list("aaaabbbbccc") + ["d"]),
    ),
    price=column(RNG.normal(size=12)),
    volume=column(RNG.normal(size=12)),
)


def from_dataframe(data):
    columns, options = data
    return abx.SampledPath.from_dataframe(frame(**columns), **options)


def from_columns():
    """Columns of all kinds, and names and units of all kinds."""
    options = dict(
        time=mostly(st.just("t"), st.sampled_from([None, "typo", "price", 3])),
        group=mostly(st.just("id"), st.sampled_from([None, "t", "typo", 3])),
        channels=mostly(
            st.just(["price", "volume"]),
            st.sampled_from([None, "price", [], ["typo"], ["id"], 3]),
        ),
        unit=mostly(st.just("s"), units),
        origin=mostly(st.just("group"), st.sampled_from(["frame", "typo", None])),
    )
    good = dict(time=TIMES, group=np.repeat([0, 1, 2], 4))
    good |= dict(price=RNG.normal(size=12), volume=RNG.normal(size=12))
    usual = dict(time="t", group="id", channels=None, unit="s", origin="group")
    return st.tuples(replaced(good, FRAME), replaced(usual, options))


def to_dataframe(xs, **options):
    """There and back."""
    df = abx.SampledPath(np.arange(6.0), xs).to_dataframe(**options)
    group = "group" if np.ndim(xs) > 2 else None
    return abx.SampledPath.from_dataframe(df, time="time", group=group)


def fitted(make):
    """Fitted on one collection, applied to another."""

    def case(X, y, other, **options):
        estimator = make(**options).fit(X, y)
        if hasattr(estimator, "transform"):
            return estimator.transform(other)
        return estimator.predict(other)

    return case


def generated(X, n, prefix, times, **options):
    made = estimators.PathGenerator("gru", **SMALL, cylinders=24, **options).fit(X)
    return made.sample(n, prefix=prefix, times=times, random_state=0)


DATA = dict(X=X, y=Y, other=X[:3])
WILD = dict(X=series, y=targets, other=series)
TRAINED = dict(batch_size=wholes, validation=parts, learning_rate=parts)

TABLES = [
    (
        "from_list",
        lambda arrays, times: abx.SampledPath.from_list(arrays, times),
        replaced(
            dict(arrays=list(X), times=None),
            dict(
                arrays=series,
                times=st.one_of(
                    spoilt(st.just(np.arange(6.0)), SPOIL_TIMES),
                    st.lists(spoilt(st.just(np.arange(6.0)), SPOIL_TIMES), max_size=3),
                ),
            ),
        ),
    ),
    (
        "from_channels",
        lambda series: abx.SampledPath.from_channels(series),
        st.fixed_dictionaries(
            dict(
                series=st.lists(
                    st.tuples(
                        spoilt(st.just(np.arange(6.0)), SPOIL_TIMES),
                        spoilt(st.just(X[0, :, 0])),
                    ),
                    max_size=3,
                )
            )
        ),
    ),
    (
        "from_dataframe",
        from_dataframe,
        st.fixed_dictionaries(dict(data=from_columns())),
    ),
    (
        "to_dataframe",
        to_dataframe,
        replaced(
            dict(xs=X, groups=None, channels=None),
            dict(
                xs=spoilt(st.just(X)),
                groups=st.sampled_from([list("abcdefghijkl"), ["a"], [], "a", 3]),
                channels=st.sampled_from([["a", "b"], ["a"], [], "ab", 3]),
                unit=units,
                backend=st.sampled_from(["polars", "pyarrow", "typo", None]),
            ),
        ),
    ),
    (
        "as_paths",
        lambda X, channels_last: as_paths(X, channels_last=channels_last),
        st.fixed_dictionaries(dict(X=series, channels_last=st.booleans())),
    ),
    (
        "SignatureFeatures",
        fitted(estimators.SignatureFeatures),
        replaced(
            DATA,
            WILD
            | dict(
                alg=st.one_of(words, st.just("shuffle")),
                depth=wholes,
                window=wholes,
                brackets=words,
                batch_size=wholes,
                standardise=st.booleans(),
                lead_lag=st.booleans(),
            ),
        ),
    ),
]
MODELS = [
    (
        "SignatureKernelClassifier",
        fitted(lambda **o: estimators.SignatureKernelClassifier(**{"depth": 2} | o)),
        replaced(DATA, WILD | dict(kind=words, depth=wholes)),
    ),
    (
        "SignatureKernelRegressor",
        fitted(lambda **o: estimators.SignatureKernelRegressor(**{"depth": 2} | o)),
        replaced(DATA, WILD | dict(kind=words, alpha=parts)),
    ),
    (
        "ReservoirClassifier",
        fitted(lambda **o: estimators.ReservoirClassifier(**{"hidden": 4} | o)),
        replaced(DATA, WILD | dict(alg=words, hidden=wholes)),
    ),
    (
        "SequenceClassifier",
        fitted(
            lambda **o: estimators.SequenceClassifier(**{"model": "gru"} | SMALL | o)
        ),
        replaced(DATA, WILD | TRAINED | dict(model=words, steps=wholes)),
    ),
    (
        "SequenceRegressor",
        fitted(
            lambda **o: estimators.SequenceRegressor(**{"model": "gru"} | SMALL | o)
        ),
        replaced(DATA, WILD | TRAINED),
    ),
    (
        "Forecaster",
        fitted(lambda **o: estimators.Forecaster(**{"model": "gru"} | SMALL | o)),
        replaced(DATA | dict(y=None), dict(X=series, other=series, horizon=wholes)),
    ),
    (
        "PathGenerator",
        generated,
        replaced(
            dict(X=X, n=2, prefix=X[0, :1], times=None, features=8),
            dict(
                X=series,
                n=wholes,
                prefix=spoilt(st.just(X[:2, :1])),
                times=spoilt(st.just(np.arange(6.0)), SPOIL_TIMES),
                features=wholes,
                noise=wholes,
                kind=words,
            ),
        ),
    ),
]
CASES = [(*case, 20) for case in TABLES] + [(*case, 4) for case in MODELS]

names = pytest.mark.parametrize(
    "name, function, strategies, short", CASES, ids=[c[0] for c in CASES]
)


@names
def test_a_right_answer_or_a_clear_refusal(name, function, strategies, short):
    fuzz(name, function, strategies, short)


@pytest.mark.slow
@names
def test_many_inputs(name, function, strategies, short):
    fuzz(name, function, strategies, 15 * short)

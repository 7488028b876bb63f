"""Signature features equal those of the functions, whatever holds the series."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


pytest.importorskip("sklearn")
pd = pytest.importorskip("pandas")

from sklearn.base import clone  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

import arborax as abx  # noqa: E402
from arborax.estimators import as_paths, SignatureFeatures  # noqa: E402


@pytest.fixture
def X(rng):
    return np.cumsum(rng.normal(size=(12, 9, 2)), axis=1)


def standardised(X):
    """On times from 0 to 1."""
    xs = (X - X.mean(axis=(0, 1))) / X.std(axis=(0, 1))
    return abx.SampledPath(np.linspace(0, 1, X.shape[1]), xs)


ALGEBRAS = {
    "ito": abx.Ito,
    "shuffle": abx.Shuffle,
    "grossman-larson": abx.GrossmanLarson,
    "munthe-kaas-wright": abx.MuntheKaasWright,
}


@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("name", ALGEBRAS)
def test_equal_to_functions(X, name, log):
    found = SignatureFeatures(name, 2, log=log).fit(X).transform(X)
    alg = ALGEBRAS[name](3, 2)
    brackets = None if name == "shuffle" else "realised"
    take = abx.log_signature if log else abx.signature
    expected = take(abx.add_time(standardised(X)), alg, brackets)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_windows_basepoint_and_lead_lag(X):
    features = SignatureFeatures(
        "shuffle", 2, window=5, lead_lag=True, basepoint=True, time=False
    ).fit(X)
    path = abx.add_basepoint(abx.lead_lag(standardised(X)))
    windows = abx.windows_by_points(path, 5)
    expected = abx.log_signature(windows, abx.Shuffle(4, 2)).reshape(12, -1)
    np.testing.assert_allclose(features.transform(X), expected, atol=1e-12)
    names = features.get_feature_names_out(["p", "q"])
    assert len(names) == expected.shape[1] == len(set(names))
    assert names[0] == "w0:p_lead" and "w3:[q_lead,p_lag]" in names


def test_unequal_lengths_and_gaps(X):
    """Padding and gaps are exact: each series as if it were alone."""
    series = [x[:n] for x, n in zip(X, (9, 4, 6, 9, 2, 9, 5, 8, 9, 3, 7, 9))]
    series[2][1, 0] = np.nan
    features = SignatureFeatures("ito", 2, standardise=False).fit(series)
    found = features.transform(series)
    for k in (1, 2, 4):
        n = len(series[k])
        seen = ~np.isnan(series[k])
        alone = abx.SampledPath(np.arange(n) / 8, np.nan_to_num(series[k]), seen)
        expected = abx.log_signature(abx.add_time(alone), abx.Ito(3, 2), "realised")
        np.testing.assert_allclose(found[k], expected, atol=1e-12)


@pytest.mark.parametrize("offset", [1e6, 1e8])
def test_values_far_from_zero(X, offset):
    """Single precision would round them to multiples of 0.06 or 8: their origin is
    subtracted before."""
    far = X + np.array([offset, 0.0])
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, far)
    for series in (far, gaps, [x[: 5 + k % 4] for k, x in enumerate(gaps)]):
        for options in ({}, dict(standardise=False), dict(basepoint=True)):
            features = SignatureFeatures("ito", 2, **options)
            expected = features.fit(series).transform(series)
            with jax.enable_x64(False):
                found = SignatureFeatures("ito", 2, **options).fit(series)
                np.testing.assert_allclose(
                    found.transform(series), expected, rtol=1e-4, atol=1e-4
                )
    with jax.enable_x64(False):
        assert not SignatureFeatures().fit(X).origin_.any()
        levels = SignatureFeatures(standardise=False, basepoint=True)
        with pytest.warns(RuntimeWarning, match="channel 0 .* Subtract a constant"):
            levels.fit(far)
        frame = pd.DataFrame(far[0], columns=["p", "q"])
        with pytest.warns(RuntimeWarning, match="channel 0 has values up to 1e"):
            abx.SampledPath.from_dataframe(frame)
        abx.SampledPath.from_dataframe(frame - [offset, 0.0])


def test_hayashi_yoshida(rng):
    times = np.arange(40.0)
    x = np.cumsum(rng.normal(size=(40, 1)), axis=0) @ np.ones((1, 2))
    x[1::2, 0] = x[2::2, 1] = np.nan
    features = SignatureFeatures(
        "ito", 2, brackets="hayashi-yoshida", time=False, standardise=False
    ).fit([x])
    path = abx.SampledPath(times, np.nan_to_num(x), ~np.isnan(x))
    brackets = path.realised_brackets("hayashi-yoshida")
    expected = abx.log_signature(path, abx.Ito(2, 2), brackets)
    np.testing.assert_allclose(features.transform([x])[0], expected, atol=1e-10)


NAMES = {
    ("ito", True): ["a", "b", "[a,b]", "<a,a>", "<a,b>", "<b,b>"],
    ("shuffle", False): ["a", "b", "a a", "a b", "b a", "b b"],
    ("grossman-larson", True): ["a", "b", "[a]_a", "[b]_a", "[a]_b", "[b]_b"],
    ("munthe-kaas-wright", True): [
        "a", "b", "[a,b]", "[a]_a", "[b]_a", "[a]_b", "[b]_b",
    ],
    (abx.MultiIndex, True): ["a", "b", "a a'", "a b'", "a' b", "b b'"],
    (abx.MultiIndex, False): [
        "a", "b", "a a'", "a b'", "a' b", "b b'", "a . a", "a . b", "b . b",
    ],
}  # fmt: skip


@pytest.mark.parametrize("case", NAMES)
def test_names(X, case):
    name, log = case
    features = SignatureFeatures(name, 2, log=log, time=False).fit(X)
    assert list(features.get_feature_names_out(["a", "b"])) == NAMES[case]


def test_names_of_lyndon_words_are_their_brackets(X):
    features = SignatureFeatures("shuffle", 4, time=False).fit(X)
    assert list(features.get_feature_names_out("ab"))[3:] == [
        "[a,[a,b]]", "[[a,b],b]", "[a,[a,[a,b]]]", "[a,[[a,b],b]]", "[[[a,b],b],b]",
    ]  # fmt: skip


def test_ten_batch_sizes_take_three_programs(X, rng):
    """All that XLA compiles counts, by the events of JAX."""
    programs = []

    def listen(event, seconds, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            programs.append(event)

    features = SignatureFeatures("shuffle", 2).fit(X)
    batches = [
        rng.normal(size=(n, 9, 2)) for n in (1, 2, 12, 17, 40, 63, 100, 256, 300, 700)
    ]
    jax.monitoring.register_event_duration_secs_listener(listen)
    found = [features.transform(batch) for batch in batches]
    count = len(programs)
    assert 1 <= count <= 3
    for batch, rows in zip(batches, found):
        np.testing.assert_allclose(rows[:1], features.transform(batch[:1]), atol=1e-12)


def nested(X):
    cells = [[pd.Series(x[:, k]) for k in range(X.shape[2])] for x in X]
    return pd.DataFrame(cells, columns=["a", "b"])


def indexed(X):
    index = pd.MultiIndex.from_product([range(len(X)), range(X.shape[1])])
    return pd.DataFrame(X.reshape(-1, X.shape[2]), index=index)


COLLECTIONS = {
    "list": list,
    "frames": lambda X: [pd.DataFrame(x) for x in X],
    "jax": jnp.asarray,
    "path": lambda X: abx.SampledPath(np.arange(9.0), X),
    "nested": nested,
    "index of pairs": indexed,
}


@pytest.mark.parametrize("kind", COLLECTIONS)
def test_collections(X, kind):
    expected = SignatureFeatures().fit_transform(X)
    given = COLLECTIONS[kind](X)
    np.testing.assert_allclose(SignatureFeatures().fit_transform(given), expected)


@pytest.mark.parametrize("kind", [np.asarray, list])
def test_channels_first_as_in_aeon(X, kind):
    expected = SignatureFeatures().fit_transform(X)
    features = SignatureFeatures(channels_last=False)
    found = features.fit_transform(kind(np.swapaxes(X, 1, 2)))
    np.testing.assert_allclose(found, expected)


def test_pipelines_search_and_clone(X):
    y = (X[:, -1, 0] > np.median(X[:, -1, 0])).astype(int)
    pipeline = make_pipeline(
        SignatureFeatures("shuffle"), StandardScaler(), LogisticRegression()
    )
    search = GridSearchCV(pipeline, {"signaturefeatures__depth": [1, 2]}, cv=2)
    search.fit(X, y)
    assert search.best_score_ > 0.7
    assert search.best_estimator_[:-1].get_feature_names_out()[0] == "t"
    features = SignatureFeatures("ito", 3, window=4).set_params(depth=1)
    assert clone(features).get_params() == features.get_params()
    frame = SignatureFeatures().set_output(transform="pandas").fit(X).transform(X)
    assert list(frame.columns)[:3] == ["t", "x0", "x1"]


BAD = {
    "one path": (lambda X: abx.SampledPath(np.arange(9.0), X[0]), "a batch of paths"),
    "one axis": (lambda X: X[0, :, 0], "must have shape"),
    "no paths": (lambda X: X[:0], "0 sample"),
    "text": (lambda X: X.astype(str), "numbers"),
    "infinity": (lambda X: np.where(X == X.max(), np.inf, X), "holds infinity in row"),
    "constant channel": (lambda X: X * [1, 0], "channel 'x1' is constant"),
    "long frame": (lambda X: pd.DataFrame(X[0]), "SampledPath.from_dataframe"),
    "channels": (lambda X: [X[0], X[1][:, :1]], "`X.1.` has 1 channels"),
    "complex": (lambda X: X + 0j, "Complex data"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_series(X, case):
    make, message = BAD[case]
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        SignatureFeatures().fit(make(X))
    assert len(str(caught.value)) < 300


def test_bad_calls(X):
    features = SignatureFeatures(window=4).fit(X)
    with pytest.raises(ValueError, match="have 1 channels.*fitted with 2"):
        features.transform(X[:, :, :1])
    with pytest.raises(ValueError, match="windows were laid out for 9"):
        features.transform(np.concatenate([X, X], axis=1))
    with pytest.raises(ValueError, match="one of"):
        SignatureFeatures("words").fit(X)
    with pytest.raises(ValueError, match="one of"):
        SignatureFeatures(brackets="none").fit(X)
    with pytest.raises(ValueError, match="with those that were added"):
        SignatureFeatures(abx.Ito(2, 2)).fit(X)
    with pytest.raises(ValueError, match="3 names for 2"):
        features.get_feature_names_out(["a", "b", "c"])
    assert as_paths(X).batch_shape == (12,)


def test_saved_and_loaded(X, tmp_path):
    features = SignatureFeatures("grossman-larson", window=4).fit(X)
    features.save(tmp_path / "f.abx")
    again = SignatureFeatures.load(tmp_path / "f.abx")
    np.testing.assert_array_equal(again.transform(X), features.transform(X))

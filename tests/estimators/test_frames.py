"""Features of the parts of a table are those of the whole."""

import functools as ft

import numpy as np
import pytest


pytest.importorskip("sklearn")
pd = pytest.importorskip("pandas")

import arborax as abx  # noqa: E402
from arborax.estimators import (  # noqa: E402
    features_of_frame,
    load_estimator,
    SignatureFeatures,
)


@pytest.fixture
def df(rng):
    lengths = rng.integers(3, 7, size=10)
    ids = np.repeat(np.arange(10), lengths)
    times = np.concatenate([np.arange(n, dtype=float) for n in lengths])
    values = rng.normal(size=(2, len(ids))).cumsum(axis=1)
    return pd.DataFrame({"id": ids, "t": times, "p": values[0], "q": values[1]})


@pytest.fixture
def features(df):
    paths = abx.SampledPath.from_dataframe(df, time="t", group="id")
    return SignatureFeatures().fit(paths)


def whole(df, features):
    paths = abx.SampledPath.from_dataframe(df, time="t", group="id")
    return features.transform(paths)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_parts(df, features, kind):
    frame = df
    if kind == "polars":
        frame = pytest.importorskip("polars").DataFrame(df.to_dict("list"))
    if kind == "pyarrow":
        frame = pytest.importorskip("pyarrow").table(df.to_dict("list"))
    found = features_of_frame(frame, features, group="id", time="t")
    assert type(found) is type(frame)
    columns = list(getattr(found, "column_names", None) or found.columns)
    names = features.get_feature_names_out(["p", "q"]).tolist()
    assert columns == ["id", *names]
    values = np.stack([np.asarray(found[name]) for name in names], axis=1)
    np.testing.assert_array_equal(values, whole(df, features))
    np.testing.assert_array_equal(np.asarray(found["id"]), np.arange(10))


def test_empty_parts_and_unknown_groups(df, features):
    part = ft.partial(features_of_frame, features=features, time="t")
    empty, full = part(df.iloc[:0], group="id"), part(df, group="id")
    assert len(empty) == 0
    assert empty.dtypes.to_dict() == full.dtypes.to_dict()
    with pytest.raises(ValueError, match="unknown column 'name'"):
        part(df, group="name")


def test_groups_without_values_and_channels_twice(df):
    empty = df.assign(p=df["p"].where(df["id"] != 4), q=df["q"].where(df["id"] != 4))
    row = int(np.argmax(df["id"] == 4))
    with pytest.raises(ValueError, match=f"group 4 has no values.* from row {row} on"):
        abx.SampledPath.from_dataframe(empty, time="t", group="id")
    with pytest.raises(ValueError, match="names 'p' twice"):
        abx.SampledPath.from_dataframe(df, time="t", group="id", channels=["p", "p"])


def test_units_of_parts_are_those_of_the_whole(df, features, tmp_path):
    cuts = [df[df["id"] < 3], df[df["id"].between(3, 3)], df[df["id"] > 3]]
    paths = [abx.SampledPath.from_dataframe(c, time="t", group="id") for c in cuts]
    found = SignatureFeatures().fit_parts(iter(paths))
    for name in ("mean", "deviation", "span"):
        one, other = getattr(found.scaling_, name), getattr(features.scaling_, name)
        np.testing.assert_allclose(one, other, rtol=1e-13)
    assert found.length_ == features.length_
    np.testing.assert_allclose(whole(df, found), whole(df, features), atol=1e-12)
    found.save(tmp_path / "f.abx")
    again = load_estimator(tmp_path / "f.abx")
    np.testing.assert_array_equal(whole(df, again), whole(df, found))
    with pytest.raises(ValueError, match="`parts` is empty"):
        SignatureFeatures().fit_parts([])
    flat = abx.SampledPath.from_dataframe(df.assign(q=1.0), time="t", group="id")
    with pytest.raises(ValueError, match="channel 'q' is constant"):
        SignatureFeatures().fit_parts([flat], ["p", "q"])


@pytest.mark.slow
def test_cluster_of_two_processes(df, features, monkeypatch):
    """Dask maps the function over partitions in processes of their own."""
    distributed = pytest.importorskip("distributed")
    frames = pytest.importorskip("dask.dataframe")
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    part = ft.partial(features_of_frame, features=features, group="id", time="t")
    options = dict(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with (
        distributed.LocalCluster(processes=True, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert len(client.run(__import__("os").getpid)) == 2
        table = frames.from_pandas(df, npartitions=3).shuffle(on="id", npartitions=4)
        made = table.map_partitions(part, meta=part(df.iloc[:0])).compute()
    found = made.sort_values("id").drop(columns="id").to_numpy()
    np.testing.assert_allclose(found, whole(df, features), atol=1e-12)

"""Paths from lists and data frames: grids, masks, dates, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arborax as abx


pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("narwhals")

BACKENDS = {"pandas": lambda df: df, "polars": pl.from_pandas}
BACKENDS["pyarrow"] = pa.Table.from_pandas
DATES = ["2024-01-01", "2024-01-02", "2024-01-05", "2024-02-01 06:00", "2024-02-03"]


def frame():
    return pd.DataFrame(
        dict(
            id=["b", "b", "b", "a", "a"],
            t=np.array(DATES, "M8[ns]"),
            x=np.array([1, np.nan, 3, 4, 5], np.float32),
            y=[1, 2, 3, 4, 5],
        )
    )


def test_list_of_unequal_series_is_exact(rng):
    """The signature of each series is that of the series alone."""
    series = [rng.normal(size=(n, 2)) for n in (5, 3, 8)]
    times = [np.sort(rng.uniform(size=len(s))) for s in series]
    alg = abx.Ito(2, 3)
    for given in (None, times, np.linspace(0.0, 1.0, 9)):
        path = abx.SampledPath.from_list(series, given)
        found = abx.signature(path, alg, brackets="realised")
        for k, values in enumerate(series):
            alone = abx.signature(jnp.asarray(values), alg, brackets="realised")
            np.testing.assert_allclose(found[k], alone, atol=1e-12)
    assert abx.SampledPath.from_list(series, times).ts.shape == (3, 8)
    assert abx.SampledPath.from_list([s[:3] for s in series]).lengths is None


def test_list_reads_gaps_integers_and_dates():
    dates = np.array(DATES, "datetime64[s]")
    path = abx.SampledPath.from_list([[1.0, np.nan, 3.0], [1, 2]], dates)
    assert path.dim == 1 and path.mask.sum() == 5
    np.testing.assert_array_equal(path.ts, [0, 86400, 4 * 86400])
    np.testing.assert_array_equal(path.filled().xs[:, :, 0], [[1, 1.5, 3], [1, 2, 2]])


@pytest.mark.parametrize("backend", BACKENDS)
def test_frames_there_and_back(backend):
    df = BACKENDS[backend](frame())
    read = dict(time="t", group="id", channels=["x", "y"], unit="D")
    path = abx.SampledPath.from_dataframe(df, **read)
    np.testing.assert_array_equal(path.ts, [[0, 1, 4], [0, 1.75, 1.75]])
    np.testing.assert_array_equal(path.lengths, [3, 2])
    assert not path.mask[0, 1, 0] and path.mask[0, 1, 1]
    later = abx.SampledPath.from_dataframe(df, **read, origin="frame")
    assert later.ts[1, 0] == 31.25
    back = later.to_dataframe(
        time="t",
        group="id",
        groups=["b", "a"],
        channels=["x", "y"],
        start="2024-01-01",
        unit="D",
        backend=backend,
    )
    assert type(back) is type(df)
    back = back if backend == "pandas" else back.to_pandas()
    expected = frame().astype({"x": float, "y": float})
    pd.testing.assert_frame_equal(back, expected, check_dtype=False)


def test_frames_without_groups_or_times():
    df = frame().drop(columns="id")
    by_index = abx.SampledPath.from_dataframe(df.set_index("t"), unit="D")
    by_name = abx.SampledPath.from_dataframe(df, time="t", unit="D")
    assert by_index.batch_shape == ()
    np.testing.assert_array_equal(by_index.ts, by_name.ts)
    zone = df.set_index(df["t"].dt.tz_localize("Europe/Berlin"))
    zoned = abx.SampledPath.from_dataframe(zone[["x", "y"]], unit="D")
    np.testing.assert_array_equal(zoned.ts, by_name.ts)
    rows = abx.SampledPath.from_dataframe(df[["y"]])
    np.testing.assert_array_equal(rows.ts, np.arange(5))
    assert list(rows.to_dataframe().columns) == ["time", "x0"]


def test_nanoseconds_survive():
    stamps = np.datetime64("2024-01-01", "ns") + np.array([0, 1, 2500]).astype("m8[ns]")
    df = pd.DataFrame(dict(t=stamps, x=[0.0, 1, 2]))
    path = abx.SampledPath.from_dataframe(df, time="t")
    np.testing.assert_allclose(path.ts, [0, 1e-9, 2.5e-6], rtol=1e-15)


@pytest.mark.parametrize("backend", BACKENDS)
def test_dates_beyond_the_reach_of_nanoseconds(backend):
    """64 bits of nanoseconds end in 2262, and span 584 years."""
    stamps = np.array(["1000-01-01", "1600-01-01", "2300-01-01"], "M8[us]")
    df = BACKENDS[backend](pd.DataFrame(dict(t=stamps, x=[0.0, 1, 2])))
    path = abx.SampledPath.from_dataframe(df, time="t", unit="D")
    days = (stamps - stamps[0]) / np.timedelta64(1, "D")
    np.testing.assert_array_equal(path.ts, days)
    back = path.to_dataframe(start=stamps[0], unit="D")["time"]
    np.testing.assert_array_equal(back.to_numpy(), stamps)
    spans = BACKENDS[backend](pd.DataFrame(dict(t=stamps - stamps[0], x=[0.0, 1, 2])))
    path = abx.SampledPath.from_dataframe(spans, time="t", unit="D")
    np.testing.assert_array_equal(path.ts, days)


def test_numbers_that_look_like_dates():
    df = pd.DataFrame(dict(t=[20240130, 20240131, 20240201], x=[0.0, 1, 2]))
    with pytest.warns(RuntimeWarning, match="such as 20240130, which look like dates"):
        abx.SampledPath.from_dataframe(df, time="t")


def test_single_precision_refuses_stamps_that_become_equal():
    """Without x64 mode, times are float32."""
    stamps = np.array(["2024-01-01", "2024-01-02", "2024-01-02T00:00:00.001"], "M8[ms]")
    df = pd.DataFrame(dict(t=stamps, x=[0.0, 1, 2]))
    with jax.enable_x64(False):
        with pytest.raises(ValueError, match="jax_enable_x64"):
            abx.SampledPath.from_dataframe(df, time="t")
        coarse = abx.SampledPath.from_dataframe(df[:2], time="t")
        assert coarse.ts.dtype == np.float32


def test_channels_of_different_rates(rng):
    """One channel per time or not: Hayashi-Yoshida sees the covariation, and the
    previous tick only what arrives together."""
    ts = np.arange(4001) / 4000
    x = np.cumsum(rng.normal(size=4001)) / 4000**0.5
    even, odd = np.arange(0, 4001, 2), np.r_[0, np.arange(1, 4001, 2)]
    path = abx.SampledPath.from_channels([(ts[even], x[even]), (ts[odd], x[odd])])
    np.testing.assert_array_equal(path.ts, ts)
    truth = np.sum(np.diff(x) ** 2)
    found = np.sum(path.realised_brackets("hayashi-yoshida"), axis=0)
    # The estimator has standard deviation about 2 sqrt(2 / 4000) times the truth.
    np.testing.assert_allclose(found, np.full((2, 2), truth), atol=0.25 * truth)
    assert abs(np.sum(path.realised_brackets(), axis=0)[0, 1]) < 0.05 * truth


def test_dates_of_channels_have_one_origin():
    days = np.datetime64("2026-01-01") + np.arange(4)
    path = abx.SampledPath.from_channels(
        [(days[1:], [1.0, 2, 3]), (days[:2], [0, 1.0])]
    )
    np.testing.assert_array_equal(path.ts, 86400.0 * np.arange(4))
    np.testing.assert_array_equal(path.mask, [[0, 1], [1, 1], [1, 0], [1, 0]])


def bad(**changes):
    return lambda: abx.SampledPath.from_dataframe(
        frame().assign(**changes.pop("columns", {})), **changes
    )


BAD = {
    "unknown column": (bad(time="when"), "unknown column 'when'"),
    "text": (bad(time="t"), "column 'id' holds"),
    "text as time": (bad(time="t", channels=["y"], columns=dict(t=list("abcde"))),
                     "column 't' is of type String, neither dates nor numbers"),
    "levels": (lambda: abx.SampledPath.from_dataframe(frame().set_index(["id", "t"])),
               "index of 2 levels"),
    "in the index": (lambda: abx.SampledPath.from_dataframe(frame().set_index("t"),
                                                            time="t", channels=["x"]),
                     "It is in the index"),
    "infinity": (bad(time="t", channels=["y"], columns=dict(y=[0, 1, np.inf, 2, 3])),
                 "'y' holds infinity in row 2"),
    "disorder": (bad(time="y", channels=["x"], columns=dict(y=[1, 2, 1.5, 3, 4])),
                 "row 2 is earlier than that in row 1"),
    "repeated": (bad(time="y", group="id", channels=["x"],
                     columns=dict(y=[1, 2, 3, 4, 4])),
                 "group 'a': the time in row 4 repeats that in row 3"),
    "no time": (bad(time="t", channels=["y"],
                    columns=dict(t=np.array([*DATES[:4], "NaT"], "M8[ns]"))),
                "no time in row 4"),
    "no group": (bad(time="t", group="id", channels=["y"],
                     columns=dict(id=["b", "b", None, "a", "a"])),
                 "'id' has no value in row 2"),
    "one row": (bad(time="t", group="id", channels=["y"],
                    columns=dict(id=["b", "b", "b", "a", "c"])),
                "group 'a' has one row only, row 3"),
    "no rows": (lambda: abx.SampledPath.from_dataframe(frame()[:0], channels=["x"]),
                "0 rows"),
    "no frame": (lambda: abx.SampledPath.from_dataframe([1.0]), "data frame of pandas"),
    "empty list": (lambda: abx.SampledPath.from_list([]), "not empty"),
    "channels": (lambda: abx.SampledPath.from_list([np.ones((2, 1)), np.ones((2, 3))]),
                 r"`arrays\[1\]` has 3 channels"),
    "series": (lambda: abx.SampledPath.from_list([[1.0, np.inf]]),
               "infinity in row 1"),
    "times": (lambda: abx.SampledPath.from_list([[1.0, 2.0]], [[0.0]]),
              "has 1 times, but `arrays"),
    "text in a list": (lambda: abx.SampledPath.from_list([["a", "b"]]), "numbers"),
    "clocks": (lambda: abx.SampledPath.from_channels([([0.0, 0.0], [1.0, 2.0])]),
               "row 1 repeats that in row 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_tables(case):
    call, message = BAD[case]
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        call()
    assert len(str(caught.value)) < 300

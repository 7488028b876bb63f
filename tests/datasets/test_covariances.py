"""Covariances of recordings, and windows of them split by time."""

import gzip

import numpy as np
import pytest

from arborax.datasets import (
    covariance_windows,
    CovarianceSeries,
    emg_covariances,
    ledoit_wolf,
    rolling_covariances,
    stock_covariances,
)


PLACE = np.array([[0, 1, 3], [1, 2, 4], [3, 4, 5]])


def test_shrinkage_follows_the_definition(rng):
    """Lemma 3.3, with the outer products written out."""
    x = rng.standard_normal((20, 3)) @ rng.standard_normal((3, 3))
    centred = x - x.mean(0)
    s = centred.T @ centred / 20
    target = np.trace(s) / 3 * np.eye(3)
    d2 = np.sum((s - target) ** 2)
    b2 = sum(np.sum((np.outer(r, r) - s) ** 2) for r in centred) / 20**2
    rate = min(b2, d2) / d2
    expected = (1 - rate) * s + rate * target
    np.testing.assert_allclose(ledoit_wolf(x), expected, rtol=1e-12)
    np.testing.assert_allclose(ledoit_wolf(np.ones((5, 2))), np.zeros((2, 2)))


def test_shrinkage_against_sklearn(rng):
    covariance = pytest.importorskip("sklearn.covariance")
    x = rng.standard_normal((20, 4)) @ rng.standard_normal((4, 4))
    expected = covariance.LedoitWolf().fit(x).covariance_
    np.testing.assert_allclose(ledoit_wolf(x), expected, rtol=1e-10)


def test_rolling_windows(rng):
    x = rng.standard_normal((30, 3))
    every = rolling_covariances(x, 20)
    assert every.shape == (11, 6)
    np.testing.assert_allclose(every[4][PLACE], ledoit_wolf(x[4:24]), rtol=1e-12)
    np.testing.assert_array_equal(
        rolling_covariances(x, 10, 10), rolling_covariances(x, 10)[::10]
    )
    with pytest.raises(ValueError, match="window"):
        rolling_covariances(x, 31)


def _series(length, overlap=1, breaks=()):
    """Multiples of one matrix: the factor says when a point was."""
    base = np.array([2.0, 0.5, 1.0, 0.1, 0.2, 3.0])
    return CovarianceSeries(np.arange(1.0, length + 1)[:, None] * base, overlap, breaks)


def test_windows_start_at_the_identity_and_keep_apart():
    parts = covariance_windows([_series(400, overlap=20)], 16, hop=1)
    for part in parts:
        assert part.dtype == np.float32 and part.shape[1:] == (17, 6)
        np.testing.assert_allclose(
            part[:, 0], [[1, 0, 1, 0, 0, 1]] * len(part), atol=1e-9
        )
    # A window that starts at s and ends at s + 16 shows the ratio (s + 17) / (s + 1).
    starts = [16 / (part[:, -1, 0].astype(float) - 1) - 1 for part in parts]
    ranges = [(round(s.min()), round(s.max()) + 16) for s in starts]
    assert ranges == [(0, 279), (300, 319), (340, 399)]


def test_whitening_is_a_congruence(rng):
    """Eigenvalues of `X_0^{-1} X_t`, whatever the factor."""
    raw = rng.standard_normal((80, 3, 3))
    spd = raw @ np.swapaxes(raw, 1, 2) + 0.5 * np.eye(3)
    values = spd[:, *np.tril_indices(3)]
    (train, _, _) = covariance_windows([CovarianceSeries(values, 1)], 2, hop=1)
    found = np.linalg.eigvalsh(train[5, 2][PLACE].astype(float))
    expected = np.sort(np.linalg.eigvals(np.linalg.solve(spd[5], spd[7])).real)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_windows_do_not_cross_recordings():
    whole = covariance_windows([_series(400)], 16, hop=1)[0]
    cut = covariance_windows([_series(400, breaks=(100, 250))], 16, hop=1)[0]
    assert len(whole) - len(cut) == 2 * 16
    both = covariance_windows([_series(400), _series(200)], 16, hop=1)[0]
    assert len(both) == len(whole) + 140 - 16
    with pytest.raises(ValueError, match="no validation window"):
        covariance_windows([_series(60)], 16)
    with pytest.raises(ValueError, match="leave something"):
        covariance_windows([_series(400)], 16, train=1.0)


def test_stock_file(tmp_path, rng):
    prices = np.exp(np.cumsum(0.01 * rng.standard_normal((40, 4)), axis=0))
    lines = ["Date,A,B,C,D"] + [
        f"2000-01-{k:02d}," + ",".join(str(p) for p in row)
        for k, row in enumerate(prices)
    ]
    file = tmp_path / "prices.csv.gz"
    with gzip.open(file, "wt") as text:
        text.write("\n".join(lines))
    (series,) = stock_covariances(("D", "A"), file=file)
    assert series.overlap == 20 and series.values.shape == (20, 3)
    returns = 100 * np.diff(np.log(prices[:, [3, 0]]), axis=0)
    expected = ledoit_wolf(returns[19:39])[np.tril_indices(2)]
    np.testing.assert_allclose(series.values[-1], expected, rtol=1e-8)
    with pytest.raises(ValueError, match="no stock 'Z'"):
        stock_covariances(("Z",), file=file)


def test_emg_file(tmp_path, rng):
    lines = ["time,c0,c1,c2,c3,c4,c5,c6,c7,label,exp"]
    for name, clocks in (("a", (0, 0)), ("b", (0,))):
        for start in clocks:
            for k in range(310):
                row = ",".join(str(v) for v in rng.integers(100, 150, 8))
                lines.append(f"{start + 4 * k + 5},{row},rest,{name}")
    file = tmp_path / "emg.csv"
    file.write_text("\n".join(lines))
    first, second = emg_covariances(window=50, file=file)
    assert first.values.shape == (12, 6) and first.breaks == (6,)
    assert second.values.shape == (6, 6) and second.breaks == ()


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install skfolio"):
        stock_covariances()
    with pytest.raises(ImportError, match="pip install geomstats"):
        emg_covariances()

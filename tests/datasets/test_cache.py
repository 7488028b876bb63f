"""The cache of data sets, and splits."""

import jax.random as jr
import numpy as np
import pytest

import arborax.datasets as datasets
from arborax.datasets import dataset, RoughBergomi, SPDDiffusion


SMALL = RoughBergomi(steps=8)


def _simulations(monkeypatch):
    calls = []
    original = RoughBergomi.sample

    def counted(self, *args, **kwargs):
        calls.append(self)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(RoughBergomi, "sample", counted)
    return calls


def test_second_call_reads_the_file(tmp_path, monkeypatch):
    calls = _simulations(monkeypatch)
    first = dataset(SMALL, 10, folder=tmp_path)
    second = dataset(SMALL, 10, folder=tmp_path)
    assert len(calls) == 1
    for name in ("ts", "values", "brackets"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert second.values.dtype == np.float32
    assert [p.suffix for p in tmp_path.iterdir()] == [".abx"]


def test_parameters_have_files_of_their_own(tmp_path):
    dataset(SMALL, 10, folder=tmp_path)
    dataset(SMALL, 11, folder=tmp_path)
    dataset(SMALL, 10, seed=1, folder=tmp_path)
    dataset(SMALL, 10, dtype=np.float64, folder=tmp_path)
    dataset(RoughBergomi(steps=8, hurst=0.1), 10, folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 5


@pytest.mark.parametrize("harm", ["flip", "truncate", "foreign", "empty"])
def test_damaged_file_is_replaced(tmp_path, monkeypatch, harm):
    first = dataset(SMALL, 10, folder=tmp_path)
    (file,) = tmp_path.iterdir()
    raw = bytearray(file.read_bytes())
    if harm == "flip":
        raw[-100] ^= 1
    file.write_bytes(
        {"truncate": raw[:-5], "foreign": b"hello", "empty": b""}.get(harm, raw)
    )
    calls = _simulations(monkeypatch)
    again = dataset(SMALL, 10, folder=tmp_path)
    np.testing.assert_array_equal(first.values, again.values)
    dataset(SMALL, 10, folder=tmp_path)
    assert len(calls) == 1


def test_law_without_brackets(tmp_path):
    law = SPDDiffusion(steps=8)
    for _ in range(2):
        assert dataset(law, 10, folder=tmp_path).brackets is None


def test_default_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ARBORAX_CACHE", str(tmp_path / "here"))
    dataset(RoughBergomi(steps=8, eta=0.0), 3)
    assert len(list((tmp_path / "here").iterdir())) == 1
    monkeypatch.delenv("ARBORAX_CACHE")
    assert datasets.cache_folder().name == "arborax"


def test_splits_are_disjoint_and_complete():
    data = RoughBergomi(steps=8, eta=0.0).sample(1003, key=jr.PRNGKey(0))
    parts = data.split()
    assert [len(part) for part in parts] == [802, 100, 101]
    joined = np.concatenate([part.values for part in parts])
    np.testing.assert_array_equal(joined, data.values)
    with pytest.raises(ValueError, match="leave something"):
        data.split(0.9, 0.1)

"""PPG-DaLiA, on a made file of its format."""

import pickle

import numpy as np
import pytest

from arborax.datasets import read_ppg_dalia
from arborax.datasets._ppg_dalia import LAYOUTS, read_subject, SUBJECT_LAYOUTS


SECONDS = 400


def _subject(rng):
    return {
        "subject": "S1",
        "signal": {
            "wrist": {
                "ACC": rng.standard_normal((32 * SECONDS, 3)),
                "BVP": rng.standard_normal((64 * SECONDS, 1)),
                "EDA": rng.standard_normal((4 * SECONDS, 1)),
                "TEMP": 30 + rng.standard_normal((4 * SECONDS, 1)),
            },
            "chest": {"ECG": np.zeros((10, 1))},
        },
        # Windows of eight seconds, every two.
        "label": 60 + 20 * rng.random(SECONDS // 2 - 3),
    }


@pytest.fixture
def folder(tmp_path, rng):
    for number in (1, 4):
        place = tmp_path / "PPG_FieldStudy" / f"S{number}"
        place.mkdir(parents=True)
        (place / f"S{number}.pkl").write_bytes(pickle.dumps(_subject(rng)))
    return tmp_path


def test_subject(folder):
    file = folder / "PPG_FieldStudy" / "S1" / "S1.pkl"
    signals, rates = read_subject(file)
    raw = pickle.loads(file.read_bytes())
    assert signals.shape == (64 * SECONDS, 6) and rates.shape == (SECONDS // 2,)
    wrist = raw["signal"]["wrist"]
    # The three axes of the acceleration share one scale, and stand twice.
    low, high = wrist["ACC"].min(), wrist["ACC"].max()
    scaled = 2 * (wrist["ACC"] - low) / (high - low) - 1
    np.testing.assert_allclose(signals[1::2, :3], scaled)
    np.testing.assert_allclose(signals[::2, :3], scaled)
    for column in (3, 4, 5):
        assert (signals[:, column].min(), signals[:, column].max()) == (-1, 1)
    np.testing.assert_allclose(signals[:16, 5], signals[0, 5])
    assert (rates[:4] == rates[0]).all() and (rates.min(), rates.max()) == (-1, 1)


def test_windows_and_frozen_splits(folder):
    data = read_ppg_dalia(folder, lengths=(2560, 1280, 20, 10))
    assert data.subjects == (1, 4)
    for inputs, targets in (data.train, data.validation, data.test):
        assert inputs.shape[1:] == (2560, 6) and targets.shape[1:] == (20,)
        assert len(inputs) == len(targets) > 0 and inputs.dtype == np.float32
    # 200 rates: 140 for training, 30 and 30; windows of 20 every 10.
    assert [len(p[0]) for p in (data.train, data.validation, data.test)] == [26, 4, 4]
    # Subject 1 has layout 5: training is the last 70 %, validation .15 to .3.
    signals, rates = read_subject(folder / "PPG_FieldStudy" / "S1" / "S1.pkl")
    np.testing.assert_allclose(data.train[1][0], rates[60:80], atol=1e-6)
    np.testing.assert_allclose(data.validation[1][0], rates[30:50], atol=1e-6)
    np.testing.assert_allclose(data.test[1][0], rates[:20], atol=1e-6)
    np.testing.assert_allclose(
        data.train[0][1], signals[70 * 128 : 90 * 128], atol=1e-6
    )
    assert len(SUBJECT_LAYOUTS) == 15 and max(SUBJECT_LAYOUTS) < len(LAYOUTS)


def test_other_pickles_are_refused(folder, tmp_path):
    file = folder / "PPG_FieldStudy" / "S1" / "S1.pkl"
    file.write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(pickle.UnpicklingError, match="os.system|posix"):
        read_ppg_dalia(folder)
    file.write_bytes(pickle.dumps({"signal": {}}))
    with pytest.raises(ValueError, match="wrist"):
        read_ppg_dalia(folder)
    with pytest.raises(FileNotFoundError, match="UCI"):
        read_ppg_dalia(tmp_path / "nothing")

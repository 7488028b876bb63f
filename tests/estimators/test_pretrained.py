"""The trained estimators that come with the package."""

import importlib.resources

import jax
import numpy as np
import pytest


pytest.importorskip("sklearn")

import arborax as abx  # noqa: E402


NAMES = ("rough-bergomi", "so-rotation", "spd")


@pytest.mark.parametrize("name", NAMES)
def test_files_are_small_and_say_what_they_are(name):
    folder = importlib.resources.files("arborax.estimators") / "trained_files"
    assert len((folder / f"{name}.abx").read_bytes()) < 100_000
    about = abx.pretrained(name).about_
    assert "seed 42" in about["data"] and name in about["command"]
    assert about["scores"]


def test_generators_sample():
    with jax.enable_x64(False):
        paths = abx.pretrained("rough-bergomi").sample(3, random_state=0)
        matrices = abx.pretrained("spd").sample(3, random_state=0)
    assert paths.shape == (3, 513, 1) and np.isfinite(paths).all()
    assert matrices.shape == (3, 129, 3, 3)
    assert np.linalg.eigvalsh(matrices).min() > 0


def test_forecasts_beat_no_change():
    law = abx.datasets.FreeRotation(times=21)
    truth = law.sample(50, seed=7).rotations.astype(np.float32)
    with jax.enable_x64(False):
        forecaster = abx.pretrained("so-rotation")
        assert forecaster.predict(truth[:, :12]).shape == (50, 9, 3, 3)
        assert forecaster.score(truth) > 0.5


def test_unknown_names_list_the_known():
    with pytest.raises(ValueError, match="rough-bergomi.*so-rotation.*spd"):
        abx.pretrained("heston")

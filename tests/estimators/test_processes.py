"""Estimators that were fitted here give the same bits in a fresh process."""

import os
import subprocess
import sys

import jax.random as jr
import numpy as np
import pytest


pytest.importorskip("sklearn")

import arborax as abx  # noqa: E402
from arborax import estimators  # noqa: E402
from arborax.estimators import PathGenerator, SequenceClassifier  # noqa: E402


# Two steps teach nothing, and the estimators say so.
pytestmark = pytest.mark.filterwarnings("ignore:nothing was learned")
FRESH = """
import pathlib, sys, numpy as np
from arborax.estimators import load_estimator

x = np.load("x.npy")
for file in pathlib.Path("others").glob("*.abx"):
    made = load_estimator(file)
    take = made.transform if hasattr(made, "transform") else made.predict
    np.save(file.with_suffix(".npy"), take(x))
np.save("classes.npy", load_estimator("classifier.abx").predict_proba(x))
np.save("paths.npy", load_estimator("generator.abx").sample(3, random_state=0))
if len(sys.argv) > 1:
    from arborax.cli import main
    main(sys.argv[1:])
"""


def test_a_fresh_process_gives_the_same_bits(rng, tmp_path, monkeypatch):
    """Each estimator but those of kernels, which have a test of their own; and the
    command `predict` where it is installed."""
    monkeypatch.chdir(tmp_path)
    x = np.cumsum(rng.normal(size=(12, 9, 2)), axis=1)
    labels = np.arange(12) % 2
    quick = dict(steps=2, batch_size=8, random_state=0)
    options = dict(hidden=4, width=4, window=4)
    classifier = SequenceClassifier(options=options, **quick).fit(x, labels)
    quick |= dict(features=8, cylinders=24, noise=1)
    generator = PathGenerator(options=options, **quick).fit(x - x[:, :1])
    classifier.save("classifier.abx")
    generator.save("generator.abx")
    np.save("x.npy", x)
    size = x[:, 0, 0]
    turns = [abx.SO(3).random_point(key=jr.key(k)) for k in range(12)]
    quick = dict(steps=2, batch_size=8, random_state=0, options=options)
    others = [
        estimators.SignatureFeatures("grossman-larson", 2, window=4).fit(x),
        estimators.SequenceRegressor(**quick).fit(x, size),
        estimators.SequenceRegressor(geometry=abx.SO(3), **quick).fit(x, turns),
        estimators.Forecaster(horizon=2, **quick).fit(x),
        estimators.ReservoirClassifier(hidden=8, random_state=0).fit(x, labels),
        estimators.ReservoirRegressor(hidden=8, random_state=0).fit(x, size),
    ]
    (tmp_path / "others").mkdir()
    for k, fitted in enumerate(others):
        fitted.save(f"others/{k}.abx")
    command = []
    if all(map(_there, ("tyro", "pyarrow", "matplotlib"))):
        from arborax.cli import main

        np.savez("data.npz", x=x, y=labels)
        train = "--model gru --steps 2 --batch-size 8 --no-progress"
        main(f"fit data.npz --task classify {train}".split())
        command = "predict model.abx data.npz --out".split()
        main([*command, "here.csv"])
        command.append("there.csv")
    subprocess.run(
        [sys.executable, "-c", FRESH, *command],
        env=os.environ | {"JAX_ENABLE_X64": "1"},
        check=True,
    )
    expected = classifier.predict_proba(x)
    np.testing.assert_array_equal(np.load("classes.npy"), expected)
    expected = generator.sample(3, random_state=0)
    np.testing.assert_array_equal(np.load("paths.npy"), expected)
    for k, fitted in enumerate(others):
        take = fitted.transform if k == 0 else fitted.predict
        np.testing.assert_array_equal(np.load(f"others/{k}.npy"), take(x))
    if command:
        here, there = ((tmp_path / f"{n}.csv").read_bytes() for n in ("here", "there"))
        assert here == there


def _there(name):
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def test_a_file_of_an_estimator_says_how_to_read_it(rng, tmp_path):
    features = abx.estimators.SignatureFeatures().fit(rng.normal(size=(4, 5, 2)))
    features.save(tmp_path / "f.abx")
    with pytest.raises(ValueError, match="SignatureFeatures; read it by .*load_estima"):
        abx.load(tmp_path / "f.abx")


def test_a_generator_of_random_numbers_is_not_saved(rng, tmp_path):
    x, y = rng.normal(size=(8, 5, 2)), np.arange(8) % 2
    given = np.random.RandomState(0)
    fitted = SequenceClassifier("gru", steps=2, random_state=given).fit(x, y)
    fitted.save(tmp_path / "c.abx")
    again = SequenceClassifier.load(tmp_path / "c.abx")
    assert again.random_state is None
    np.testing.assert_array_equal(again.predict_proba(x), fitted.predict_proba(x))


def test_labels_that_are_missing(rng):
    x = rng.normal(size=(4, 5, 2))
    for missing in (None, np.nan):
        with pytest.raises(ValueError, match="no label in row 2"):
            SequenceClassifier("gru").fit(x, np.array(["a", "b", missing, "a"], object))

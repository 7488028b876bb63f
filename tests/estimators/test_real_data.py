"""Recorded data: JapaneseVowels of `aeon`, with unequal lengths; PenDigits and Epilepsy
of the UEA archive, from the folder that the environment variable `ARBORAX_UEA` names,
with files `NAME.npz` of `x` (n, times, channels), `y` and `train`, the size of the
training part."""

import os
import pathlib

import numpy as np
import pytest


pytest.importorskip("sklearn")

from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

import arborax as abx  # noqa: E402
from arborax.estimators import (  # noqa: E402
    SequenceClassifier,
    SignatureFeatures,
    SignatureKernelClassifier,
)


def vowels():
    pytest.importorskip("aeon", reason="JapaneseVowels comes with the package aeon")
    parts = abx.datasets.read_aeon("JapaneseVowels")
    for part in parts:
        series = [x[:n] for x, n in zip(part.values, part.lengths)]
        yield series, np.array(part.classes)[part.labels]


def uea(name):
    folder = os.environ.get("ARBORAX_UEA")
    file = pathlib.Path(folder or "") / f"{name}.npz"
    if folder is None or not file.exists():
        pytest.skip(f"set ARBORAX_UEA to a folder with {name}.npz")
    data = np.load(file, allow_pickle=False)
    x, y, n = data["x"], data["y"], int(data["train"])
    return (x[:n], y[:n]), (x[n:], y[n:])


def linear(**options):
    return make_pipeline(
        SignatureFeatures(**options), StandardScaler(), LogisticRegression(max_iter=500)
    )


def test_features_of_japanese_vowels():
    train, test = vowels()
    model = linear(basepoint=True).fit(*train)
    assert model.score(*test) > 0.95


def test_words_of_pen_digits():
    train, test = uea("PenDigits")
    model = linear(alg="shuffle", depth=3, basepoint=True)
    assert model.fit(*train).score(*test) > 0.9


def test_brackets_of_epilepsy():
    """What tells movements apart is their quadratic variation: words alone do not."""
    train, test = uea("Epilepsy")
    assert linear(basepoint=True).fit(*train).score(*test) > 0.85
    words = linear(alg="shuffle", basepoint=True, window=52)
    assert words.fit(*train).score(*test) < 0.7


@pytest.mark.slow
def test_classifiers_on_japanese_vowels():
    train, test = vowels()
    kernel = SignatureKernelClassifier("geometric", 3)
    assert kernel.fit(*train).score(*test) > 0.9
    model = SequenceClassifier(steps=300, random_state=0).fit(*train)
    assert model.score(*test) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["PenDigits", "Epilepsy"])
def test_classifier_on_uea(name):
    (x, y), test = uea(name)
    model = SequenceClassifier(steps=600, random_state=0).fit(x, y)
    assert model.score(*test) > 0.85

"""Recorded data: JapaneseVowels of `aeon`, with unequal lengths; PenDigits and Epilepsy
of the UEA archive, files `NAME.npz` of `x` (n, times, channels), `y` and `train`, the
size of the training part, from the folder `shared/data/uea` beside the checkout or the
one that the environment variable `ARBORAX_UEA` names; the S&P 500 of `arch` and twenty
stocks of `skfolio`."""

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
    PathGenerator,
    SequenceClassifier,
    SignatureFeatures,
    SignatureKernelClassifier,
)


ROOT = pathlib.Path(__file__).resolve().parents[2]
UEA = os.environ.get("ARBORAX_UEA") or ROOT.parent / "shared" / "data" / "uea"


def vowels():
    pytest.importorskip("aeon", reason="JapaneseVowels comes with the package aeon")
    parts = abx.datasets.read_aeon("JapaneseVowels")
    for part in parts:
        series = [x[:n] for x, n in zip(part.values, part.lengths)]
        yield series, np.array(part.classes)[part.labels]


def uea(name):
    file = pathlib.Path(UEA) / f"{name}.npz"
    if not file.exists():
        pytest.skip(f"no {name}.npz; ARBORAX_UEA may name a folder that has it")
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


def windows(prices, days=16):
    """Logarithms of prices from the start of each window, one row per day."""
    pd = pytest.importorskip("pandas")
    count = (len(prices) - 1) // days
    rows = np.arange(count)[:, None] * days + np.arange(days + 1)
    logs = np.log(prices.to_numpy())[rows]
    logs = (logs - logs[:, :1]).reshape(-1, logs.shape[-1])
    frame = pd.DataFrame(logs, columns=list(prices.columns))
    frame.insert(0, "day", np.tile(np.arange(days + 1), count))
    frame.insert(0, "window", np.repeat(np.arange(count), days + 1))
    return frame


def sp500():
    pytest.importorskip("arch", reason="the S&P 500 comes with the package arch")
    from arch.data import sp500

    return sp500.load()[["Adj Close"]].rename(columns={"Adj Close": "index"})


def test_periods_of_the_sp500(tmp_path, capsys, monkeypatch):
    """By the command: the crisis has another law than the years before it, two halves
    of those years have one."""
    pytest.importorskip("tyro")
    pytest.importorskip("matplotlib").use("agg")
    from arborax.cli import main

    monkeypatch.chdir(tmp_path)
    days = sp500()
    windows(days["2004":"2006"]).to_csv("calm.csv", index=False)
    windows(days["2007-07":"2009"]).to_csv("crisis.csv", index=False)
    calm = windows(days["2004":"2006"])
    for k in (0, 1):
        calm[calm["window"] % 2 == k].to_csv(f"half{k}.csv", index=False)

    def p_value(*files):
        options = "--time day --group window --permutations 200"
        main(["compare", *files, *options.split()])
        return float(capsys.readouterr().out.split("p = ")[1].split()[0])

    assert p_value("calm.csv", "crisis.csv") < 0.01
    assert p_value("half0.csv", "half1.csv") > 0.05


@pytest.mark.filterwarnings("ignore")
def test_years_of_twenty_stocks():
    """Brackets of two stocks tell the crisis from the years before it."""
    pytest.importorskip("skfolio", reason="the stocks come with the package skfolio")
    from skfolio.datasets import load_sp500_dataset

    prices, sides = load_sp500_dataset()[["AAPL", "JPM"]], []
    for start, end in (("2004", "2006"), ("2007-07", "2009")):
        frame = windows(prices[start:end])
        sides.append(
            abx.SampledPath.from_dataframe(frame, time="day", group="window").xs
        )
    x = np.concatenate(sides)
    y = np.repeat([0, 1], [len(side) for side in sides])
    model = linear().fit(x[::2], y[::2])
    assert model.score(x[1::2], y[1::2]) > 0.75


@pytest.mark.slow
def test_generated_windows_of_the_sp500():
    """Levels and tails are within twice the floor of windows that were not seen."""
    frame = windows(sp500())
    x = abx.SampledPath.from_dataframe(frame, time="day", group="window").xs
    generator = PathGenerator(
        steps=100,
        batch_size=128,
        options=dict(hidden=8, width=16),
        features=32,
        cylinders=192,
        random_state=0,
    )
    scores = generator.fit(x[::2]).compare(x[1::2])
    for name in ("middle", "end", "maximum", "tails"):
        assert scores[name]["ks"] < 2 * scores[name]["floor"], (name, scores[name])


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

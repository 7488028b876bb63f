"""Kernel estimators against scikit-learn on the Gram matrices of the library."""

import subprocess
import sys

import numpy as np
import pytest


pytest.importorskip("sklearn")

from sklearn.kernel_ridge import KernelRidge  # noqa: E402
from sklearn.svm import SVC  # noqa: E402

import arborax as abx  # noqa: E402
from arborax.estimators import (  # noqa: E402
    SignatureKernelClassifier,
    SignatureKernelRegressor,
)


OPTIONS = dict(normalise=True, add_time=True, add_basepoint=True)


@pytest.fixture
def data(rng):
    X = np.cumsum(rng.normal(size=(16, 8, 2)), axis=1)
    return X, X[:, -1, 0] > 0


def gram(kernel, X, Y=None):
    """Kernels of standardised series on times from 0 to 1."""
    train = X if Y is None else Y
    units = train.mean(axis=(0, 1)), train.std(axis=(0, 1))
    ts = np.linspace(0, 1, 8)
    paths = [abx.SampledPath(ts, (a - units[0]) / units[1]) for a in (X, train)]
    kernel = kernel.fit(paths[1])
    return np.asarray(kernel.gram(*paths))


@pytest.mark.parametrize("case", [("geometric", None), ("ito", 3)])
def test_classifier(data, case, rng):
    X, y = data
    fitted = SignatureKernelClassifier(*case, C=5.0).fit(X, y)
    scale = "auto" if case[1] is None else "median"
    kernel = abx.SignatureKernel(*case, scale=scale, **OPTIONS)
    new = np.cumsum(rng.normal(size=(5, 8, 2)), axis=1)
    rows = gram(kernel, new, X)
    np.testing.assert_allclose(fitted.gram(new), rows, atol=1e-10)
    svm = SVC(C=5.0, kernel="precomputed").fit(gram(kernel, X), y)
    found = fitted.decision_function(new)
    np.testing.assert_allclose(found, svm.decision_function(rows), atol=1e-8)
    assert (fitted.predict(new) == svm.predict(rows)).all()
    assert fitted.score(X, y) > 0.9


def test_regressor_is_kernel_ridge_and_a_gaussian_process(data):
    X, _ = data
    y = 3.0 + 2.0 * X[:, -1, 0]
    fitted = SignatureKernelRegressor("ito", 2, alpha=0.1).fit(X[:12], y[:12])
    kernel = abx.SignatureKernel("ito", 2, scale="median", **OPTIONS)
    square, rows = gram(kernel, X[:12]), gram(kernel, X[12:], X[:12])
    ridge = KernelRidge(alpha=0.1, kernel="precomputed")
    scaled = (y[:12] - y[:12].mean()) / y[:12].std()
    expected = ridge.fit(square, scaled).predict(rows) * y[:12].std() + y[:12].mean()
    mean, spread = fitted.predict(X[12:], return_std=True)
    np.testing.assert_allclose(mean, expected, atol=1e-8)
    inverse = np.linalg.inv(square + 0.1 * np.eye(12))
    variance = 1 - np.einsum("ij,jk,ik->i", rows, inverse, rows)
    np.testing.assert_allclose(spread, y[:12].std() * np.sqrt(variance), atol=1e-8)
    two = SignatureKernelRegressor("ito", 2).fit(X, np.stack([y, -y], axis=1))
    assert two.predict(X).shape == (16, 2)
    assert two.predict(X, return_std=True)[1].shape == (16, 2)


def test_refusals(data):
    X, y = data
    with pytest.raises(ValueError, match="only one class"):
        SignatureKernelClassifier().fit(X, np.zeros(16, int))
    with pytest.raises(ValueError, match="NaN"):
        SignatureKernelRegressor().fit(X, np.full(16, np.nan))
    with pytest.raises(ValueError, match="`alpha` must be"):
        SignatureKernelRegressor(alpha=0.0).fit(X, X[:, 0, 0])
    fitted = SignatureKernelClassifier("ito", 2).fit(X, y)
    with pytest.raises(ValueError, match="fitted with 2"):
        fitted.predict(X[..., :1])


FRESH = """
import sys
import jax
import numpy as np
from arborax.estimators import load_estimator

jax.config.update("jax_enable_x64", True)
x = np.load(sys.argv[2])
np.save(sys.argv[3], load_estimator(sys.argv[1]).predict(x))
"""


@pytest.mark.parametrize("kind", [SignatureKernelClassifier, SignatureKernelRegressor])
def test_saved_and_loaded_in_a_fresh_process(kind, rng, tmp_path):
    x = np.cumsum(rng.normal(size=(12, 6, 2)), axis=1)
    y = np.arange(12) % 3
    labels = np.array(["low", "mid", "top"])[y]
    model = kind("geometric", 2)
    model.fit(x, y if kind is SignatureKernelRegressor else labels)
    model.save(tmp_path / "k.abx")
    np.save(tmp_path / "x.npy", x)
    arguments = [str(tmp_path / name) for name in ("k.abx", "x.npy", "y.npy")]
    subprocess.run([sys.executable, "-c", FRESH, *arguments], check=True)
    found = np.load(tmp_path / "y.npy")
    np.testing.assert_array_equal(found, model.predict(x))
    again = kind.load(tmp_path / "k.abx")
    np.testing.assert_array_equal(again.gram(x), model.gram(x))

"""Support vector machines and Gaussian processes with signature kernels."""

import dataclasses
from typing import Any

import equinox as eqx
import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import ClassifierMixin
from sklearn.svm import SVC

from .._inputs import as_number
from ..kernels import SignatureKernel
from ..paths import SampledPath
from ._blocks import blocks
from ._collections import known_paths, training_paths
from ._saving import Saved
from ._scaling import Scaling
from ._targets import as_labels, as_targets, Regressor


BLOCK = 64


@eqx.filter_jit
def _standardise(scaling: Scaling, path: SampledPath) -> SampledPath:
    return scaling.apply(path)


@dataclasses.dataclass(eq=False, repr=False)
class KernelEstimator(Saved):
    """A signature kernel of standardised series, fixed by the training data."""

    kind: Any = "geometric"
    depth: int | None = None
    _: dataclasses.KW_ONLY
    kernel_options: Any = None
    standardise: bool = True
    channels_last: bool = True

    def _fit_gram(self, path: SampledPath) -> np.ndarray:
        """The Gram matrix of the training paths; learns units and the scale."""
        self.n_features_in_ = path.dim
        self.scaling_ = Scaling.of(path, self.standardise)
        scale = "auto" if self.depth is None else "median"
        usual = dict(scale=scale, normalise=True, add_time=True, add_basepoint=True)
        options = usual | dict(self.kernel_options or {})
        kernel = SignatureKernel(self.kind, self.depth, **options)  # pyright: ignore
        self.paths_ = _standardise(self.scaling_, path)
        self.kernel_ = kernel.fit(self.paths_)
        return np.asarray(self.kernel_.gram(self.paths_), np.float64)

    def gram(self, X: Any) -> np.ndarray:
        """The kernel of series `X` with those of `fit`, `(n, training series)`."""
        return self._gram(known_paths(self, X))

    def _gram(self, path: SampledPath) -> np.ndarray:
        rows = []
        for block, count in blocks(path, self.paths_.num_times, BLOCK):
            block = _standardise(self.scaling_, block)
            rows.append(np.asarray(self.kernel_.gram(block, self.paths_))[:count])
        return np.concatenate(rows).astype(np.float64)


@dataclasses.dataclass(eq=False, repr=False)
class SignatureKernelClassifier(ClassifierMixin, KernelEstimator):
    """A support vector machine with a signature kernel.

    `sklearn.svm.SVC` on the Gram matrix of [`arborax.SignatureKernel`][], whose scale
    is fixed by the training series. Cost: one kernel for each pair of training series,
    and for each pair of a new and a training one.

    **Arguments:**

    - `kind`, `depth`: of [`arborax.SignatureKernel`][].
    - `kernel_options`: its further options, a dictionary. By default
        `scale="median"` (`"auto"` without a depth), `normalise=True`,
        `add_time=True` and `add_basepoint=True`.
    - `C`, `class_weight`: of `sklearn.svm.SVC`.
    - `standardise`, `channels_last`: as in
        [`arborax.estimators.SignatureFeatures`][].
    """

    _: dataclasses.KW_ONLY
    C: float = 10.0
    class_weight: Any = None

    def fit(self, X: Any, y: Any) -> "SignatureKernelClassifier":
        """Series `X` (see [`arborax.estimators.as_paths`][]) with labels `y`."""
        path = training_paths(self, X, self.standardise)
        self.labels_ = as_labels(path, y)
        self.gram_ = self._fit_gram(path)
        self._restore()
        self.classes_ = self.svm_.classes_
        return self

    def _restore(self) -> None:
        # Files hold the Gram matrix: the machine that it gives is always the same.
        svm = SVC(C=self.C, kernel="precomputed", class_weight=self.class_weight)
        self.svm_ = svm.fit(self.gram_, self.labels_)

    def decision_function(self, X: Any) -> np.ndarray:
        """That of `sklearn.svm.SVC`."""
        gram = self.gram(X)
        return self.svm_.decision_function(gram)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each series."""
        gram = self.gram(X)
        return self.svm_.predict(gram)


@dataclasses.dataclass(eq=False, repr=False)
class SignatureKernelRegressor(Regressor, KernelEstimator):
    r"""Kernel ridge regression, or the Gaussian process whose mean it is.

    With $K$ the Gram matrix of the training series and targets in their standard
    units, the prediction is $k^T (K + \alpha)^{-1} y$, and the variance of the process
    $k(x, x) - k^T (K + \alpha)^{-1} k$. Cost: that of the Gram matrix, and one
    Cholesky factor of it.

    **Arguments:** as [`arborax.estimators.SignatureKernelClassifier`][], and

    - `alpha`: the ridge, which is the variance of the noise of the process, in
        units of the variance of the targets.
    """

    _: dataclasses.KW_ONLY
    alpha: float = 1e-2

    def fit(self, X: Any, y: Any) -> "SignatureKernelRegressor":
        """Series `X` with targets `(n,)` or `(n, outputs)`."""
        path = training_paths(self, X, self.standardise)
        y = as_targets(path, y)
        as_number("alpha", self.alpha, 0, above=True)
        gram = self._fit_gram(path)
        self.target_mean_, deviation = y.mean(axis=0), y.std(axis=0)
        self.target_deviation_ = np.where(deviation > 0, deviation, 1.0)
        ridge = self.alpha * np.eye(len(gram))
        self.factor_, _ = cho_factor(gram + ridge, lower=True)
        scaled = (y - self.target_mean_) / self.target_deviation_
        self.dual_coef_ = cho_solve((self.factor_, True), scaled)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predicted targets; with `return_std` also the standard deviations of the
        Gaussian process, noise not included."""
        path = known_paths(self, X)
        gram = self._gram(path)
        mean = gram @ self.dual_coef_ * self.target_deviation_ + self.target_mean_
        if not return_std:
            return mean
        block = _standardise(self.scaling_, path)
        own = np.asarray(self.kernel_(block, block), np.float64)
        solved = cho_solve((self.factor_, True), gram.T).T
        lost = np.sum(gram * solved, axis=1)
        spread = np.sqrt(np.maximum(own - lost, 0.0))
        spread = spread.reshape(-1, *(1,) * np.ndim(self.target_mean_))
        return mean, spread * self.target_deviation_

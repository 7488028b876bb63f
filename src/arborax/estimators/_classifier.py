"""Classification of series."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_sample_weight

from ._models import last_output
from ._sequence import SequenceEstimator
from ._targets import as_labels


def cross_entropy(model: Any, batch: Any, key: Any) -> jax.Array:
    """Weighted mean of the cross-entropy of labels after the last sample."""
    items, lengths, labels, weights = batch
    logits = jax.vmap(lambda item, n: last_output(model, item, n))(items, lengths)
    logs = jax.nn.log_softmax(logits)
    picked = jnp.take_along_axis(logs, labels[:, None], axis=1)[:, 0]
    return -jnp.sum(picked * weights) / jnp.sum(weights)


@dataclasses.dataclass(eq=False, repr=False)
class SequenceClassifier(ClassifierMixin, SequenceEstimator):
    """Classifies series with a sequence model, B-NRDE by default.

    The model reads the standardised series, with time as the first channel. The class
    probabilities are the softmax of its output after the last sample. It is trained by
    [`arborax.fit`][] on the cross-entropy, with early stopping on held-out series.
    Series may have any length, and gaps.

    !!! example

        ```python
        model = abx.estimators.SequenceClassifier(steps=500, random_state=0)
        model.fit(X, y).score(X_test, y_test)
        model.predict_proba(X_test)
        ```

    **Arguments:**

    - `model`: `"bnrde"`, `"linear-bnrde"`, `"log-ncde"`, `"nrde"`, `"ncde"`,
        `"ncde++"`, `"gru"`, `"xlstm"`, `"stacked-xlstm"`; a function `(channels,
        output, *, key, **options)` that builds a model; or a model.
    - `options`: a dictionary of options of the model. The first two models also take
        `alg` (`"ito"`, `"shuffle"`, ...) and `log_depth`; without `window` a path has
        about 16 windows.
    - `class_weight`: `"balanced"` or a dictionary, as in scikit-learn.
    - `steps`, `batch_size`, `learning_rate`, `optimiser`, `average`, `patience`,
        `progress`: as in [`arborax.fit`][].
    - `validation`: fraction of the series held out to choose the best weights and to
        stop early. They are evaluated once per epoch, at most every tenth step. `None`:
        train on all series for `steps` steps.
    - `standardise`: subtract the mean and divide by the standard deviation of each
        channel, in the series that are not held out.
    - `time`: add time as the first channel, from 0 to 1 over the longest series.
    - `channels_last`: `False` for arrays `(n, channels, times)`.
    - `random_state`: seed of weights, batches and split.
    """

    model: Any = "bnrde"
    _: dataclasses.KW_ONLY
    class_weight: Any = None

    def fit(self, X: Any, y: Any) -> "SequenceClassifier":
        """Trains on series `X` (see [`arborax.estimators.as_paths`][]) with labels
        `y`, numbers or names, `(n,)`."""
        path, key = self._start(X, self.standardise)
        y = as_labels(path, y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        weights = compute_sample_weight(self.class_weight, y)
        init, train = jr.split(key)
        rows = self._split(path, train, self.standardise, labels)
        model = self._make(self.model, len(self.classes_), init)
        items, lengths = self._items(model, path)
        dtype = path.xs.dtype
        data = items, lengths, labels.astype(np.int32), weights.astype(dtype)
        self._train(model, data, cross_entropy, train, rows)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Logits `(n, classes)`; for two classes their difference `(n,)`."""
        logits = self._outputs(X)
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities `(n, classes)`, in the order of `classes_`."""
        return np.asarray(jax.nn.softmax(self._outputs(X)))

    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of each series."""
        best = np.argmax(self._outputs(X), axis=1)
        return self.classes_[best]

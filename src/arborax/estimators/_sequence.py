"""What estimators with a trained sequence model have in common."""

import dataclasses
import warnings
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from .._inputs import as_count
from ..paths import add_time, SampledPath
from ..training import fit, FitResult
from ._blocks import blocks, lengths_of
from ._collections import known_paths, training_paths
from ._models import last_output, make_model, prepare
from ._saving import Saved
from ._scaling import Scaling


BLOCK = 256
SHORTEST = 10  # steps between validations: epochs of few series are shorter


NOTHING = (
    "nothing was learned: on the held-out part no weights were better than those "
    "before training. Give it more data or steps, or try a smaller model: "
    '`model="linear-bnrde"`, or `SignatureFeatures` with a linear model.'
)


@eqx.filter_jit
def prepare_paths(
    model: Any,
    scaling: Scaling,
    path: SampledPath,
    time: bool,
    filling: Literal["linear", "forward"] = "linear",
) -> Any:
    path = scaling.apply(path).filled(filling)
    path = (add_time(path) if time else path).broadcast()
    return jax.vmap(lambda one: prepare(model, one))(path)


@eqx.filter_jit
def last_outputs(model: Any, items: Any, lengths: Array) -> Array:
    """Outputs `(n, *point)` after the last sample of each path."""
    return jax.vmap(lambda item, n: last_output(model, item, n))(items, lengths)


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class TrainedEstimator(Saved):
    """A model of [`arborax.models`][] trained by [`arborax.fit`][].

    After `fit`: `model_` is the trained model, `result_` the [`arborax.FitResult`][]
    with the history of the training, `held_out_` the indices of the series that were
    not trained on (not for generators). Set `checkpoints` to a folder before `fit` to
    resume a run that was stopped there.
    """

    options: Any = None
    steps: int = 1000
    batch_size: int = 64
    learning_rate: float | None = 3e-3
    optimiser: Any = "adamw"
    validation: float | None = 0.2
    patience: int | None = 20
    average: float | None = 0.99
    channels_last: bool = True
    random_state: Any = None
    progress: bool = False
    checkpoints: Any = dataclasses.field(default=None, init=False)

    def _start(self, X: Any, centred: bool) -> tuple[SampledPath, Any]:
        """Training paths and a key; learns origin and sizes."""
        path = training_paths(self, X, centred)
        self.n_features_in_ = path.dim
        self.length_ = path.num_times
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        return path, jr.PRNGKey(seed)

    def _run(
        self, model: Any, data: Any, objective: Any, key: Any, **options: Any
    ) -> FitResult:
        """`fit` with the parameters of the estimator."""
        result = fit(
            model,
            data,
            objective,
            key=key,
            steps=as_count("steps", self.steps),
            optimiser=self.optimiser,
            learning_rate=self.learning_rate,
            average=self.average,
            progress=self.progress,
            checkpoint=self.checkpoints,
            **options,
        )
        if result.stop == "non-finite":
            warnings.warn(result.message, RuntimeWarning, stacklevel=4)
        elif result.best_step == 0 and result.best_metric is not None:
            warnings.warn(NOTHING, ConvergenceWarning, stacklevel=4)
        self.result_, self.model_ = result, result.model
        return result

    def _check(self, X: Any) -> SampledPath:
        """Paths for a fitted estimator."""
        return known_paths(self, X)


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class SequenceEstimator(TrainedEstimator):
    """A model that reads series, with time as first channel."""

    standardise: bool = True
    time: bool = True
    _filling: ClassVar[Literal["linear", "forward"]] = "linear"

    @property
    def _channels(self) -> int:
        return self.n_features_in_ + (1 if self.time else 0)

    def _make(self, model: Any, output: Any, key: Any) -> Any:
        """The model by its name, for the training series."""
        return make_model(
            model,
            self._channels,
            output,
            times=self.length_,
            options=self.options,
            dtype=self.scaling_.dtype,
            key=key,
        )

    def _items(self, model: Any, path: SampledPath) -> tuple[Any, np.ndarray]:
        """What the model is given of each path, stacked, and the lengths."""
        parts = []
        for block, count in blocks(path, self.length_, BLOCK):
            items = prepare_paths(model, self.scaling_, block, self.time, self._filling)
            parts.append(jax.tree.map(lambda leaf: np.asarray(leaf)[:count], items))
        items = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
        return items, lengths_of(path).astype(np.int32)

    def _split(
        self, path: SampledPath, key: Any, standardise: bool, stratify: Any = None
    ) -> np.ndarray:
        """The series to train on, from which units are learned; the others are held
        out."""
        count = path.batch_shape[0]
        rows, self.held_out_ = np.arange(count), np.arange(0)
        if self.validation is not None:
            size = max(1, round(self.validation * count))
            if not 0 < self.validation < 1 or size >= count:
                raise ValueError(
                    "`validation` must leave paths on both sides: a fraction between 0 "
                    f"and 1, or None; got {self.validation} with n_samples = {count}."
                )
            seed = int(jr.randint(key, (), 0, 2**31 - 1))
            if stratify is not None and size < len(np.unique(stratify)):
                stratify = None
            parts = train_test_split(
                rows, test_size=size, random_state=seed, stratify=stratify
            )
            rows, held = map(np.asarray, parts)
            self.held_out_ = np.sort(held)
        self.scaling_ = Scaling.of(path, standardise, rows)
        return rows

    def _train(
        self, model: Any, data: Any, objective: Any, key: Any, rows: np.ndarray
    ) -> FitResult:
        """Trains on these rows of the data, and keeps the best model on the rest."""
        held = None
        if self.held_out_.size:
            held = jax.tree.map(lambda leaf: leaf[self.held_out_], data)
        size = min(as_count("batch_size", self.batch_size), len(rows))
        return self._run(
            model,
            jax.tree.map(lambda leaf: leaf[rows], data),
            objective,
            key,
            batch_size=size,
            validation=held,
            validate_every=max(len(rows) // size, SHORTEST),
            patience=None if held is None else self.patience,
        )

    def _outputs(self, X: Any) -> np.ndarray:
        """Outputs of the trained model after the last sample of each path."""
        path = self._check(X)
        parts = []
        for block, count in blocks(path, self.length_, BLOCK):
            items = prepare_paths(self.model_, self.scaling_, block, self.time)
            out = last_outputs(self.model_, items, jnp.asarray(block.lengths))
            parts.append(np.asarray(out)[:count])
        return np.concatenate(parts)

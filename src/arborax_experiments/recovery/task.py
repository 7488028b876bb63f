"""The experiments `recovery` and `ppg-dalia`: an identity checked in training."""

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import PRNGKeyArray

from arborax import models
from arborax.algebra import Shuffle
from arborax.paths import SampledPath
from arborax.training import FitResult

from ..harness import AbstractTask, Results, Score, Stage, Table
from .config import Config
from .data import loss_of, read_series, Series
from .tables import tables


LABELS = {"bnrde": "B-NRDE (shuffle)", "log-ncde": "log-NCDE"}


class RecoveryTask(AbstractTask):
    """B-NRDE in the shuffle algebra against log-NCDE. Runs of both with the same seed
    see the same weights and batches: their loss curves must agree."""

    name = "recovery"
    config = Config
    models = LABELS
    private = ("folder",)
    introduction = """<p>B-NRDE in the shuffle algebra on vectors with softplus is the
log-NCDE: at equal weights the outputs agree to rounding, and so do loss curves.</p>"""

    def context(self, config: Config) -> contextlib.AbstractContextManager:
        return jax.enable_x64(True) if config.double else contextlib.nullcontext()

    def data(self, config: Config, cache: pathlib.Path | None) -> Series:
        return read_series(config)

    def model(self, config: Config, data: Series, *, key: Any) -> Any:
        return make_model(config, data.channels, data.outputs, key=key)

    def stages(self, config: Config, data: Series) -> Iterator[Stage]:
        """One stage without validation: the last weights are scored."""

        def objective(model, batch, key):
            xs, targets = batch
            return loss_of(data, outputs_of(model, xs), targets)

        yield Stage(
            "cross-entropy" if data.classes else "mean square",
            objective,
            data.train,
            None,
            steps=config.iterations,
            learning_rate=config.learning_rate,
            batch_size=min(config.batch, len(data.train[0])),
        )

    def score(
        self, fitted: FitResult, config: Config, data: Series, *, key: Any, seed: int
    ) -> Score:
        """Test loss and accuracy, the gap at equal weights, and the loss curve."""
        content = {
            "data": config.data,
            "identity": identity_gap(config, data, seed),
            "scores": series_scores(fitted.model, data),
            "loss": fitted.history.loss,
        }
        return Score(content)

    def groups(self, results: Results) -> dict[str, Results]:
        """All results in one table; each line names its data."""
        return {"": results}

    def tables(self, results: Results) -> list[Table]:
        return tables(self, results)


class PPGDaLiATask(RecoveryTask):
    """The same on PPG-DaLiA: the setting `paper` under the name of the data."""

    name = "ppg-dalia"

    def configure(self, setting: str, preset: str, **changes: Any) -> Config:
        return RecoveryTask.configure(self, "paper", preset, **changes)


def make_model(
    config: Config, channels: int, outputs: int, *, key: PRNGKeyArray
) -> models.AbstractModel:
    """The model of a configuration; equal keys give both models equal weights."""
    options: dict[str, Any] = dict(
        hidden=config.hidden,
        width=config.width,
        depth=config.depth,
        window=config.window,
        dtype=jnp.float64 if config.double else jnp.float32,
        key=key,
    )
    if config.model == "log-ncde":
        return models.LogNCDE(channels, outputs, **options)
    # The shuffle algebra, a state without geometry, softplus, no basepoint.
    return models.BNRDE(
        Shuffle(channels, 2),
        outputs,
        activation=jax.nn.softplus,
        basepoint=False,
        **options,
    )


def outputs_of(model: Any, xs: Any) -> Any:
    """Outputs `(series, times, outputs)` of a batch of paths."""
    return model.predict(SampledPath(xs[0, :, 0], xs, check=False))


_outputs = eqx.filter_jit(outputs_of)


def identity_gap(config: Config, data: Series, seed: int = 0, count: int = 16) -> float:
    """The largest difference of the outputs of the two models at equal weights, over
    the largest output, on a few series."""
    xs = jnp.asarray(data.train[0][:count])
    first, second = (
        _outputs(
            make_model(
                dataclasses.replace(config, model=name),
                data.channels,
                data.outputs,
                key=jr.PRNGKey(seed),
            ),
            xs,
        )
        for name in LABELS
    )
    return float(jnp.max(jnp.abs(first - second)) / jnp.max(jnp.abs(first)))


def series_scores(model: Any, data: Series) -> dict[str, float]:
    """Loss and, for classes, accuracy on the test part."""
    xs, targets = data.test
    size = min(128, len(xs))
    parts = []
    for at in range(0, len(xs), size):
        rows = np.minimum(np.arange(at, at + size), len(xs) - 1)
        parts.append(np.asarray(_outputs(model, jnp.asarray(xs[rows]))))
    outputs = np.concatenate(parts)[: len(xs)]
    found = {"loss": float(loss_of(data, jnp.asarray(outputs), jnp.asarray(targets)))}
    if data.classes:
        found["accuracy"] = float((outputs[:, -1].argmax(axis=1) == targets).mean())
    return found

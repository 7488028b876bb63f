"""Experiment `ornstein-uhlenbeck`: generate mean-reverting paths."""

import dataclasses

import jax.numpy as jnp
import jax.random as jr
import numpy as np

import arborax as abx
from arborax.datasets import dataset, OrnsteinUhlenbeck
from arborax.training import metrics
from arborax_experiments.baselines import baseline
from arborax_experiments.generation import generate, no_batch
from arborax_experiments.harness import (
    AbstractTask,
    by_model,
    percent_cells,
    run_table,
    Score,
    Stage,
    Table,
    TrainingConfig,
)


@dataclasses.dataclass(frozen=True)
class Config(TrainingConfig):
    paths: int = 4096
    steps: int = 64


class OrnsteinUhlenbeckTask(AbstractTask):
    name = "ornstein-uhlenbeck"
    config = Config
    models = {"bnrde": "B-NRDE", "gru": "GRU"}

    def data(self, config, cache):
        law = OrnsteinUhlenbeck(steps=config.steps)
        return dataset(law, config.paths, folder=cache).split()

    def model(self, config, data, *, key):
        options = dict(dtype=data.train.values.dtype, key=key)
        if config.model == "bnrde":
            sizes = dict(hidden=config.hidden, width=config.width, window=config.window)
            return abx.models.BNRDE(abx.Shuffle(2, 2), 1, **sizes, **options)
        return baseline(config.model, 2, 1, config, **options)

    def stages(self, config, data):
        ts, values = jnp.asarray(data.train.ts), jnp.asarray(data.train.values)
        features = abx.RandomFourierSignature(1, key=jr.key(0), dtype=values.dtype)
        features = features.fit(values[:1024])
        target = abx.embed(values, features)

        def objective(model, batch, key):
            paths = model.sample(ts, config.batch, key=key)
            return abx.mmd(paths, target, features, unbiased=True)

        def metric(model, validation, key):
            return self.distance(model, data.validation, key)

        rate, steps = config.learning_rate, config.iterations
        yield Stage("fourier", objective, no_batch, metric, steps, rate)

    def score(self, fitted, config, data, *, key, seed):
        return Score({"scores": {"ks": self.distance(fitted.model, data.test, key)}})

    def tables(self, results):
        lines = [
            (label, percent_cells([r["scores"]["ks"]] for r in group))
            for _, label, group in by_model(results, self.models)
        ]
        return [Table("KS x 100", ["all times"], lines), run_table(self, results)]

    def distance(self, model, held_out, key):
        paths = generate(model, held_out.ts, len(held_out), key=key)
        return float(np.mean(metrics.ks(paths[:, 1:, 0], held_out.values[:, 1:, 0])))


TASKS = (OrnsteinUhlenbeckTask(),)

"""The experiment `spd`: data, stages of training, scores."""

import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from arborax.training import FitResult

from ..generation import generate, generator_stages
from ..harness import (
    AbstractTask,
    by_setting,
    read_paths,
    Results,
    Score,
    Stage,
    stored_config,
    Table,
)
from . import figures
from .config import Config, REAL
from .data import load, Parts
from .generator import Generator, make_generator
from .objectives import make_objective
from .references import reference
from .scores import places, score, spectra, wasserstein
from .tables import label_of, LABELS, REFERENCES, tables


BLOCK = 512  # paths generated at a time


class SPDTask(AbstractTask):
    """Paths of covariance matrices, simulated or real, from time and Brownian
    motion."""

    name = "spd"
    config = Config
    models = LABELS
    rates_tried = {
        **dict.fromkeys(("bnrde", "bnrde-ito", "bnrde-bk"), "2 or more"),
        **dict.fromkeys(("gru", "xlstm", "stacked-xlstm"), "2"),
    }
    introduction = """<p>Generated against true paths of covariance matrices. W1 is the
one-dimensional Wasserstein distance of each sorted eigenvalue, mean over eigenvalues,
times 100. The floor is what a perfect model would score: two samples of the true law.
The references never leave the identity, and follow the mean eigenvalues without noise.
A point is off the cone if an eigenvalue is not positive.</p>"""

    def implied(self, preset: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        real = changes.get("data", "simulated") != "simulated"
        return REAL.get(preset, {}) if real else {}

    def check(self, config: Config) -> None:
        if config.model in REFERENCES and config.data == "simulated":
            raise ValueError(f"{config.model!r} is a reference for real data.")

    def data(self, config: Config, cache: pathlib.Path | None) -> Parts:
        return load(config, cache)

    def model(self, config: Config, data: Parts, *, key: Any) -> Any:
        if config.model in REFERENCES:
            return reference(config.model, data.train)
        return make_generator(config, data.train, key=key)

    def trained(self, model: Any) -> Any:
        return model.trained if isinstance(model, Generator) else None

    def stages(self, config: Config, data: Parts) -> Iterator[Stage]:
        if config.model in REFERENCES:
            return iter(())
        return generator_stages(
            config,
            lambda name: make_objective(name, config, data),
            metric=Validation(config, data),
        )

    def score(
        self, fitted: FitResult, config: Config, data: Parts, *, key: Any, seed: int
    ) -> Score:
        """W1 of eigenvalues, floors, the cone; eigenvalues of a few paths."""
        # As many generated paths as of the law, or enough to see the model and not its
        # noise where there are few test windows.
        count = len(data.test) if data.law is not None else max(2048, len(data.test))
        generated = generate(fitted.model, data.ts, count, block=BLOCK, key=key)
        stride = max(1, config.window // 2)
        paths = {
            "ts": data.ts[::stride],
            "generated": spectra(generated[:512, ::stride]).astype(np.float16),
            "true": spectra(data.test[:512, ::stride]).astype(np.float16),
        }
        scores = score(generated, data.test, data.known, config)
        return Score({"scores": scores}, paths)

    def groups(self, results: Results) -> dict[str, Results]:
        """By setting, preset and changes; heads of the baselines are rows of one
        group."""
        return by_setting(results, inner=("head",))

    def label(self, result: dict[str, Any]) -> str:
        return label_of(result)

    def tables(self, results: Results) -> list[Table]:
        return tables(self, results)

    def run_figures(self, result: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        paths = read_paths(result)
        if paths is not None:
            config = stored_config(Config, result)
            yield "eigenvalues over time", figures.fan_chart(paths)
            yield "laws of eigenvalues", figures.marginals(paths, config)


class Validation:
    """The validation metric: W1 of eigenvalues at the horizons against the validation
    paths, the mean or the median over horizons."""

    def __init__(self, config: Config, parts: Parts):
        index = np.asarray(places(config)[len(config.early) :])
        self.held_out = spectra(parts.validation[:, index])
        self.ts, size = parts.ts, len(self.held_out)
        self.count = size if parts.law is not None else max(1024, size)
        self.stride = config.stride if not (index % config.stride).any() else 1
        self.index = index // self.stride
        self.mean = np.mean if config.selection == "mean" else np.median

    def __call__(self, model: Any, validation: Any, key: Any) -> float:
        """The metric of [`arborax.fit`][]."""
        paths = generate(model, self.ts, self.count, self.stride, block=BLOCK, key=key)
        if not np.isfinite(paths).all():
            return float("inf")
        found = wasserstein(spectra(paths[:, self.index]), self.held_out)
        return float(self.mean(found))

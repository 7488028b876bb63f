"""The experiment `rough-bergomi`: data, stages of training, scores."""

import dataclasses
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from arborax.datasets import dataset, PathData, RoughBergomi, Splits
from arborax.training import FitResult

from ..generation import generate, generator_stages
from ..harness import (
    AbstractTask,
    read_paths,
    Results,
    Score,
    Stage,
    stored_config,
    Table,
)
from . import figures
from .config import Config, SP500
from .generator import make_generator
from .objectives import make_objective
from .scores import score
from .selection import Validation
from .sp500 import Bootstrap, read_windows, reference
from .tables import LABELS, REFERENCES, tables


FRESH_SETS = 4


@dataclasses.dataclass(frozen=True)
class Data:
    """Log-prices: training, validation and test paths; of the law `FRESH_SETS` more
    test sets, for the scores only, of real data the test paths again."""

    splits: Splits
    fresh: PathData


class RoughBergomiTask(AbstractTask):
    """Log-prices under rough volatility, from time and Brownian motion."""

    name = "rough-bergomi"
    config = Config
    models = LABELS
    rates_tried = dict.fromkeys(("bnrde", "bnrde-bk"), "2 or more")
    introduction = """<p>Generated against true log-prices. KS is the two-sample
Kolmogorov-Smirnov statistic, times 100. The floor is what a perfect model would score:
two samples of the true law, of the size of the test set; "on these test paths" is what
fresh samples of the true law score on average against this very test set. The Gaussian
reference has the mean and variance of the data at every time and independent
increments. Realised variance, running maximum and clustering (lag-1 autocorrelation of
squared returns) are taken on the grid of windows; the bracket is the sum of all squared
steps, and for the data that of the simulator. The p-value is that of a permutation test
with a kernel that no model was trained on.</p>"""

    def implied(self, preset: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        return SP500 if changes.get("data") == "sp500" else {}

    def check(self, config: Config) -> None:
        if config.model in REFERENCES and config.data == "simulated":
            raise ValueError(f"{config.model!r} is a reference for `data=sp500`.")

    def data(self, config: Config, cache: pathlib.Path | None) -> Data:
        if config.data == "sp500":
            splits = read_windows(config.steps)
            return Data(splits, splits.test)
        law = RoughBergomi(hurst=config.hurst, steps=config.steps)
        seed = config.data_seed
        splits = dataset(law, config.paths, seed=seed, folder=cache).split()
        count = FRESH_SETS * len(splits.test)
        return Data(splits, dataset(law, count, seed=seed + 1, folder=cache))

    def model(self, config: Config, data: Data, *, key: Any) -> Any:
        if config.model in REFERENCES:
            return reference(config.model)
        return make_generator(config, data.splits.train.values, key=key)

    def trained(self, model: Any) -> Any:
        """What the bootstrap holds are data."""
        return () if isinstance(model, Bootstrap) else model

    def stages(self, config: Config, data: Data) -> Iterator[Stage]:
        if config.model in REFERENCES:
            return iter(())
        validation, train = Validation(config, data.splits), data.splits.train
        return generator_stages(
            config,
            lambda name: make_objective(name, config, train),
            metric=validation,
            keep=validation.keep,
            facts={"bar": validation.bar},
        )

    def score(
        self, fitted: FitResult, config: Config, data: Data, *, key: Any, seed: int
    ) -> Score:
        """KS of marginals and path functionals, floors, option prices; a few paths."""
        test = data.splits.test
        # The first paths are scored; all of them price options.
        count = max(len(test), config.price_paths)
        generated = generate(fitted.model, test.ts, count, key=key)
        scores = score(
            generated, test, data.splits.train, config, fresh=data.fresh, seed=seed
        )
        stride = max(1, config.block // 2)
        few = min(512, len(test))
        paths = {
            "ts": test.ts[::stride],
            "generated": generated[:few, ::stride, 0].astype(np.float16),
            "true": test.values[:few, ::stride, 0].astype(np.float16),
        }
        return Score({"scores": scores}, paths)

    def tables(self, results: Results) -> list[Table]:
        return tables(self, results)

    def figures(self, results: Results) -> Iterator[tuple[str, Any]]:
        yield "implied volatilities", figures.smiles_of_rows(self, results)

    def run_figures(self, result: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        paths, config = read_paths(result), stored_config(Config, result)
        if paths is not None:
            yield "true and generated paths", figures.fan_chart(paths)
            yield "marginal laws", figures.marginals(paths, config)
            yield "path functionals", figures.functionals(paths, config)
            yield "implied volatilities", figures.smiles(result)

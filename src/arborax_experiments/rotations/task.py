"""The experiment `so-rotation`: data, training, scores."""

import collections
import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from arborax.training import FitResult, metrics

from ..harness import AbstractTask, by_setting, pyplot, Results, Score, Stage, Table
from ..harness.figures import look
from .config import Config
from .data import make_training, Training
from .extrapolators import AbstractExtrapolator
from .models import forecast, make_model
from .scheme import scheme
from .scores import predict, reference_scores, score
from .tables import columns, label_of, LABELS, means, tables
from .test_sets import make_test_sets
from .windows import Observed


@dataclasses.dataclass(frozen=True)
class Data:
    """Simulated windows to train on, test windows by name, simulated and recorded, and
    the folder where scores of the references are kept."""

    training: Training
    sets: dict[str, Observed]
    cache: pathlib.Path | None


class RotationTask(AbstractTask):
    """Twelve observed orientations, nine to forecast. Models are trained on simulated
    windows and scored on simulated and recorded ones."""

    name = "so-rotation"
    config = Config
    models = LABELS
    private = ("folder", "final", "motions")
    footing = (
        "; CPU s is no measure of a model: several runs shared a process, and only the "
        "first of them paid for the simulation"
    )
    introduction = """<p>Orientations: 12 observed points, 9 forecast. RGE is the angle
between forecast and truth in degrees. References are not learned and see the same
observations. Models are trained on simulated rotation only; recordings are forecast
without further training.</p>"""

    def data(self, config: Config, cache: pathlib.Path | None) -> Data:
        sets = make_test_sets(config)  # first: a wrong folder should not cost time
        return Data(make_training(config), sets, cache)

    def model(self, config: Config, data: Data, *, key: Any) -> AbstractExtrapolator:
        return make_model(config, key=key)

    def stages(self, config: Config, data: Data) -> Iterator[Stage]:
        """One stage on simulated windows, with noise and gaps."""
        objective, observed = OBJECTIVES[config.objective], config.observed
        training, held = data.training, data.training.validation

        def loss(model, batch, key):
            *arrays, truth = batch
            return objective(forecast(model, arrays), truth, observed)

        def metric(model, validation, key):
            found = float(objective(predict(model, held), held.truth, observed))
            return found if np.isfinite(found) else float("inf")

        yield Stage(
            config.objective,
            loss,
            lambda key, step: training.batch(config, key, step),
            metric,
            steps=config.iterations,
            learning_rate=config.learning_rate,
            loss_every=10,
        )

    def score(
        self, fitted: FitResult, config: Config, data: Data, *, key: Any, seed: int
    ) -> Score:
        """Errors of the model and of the references on each test set."""
        content = {
            "scores": score(fitted.model, data.sets, config),
            "references": reference_scores(data.sets, config, data.cache),
            "windows": {name: len(seen.truth) for name, seen in data.sets.items()},
        }
        return Score(content)

    def groups(self, results: Results) -> dict[str, Results]:
        """By setting and preset, `quick` first, which has all rows; changes of the
        configuration are in the labels."""
        order = sorted(
            results, key=lambda r: (r["setting"], r["preset"] != "quick", r["preset"])
        )
        return by_setting(order, changes=False)

    def tables(self, results: Results) -> list[Table]:
        return tables(self, results)

    def figures(self, results: Results) -> Iterator[tuple[str, Any]]:
        names = columns(results)
        if results[0]["setting"] == "paper":  # as in its tables
            names = [name for name in names if name.startswith("free")]
        else:
            yield "from simulation to recordings", scheme(results)
        yield "forecast errors", error_ratios(results, names)

    def label(self, result: dict[str, Any]) -> str:
        return label_of(result)


def angle_error(out, truth, observed: int):
    """Mean angle in degrees over the points after the observed ones."""
    return metrics.rotation_error(out[:, observed:], truth[:, observed:]).mean()


def frobenius_error(out, truth, observed: int):
    """Mean Frobenius distance over all points, as published but for a factor two."""
    return metrics.frobenius(out, truth).mean()


MARKS = "os^D"
OBJECTIVES = {"angle": angle_error, "frobenius": frobenius_error}


def error_ratios(results: Results, names: list[str]) -> Any:
    """Forecast errors in some columns, mean over seeds, in units of the best reference
    of each."""
    figure, axes = pyplot().subplots(figsize=(11, 4.5))
    best: dict[str, float] = {}
    rows = collections.defaultdict(list)
    for result in results:
        rows[label_of(result)].append(means(result["scores"]))
        for scores in result["references"].values():
            for name, value in means(scores).items():
                best[name] = min(value, best.get(name, value))
    for number, (label, found) in enumerate(rows.items()):
        colour, kind = look(number)
        ratios = [
            np.mean([one[name] for one in found if name in one] or [np.nan])
            / best[name]
            for name in names
        ]
        axes.plot(
            range(len(names)), ratios, MARKS[kind], color=colour, label=label, alpha=0.7
        )
    axes.axhline(1, color="grey", linewidth=1)
    axes.set_yscale("log")
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=7)
    axes.set_ylabel("error / best reference")
    figure.legend(loc="outside right upper", fontsize=7)
    return figure

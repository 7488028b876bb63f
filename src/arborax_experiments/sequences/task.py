"""The experiment `sequences`: classes of series, our models beside rivals."""

import pathlib
import time
from collections.abc import Iterator
from typing import Any

import jax.random as jr
import numpy as np

from arborax.training import FitResult

from ..harness import (
    AbstractTask,
    by_setting,
    percent_cells,
    Results,
    run_table,
    Score,
    Stage,
    Table,
)
from .config import Config
from .data import Parts, read_parts
from .model import Classifier, cross_entropy, inputs, logits_of, make_classifier


GOAL = ("Epilepsy", "RacketSports", "Libras", "PenDigits")
TRAINED = {
    "linear-ito": "linear B-NRDE, Itô",
    "linear-stratonovich": "linear B-NRDE, Stratonovich",
    "linear-diagonal-ito": "linear B-NRDE, diagonal, Itô",
    "linear-diagonal-stratonovich": "linear B-NRDE, diagonal, Stratonovich",
    "bnrde": "B-NRDE",
    "log-ncde": "log-NCDE",
    "gru": "GRU",
    "xlstm": "xLSTM",
}


class SequencesTask(AbstractTask):
    """Classification of multivariate series."""

    name = "sequences"
    config = Config
    models = {
        **TRAINED,
        "reservoir-ito": "reservoir, Itô",
        "reservoir-stratonovich": "reservoir, Stratonovich",
        "joined-ito": "reservoirs and log-signatures, Itô",
        "joined-stratonovich": "reservoirs and log-signatures, Stratonovich",
        "signature-ito": "log-signatures + ridge, Itô",
        "signature-stratonovich": "log-signatures + ridge, Stratonovich",
        "kernel-ito": "signature kernel SVM, Itô",
        "kernel-stratonovich": "signature kernel SVM, geometric",
        "minirocket": "MiniRocket (aeon)",
        "multirocket": "MultiRocket (aeon)",
        "dtw": "1-NN-DTW (aeon)",
    }
    private = ("folder",)
    introduction = """<p>Accuracy in per cent on sets of the UEA archive. Trained models
have one width and one readout, not one number of parameters; ridge penalties are chosen
by leave-one-out errors on the training part.</p>"""

    def data(self, config: Config, cache: pathlib.Path | None) -> Parts:
        try:
            return read_parts(config)
        except FileNotFoundError as error:
            message = f"give `--set folder=FOLDER`. {error}"
            raise FileNotFoundError(message) from error

    def model(self, config: Config, data: Parts, *, key: Any) -> Any:
        if config.model not in TRAINED:
            from .rows import ROWS  # needs scikit-learn

            seed = int(jr.randint(key, (), 0, 2**31 - 1))
            return ROWS[config.model](config, data, seed)
        times = data.train.values.shape[1]
        return make_classifier(config, data.channels, data.classes, times, key=key)

    def stages(self, config: Config, data: Parts) -> Iterator[Stage]:
        """One stage for trained models. On the official split the last average of
        weights is kept; with a validation part, its most accurate one."""
        if config.model not in TRAINED:
            return
        blank = self.model(config, data, key=jr.PRNGKey(0))
        train = prepared(blank, data, data.train)
        validated = data.validation is not None
        held: Any = prepared(blank, data, data.validation) if validated else ()

        def metric(model, validation, key):
            *items, labels = held
            return float(np.mean(logits_of(model, *items).argmax(axis=1) != labels))

        yield Stage(
            "cross-entropy",
            cross_entropy,
            train,
            metric if validated else None,
            steps=config.iterations,
            learning_rate=config.learning_rate,
            batch_size=min(config.batch, len(data.train.labels)),
            loss_every=10,
        )

    def score(
        self, fitted: FitResult, config: Config, data: Parts, *, key: Any, seed: int
    ) -> Score:
        """Accuracy on the test part."""
        model, content = fitted.model, {}
        if isinstance(model, Classifier):
            *items, labels = prepared(model, data, data.test)
            found = logits_of(model, *items).argmax(axis=1)
        else:
            from .rows import series_for

            labels = data.test.labels
            start = time.process_time()
            model.fit(series_for(config.model, data.train), data.train.labels)
            middle = time.process_time()
            found = model.predict(series_for(config.model, data.test))
            content["fit_seconds"] = middle - start
            content["predict_seconds"] = time.process_time() - middle
        content["scores"] = {"accuracy": float(np.mean(found == labels))}
        sizes = [data.train, data.validation, data.test]
        content["sizes"] = [0 if part is None else len(part.labels) for part in sizes]
        content["sha256"] = dict(data.train.sha256)
        return Score(content)

    def groups(self, results: Results) -> dict[str, Results]:
        """By preset, and by split: official, random, or folds of the training part."""
        out: dict[str, Results] = {}
        for title, group in by_setting(results, changes=False).items():
            for kind in ("official split", "70/15/15", "folds of the training part"):
                some = [r for r in group if kind_of_split(r["config"]) == kind]
                if some:
                    out[f"{title}, {kind}"] = some
        return out

    def compared(self, results: Results) -> Results:
        """All: every recipe is a row, learning rates too."""
        return results

    def tables(self, results: Results) -> list[Table]:
        return [
            accuracy_table(self, results),
            cost_table(self, results),
            run_table(self, results, {"data": lambda r: r["config"]["data"]}),
        ]


def kind_of_split(config: dict[str, Any]) -> str:
    if config.get("fold"):
        return "folds of the training part"
    return "70/15/15" if config["split"] else "official split"


def prepared(model: Classifier, data: Parts, part: Any) -> tuple:
    """Inputs, weights and classes of a part."""
    return *inputs(model, data.path(part)), part.labels.astype(np.int32)


def by_row(task: AbstractTask, results: Results):
    """Sets in the order of the goal, and for each model and recipe, named by changes
    that are not of the data, its results by set."""
    names = {r["config"]["data"] for r in results}
    sets = [n for n in GOAL if n in names] + sorted(names - set(GOAL))
    rows = {}
    for name, label in task.models.items():
        for r in results:
            if r["model"] == name:
                row = ", ".join([label, *recipe(r["changes"])])
                found = rows.setdefault(row, {s: [] for s in sets})
                found[r["config"]["data"]].append(r)
    return sets, rows


def recipe(changes: dict[str, Any]) -> list[str]:
    """The changes that are not of the data."""
    given = sorted(changes.items())
    return [f"{k} = {v}" for k, v in given if k not in ("data", "split", "fold")]


def accuracy_table(task: AbstractTask, results: Results) -> Table:
    """Mean and deviation over runs, and the mean over the sets of the goal. A cell with
    fewer runs than its row says how many, and so does a mean of such cells. Runs whose
    training became infinite, so that an early state was scored, are named."""
    sets, rows = by_row(task, results)
    whole = set(GOAL) <= set(sets)
    kind = "fold" if results[0]["config"].get("fold") else "seed"
    lines = []
    for label, found in rows.items():
        seeds = max(len(group) for group in found.values())
        cells, means = [], {}
        for s, group in found.items():
            values = [[r["scores"]["accuracy"]] for r in group]
            fewer = f" ({len(values)})" if len(values) < seeds else ""
            lost = sum(
                stage["stop"] == "non-finite" for r in group for stage in r["stages"]
            )
            broken = f", {lost} diverged" if lost else ""
            cells.append(percent_cells(values)[0] + fewer + broken if values else "-")
            means[s] = np.mean(values) if values else np.nan
        if whole:
            mean = 100 * np.mean([means[s] for s in GOAL])
            least = min(len(found[s]) for s in GOAL)
            fewer = f" ({least})" if least < seeds else ""
            cells.append("-" if np.isnan(mean) else f"{mean:.2f}{fewer}")
        lines.append((f"{label}, {seeds} {kind}{'s' * (seeds > 1)}", cells))
    columns = [*sets, *(["mean of the first four"] if whole else [])]
    return Table("accuracy, per cent", columns, lines)


def cost_table(task: AbstractTask, results: Results) -> Table:
    """CPU seconds of whole runs. The dearest of some seeds counts: later ones may have
    found their programs compiled."""
    sets, rows = by_row(task, results)
    lines = []
    for label, found in rows.items():
        dearest = [
            max((r["cpu_seconds"] for r in g), default=0) for g in found.values()
        ]
        lines.append((label, [f"{s:.0f}" if s else "-" for s in dearest]))
    return Table("CPU seconds of the dearest run", sets, lines)

"""Rows that no gradient trains: a closed-form fit, and a reference of plain NumPy."""

import dataclasses
import pathlib

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import arborax as abx
from arborax_experiments.harness import (
    AbstractTask,
    by_model,
    mean_cells,
    report,
    run,
    run_table,
    Score,
    Stage,
    sweep,
    Table,
    table,
    TrainingConfig,
)


@abx.register
class Line(eqx.Module):
    slope: jnp.ndarray

    def __call__(self, x):
        return self.slope * x


class Mean:
    """Not an Equinox module."""

    def __init__(self, y):
        self.value = y.mean()

    def __call__(self, x):
        return np.full_like(x, self.value)


class LineTask(AbstractTask):
    name = "line"
    config = TrainingConfig
    models = {"solved": "closed form", "trained": "by steps", "mean": "mean"}

    def configure(self, setting, preset, **changes):
        return dataclasses.replace(TrainingConfig(iterations=3), **changes)

    def data(self, config, cache):
        x = np.linspace(1.0, 2.0, 16)
        return x, 3 * x

    def model(self, config, data, *, key):
        x, y = data
        if config.model == "mean":
            return Mean(y)
        slope = x @ y / (x @ x) if config.model == "solved" else 0.0
        return Line(jnp.asarray(slope))

    def stages(self, config, data):
        if config.model == "trained":

            def objective(model, batch, key):
                return jnp.mean((model(batch[0]) - batch[1]) ** 2)

            yield Stage("square", objective, data, None, 3, 0.1, batch_size=16)

    def score(self, fitted, config, data, *, key, seed):
        x, y = data
        error = float(np.mean(np.abs(np.asarray(fitted.model(x)) - y)))
        return Score({"scores": {"error": error, "steps": fitted.steps}})

    def tables(self, results):
        lines = [
            (label, mean_cells([[r["scores"]["error"]] for r in rows]))
            for _, label, rows in by_model(results, self.models)
        ]
        return [Table("error", ["mean"], lines), run_table(self, results)]


def test_rows_with_and_without_stages(tmp_path):
    task = LineTask()
    options: dict = dict(folder=tmp_path, progress=False)
    results = {name: run(task, model=name, **options) for name in task.models}
    scores = {name: result["scores"] for name, result in results.items()}
    assert scores["solved"]["error"] < 1e-12 < scores["trained"]["error"]
    assert [scores[name]["steps"] for name in task.models] == [0, 3, 0]
    assert [len(result["stages"]) for result in results.values()] == [0, 1, 0]
    assert [result["parameters"] for result in results.values()] == [1, 1, 0]

    # Only a module is written; it reads back.
    files = {k: pathlib.Path(r["folder"]) / "model.abx" for k, r in results.items()}
    assert abx.load(files["solved"]).slope == pytest.approx(3)
    assert not files["mean"].exists()

    # Cost of training is a dash where there is none; the report draws what there is.
    found = {
        line.split("  ")[0]: line
        for line in table(task, [*results.values()]).splitlines()
        if "error" not in line
    }
    assert found["closed form"].split().count("-") == 4
    assert "3/3" in found["by steps"]
    page = report(task, [*results.values()], tmp_path / "report.html")
    assert "closed form" in page.read_text()

    # A finished run is read; a sweep has nothing to go by.
    again = run(task, model="solved", resume=True, **options)
    assert again["scores"] == scores["solved"]
    pytest.importorskip("optuna")
    with pytest.raises(ValueError, match="'solved' has no stage of training"):
        sweep(task, model="solved", trials=1, space={"width": [1]}, **options)

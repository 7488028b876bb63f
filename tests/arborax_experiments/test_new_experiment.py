"""The experiment of the guide: one folder, and nothing else is edited."""

import pathlib
import sys

import equinox as eqx
import jax
import pytest

import arborax_experiments
from arborax.cli import main
from arborax_experiments import find_task


FOLDER = pathlib.Path(__file__).parents[2] / "examples" / "experiment"


@pytest.fixture
def beside(monkeypatch):
    """The folder of the example, as if it lay beside the other experiments."""
    path = [*arborax_experiments.__path__, str(FOLDER)]
    monkeypatch.setattr(arborax_experiments, "__path__", path)
    yield
    sys.modules.pop("arborax_experiments.ornstein_uhlenbeck", None)


def test_from_the_folder_to_the_table(beside, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["models"])
    assert "ornstein-uhlenbeck" in capsys.readouterr().out.split()
    common = ["ornstein-uhlenbeck", "--preset", "smoke", "--cache", str(tmp_path)]
    main(["run", *common, "--model", "gru"])
    assert "GRU, 1 seed" in capsys.readouterr().out
    place = tmp_path / "runs" / "ornstein-uhlenbeck" / "arborax-smoke-gru-1"
    names = {file.name for file in place.iterdir()}
    assert names == {"checkpoints", "model.abx", "result.json"}
    main(["report", "ornstein-uhlenbeck"])
    assert (place.parent / "report.html").stat().st_size > 10_000


def test_the_other_model_has_a_gradient(beside, tmp_path):
    """Shapes only: nothing is compiled."""
    task = find_task("ornstein-uhlenbeck")
    config = task.configure("arborax", "smoke")
    data = task.data(config, tmp_path)
    (stage,) = task.stages(config, data)
    key = jax.random.PRNGKey(0)
    model = task.model(config, data, key=key)
    gradient = eqx.filter_grad(stage.objective)
    found = eqx.filter_eval_shape(gradient, model, stage.data(key, 0), key)
    assert len(jax.tree.leaves(found)) > 6


def test_the_example_is_short():
    (file,) = FOLDER.rglob("*.py")
    assert len(file.read_text().splitlines()) < 80

"""Logs, trackers, and messages for packages that are not installed."""

import json
import subprocess
import sys
import types

import jax.random as jr
import numpy as np
import pytest

from arborax._imports import require
from arborax.training import fit, JSONL, read_log, Tracker, trackers

from .helpers import curve, mlp, objective, regression


class Run:
    """Stands for the run objects and writers of the services."""

    def __init__(self, *args, **options):
        self.options, self.rows, self.open = (args, options), [], True

    def log(self, numbers, step):
        self.rows.append((step, numbers))

    def add_scalar(self, name, value, step):
        self.rows.append((step, {name: value}))

    def finish(self):
        self.open = False

    close = finish


def train(**options):
    x, y = regression(16)
    return fit(
        mlp(),
        (x, y),
        objective,
        steps=4,
        validation=(x, y),
        validate_every=2,
        key=jr.PRNGKey(0),
        progress=False,
        **options,
    )


def test_jsonl_log(tmp_path):
    path = tmp_path / "deep" / "log.jsonl"
    result = train(log=path, log_every=2)
    assert [r["step"] for r in read_log(path, "step")] == [2, 4]
    records = read_log(path, "validation")
    assert [r["metric"] for r in records] == list(curve(result)[1])
    (start,) = read_log(path, "start")
    assert start["parameters"] == 41 and start["devices"] == 1
    (stop,) = read_log(path, "stop")
    assert stop["stop"] == "steps" and stop["timings"]["step"] > 0
    train(log=path)  # a new run replaces the log
    assert len(read_log(path, "start")) == 1


def test_jsonl_is_strict_json_and_trims_torn_lines(tmp_path):
    path = tmp_path / "log.jsonl"
    log = JSONL(path)
    record = {"kind": "step", "a": np.float32(np.nan), "b": np.arange(2), "c": (1, "x")}
    log.log(record | {"d": float("inf"), "e": {"f": True}, "g": object}, 3)
    log.log({"kind": "step"}, 9)
    log.close()
    with open(path, "a") as file:
        file.write('{"step": 4, "kind": "st')
    JSONL(path, resume_step=5).close()
    (line,) = path.read_text().splitlines()
    record = json.loads(line, parse_constant=lambda name: pytest.fail(name))
    assert record["a"] is None and record["b"] == [0, 1] and record["c"] == [1, "x"]
    assert record["d"] is None and record["e"] == {"f": True}


@pytest.mark.parametrize("name", ["wandb", "trackio", "tensorboard"])
def test_services(monkeypatch, name):
    run = Run()
    if name == "tensorboard":
        module = types.ModuleType("tensorboardX")
        module.SummaryWriter = lambda folder: run
        monkeypatch.setitem(sys.modules, "tensorboardX", module)
        tracker = trackers.TensorBoard("folder")
    else:
        module = types.ModuleType(name)
        module.init = lambda **options: run
        monkeypatch.setitem(sys.modules, name, module)
        tracker = getattr(trackers, name)(project="p")
    assert isinstance(tracker, Tracker)
    result = train(trackers=[tracker])
    losses = [n["step/loss"] for _, n in run.rows if "step/loss" in n]
    assert losses == result.history.loss and not run.open
    assert any("validation/metric" in n for _, n in run.rows)


def test_missing_packages_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "optax", None)
    with pytest.raises(ImportError, match=r'pip install "arborax\[train\]"'):
        train()
    with pytest.raises(ImportError, match=r"pip install nosuchpackage`"):
        require("nosuchpackage.part", None, "this test")


def test_import_needs_no_extra():
    script = (
        "import sys\n"
        "for name in ('optax', 'tqdm', 'orbax', 'wandb'): sys.modules[name] = None\n"
        "import arborax as abx\n"
        "abx.fit, abx.save, abx.load\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)

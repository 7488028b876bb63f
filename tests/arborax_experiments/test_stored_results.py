"""Stored results: present presets must give the configurations they were made with."""

import dataclasses
import json
import pathlib

import pytest

from arborax.training import load
from arborax_experiments import collect, find_task
from arborax_experiments.harness import parameter_count, read_paths, tasks


RESULTS = pathlib.Path(__file__).parents[2] / "results"
NAMES = sorted(name for name in tasks() if (RESULTS / name).exists())


# Fields that differ, and why the row would be the same today.
HARMLESS = {
    ("rough-bergomi", "keep"): "files older than the field; both rules keep the same",
    ("spd", "amplitude"): "files older than the field, of models that do not read it",
    ("spd", "reach"): "files older than the field, of models that do not read it",
    ("spd", "weights"): "setting `paper` has an objective that does not read it",
}
# The same, of the published setting of the rotations: its files are older than fronts
# and the broad law. The Euclidean B-NRDE had windows of four, whatever the field said.
RENAMED = {"extrapolator", "front", "law", "correct", "final", "window", "held"}
RENAMED |= {"driven", "train_rates", "correlation", "bodies", "inertia", "seconds"}


def harmless(result, key):
    """Whether a field may differ in a stored result."""
    renamed = (result["experiment"], result["setting"]) == ("so-rotation", "paper")
    return (result["experiment"], key) in HARMLESS or (renamed and key in RENAMED)


def differences(task, result):
    """Fields in which a stored configuration is not that of its command today."""
    today = dataclasses.asdict(
        task.configure(
            result["setting"],
            result["preset"],
            **{"model": result["model"], **result.get("changes", {})},
        )
    )
    today = json.loads(json.dumps({**today, **dict.fromkeys(task.private)}))
    fields = {f.name: f for f in dataclasses.fields(task.config)}
    # A field that came later must have the value that means "as before".
    new = {k: json.loads(json.dumps(fields[k].default)) for k in today}
    stored = {**new, **result["config"]}
    return {
        k: (stored.get(k, "absent"), today.get(k, "gone"))
        for k in stored.keys() | today.keys()
        if stored.get(k, "absent") != today.get(k, "gone")
    }


def stale_rows(name, folder):
    """Commands of stored rows, with the fields that they would not give today."""
    task, stale = find_task(name), {}
    results = collect(name, [folder])
    assert results
    for result in results:
        assert result["model"] in task.models
        found = differences(task, result)
        if found := {k: v for k, v in found.items() if not harmless(result, k)}:
            stale[result["command"]] = found
    return stale


@pytest.mark.parametrize("name", NAMES)
def test_stored_rows_can_be_made_today(name):
    assert not stale_rows(name, RESULTS)


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_stored_row_fails(name, tmp_path):
    """A stored file with another learning rate than its command gives."""
    first = min((RESULTS / name).rglob("*.json"))
    content = json.loads(first.read_text(encoding="utf-8"))
    content["config"]["learning_rate"] *= 2
    (tmp_path / name).mkdir()
    (tmp_path / name / "wrong.json").write_text(json.dumps(content))
    (fields,) = stale_rows(name, tmp_path).values()
    assert list(fields) == ["learning_rate"]


@pytest.mark.parametrize("name", NAMES)
def test_stored_rows_name_command_and_date(name):
    for result in collect(name, [RESULTS]):
        assert result["command"].startswith(f"arborax run {name} --model")
        assert f"--seed {result['seed']}" in result["command"]
        assert result["date"] and result["cpu_seconds"] > 0


def test_stored_weights_and_paths_belong_to_rows():
    files = list(RESULTS.rglob("model.abx"))
    assert files and sum(p.stat().st_size for p in RESULTS.rglob("paths.npz")) < 2e6
    for file in files:
        name, row = file.parents[1].name, f"{file.parent.name}.json"
        assert (file.parents[1] / row).exists()
        (result,) = [
            r for r in collect(name, [RESULTS]) if r["folder"] == str(file.parent)
        ]
        assert (
            parameter_count(find_task(name).trained(load(file)))
            == (result["parameters"])
        )
        assert read_paths(result) is not None

"""Stored results: present presets must give the configurations they were made with."""

import dataclasses
import json
import pathlib

import pytest

from arborax_experiments import collect, find_task
from arborax_experiments.harness import tasks


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


@pytest.mark.parametrize("name", NAMES)
def test_stored_rows_can_be_made_today(name):
    task, stale = find_task(name), {}
    results = collect(name, [RESULTS])
    assert results
    for result in results:
        assert result["model"] in task.models
        found = differences(task, result)
        if found := {k: v for k, v in found.items() if not harmless(result, k)}:
            stale[result["command"]] = found
    assert not stale


@pytest.mark.parametrize("name", NAMES)
def test_stored_rows_name_command_and_date(name):
    for result in collect(name, [RESULTS]):
        assert result["command"].startswith(f"arborax run {name} --model")
        assert f"--seed {result['seed']}" in result["command"]
        assert result["date"] and result["cpu_seconds"] > 0


def test_a_stale_row_is_found():
    task = find_task("rough-bergomi")
    config = dataclasses.asdict(task.configure("arborax", "smoke", model="gru"))
    result = {"setting": "arborax", "preset": "smoke", "model": "gru"}
    good = {**result, "config": json.loads(json.dumps(config))}
    assert not differences(task, good)
    good["config"]["learning_rate"] = 1.0
    assert list(differences(task, good)) == ["learning_rate"]

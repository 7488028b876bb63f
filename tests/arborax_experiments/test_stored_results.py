"""Stored results: present presets must give the configurations they were made with."""

import dataclasses
import itertools as it
import json
import pathlib
import resource
import shlex
import subprocess
import sys

import equinox as eqx
import jax.random as jr
import numpy as np
import pytest

from arborax.cli import _commands, _experiments
from arborax.datasets import LabelledSeries
from arborax.training import load
from arborax_experiments import collect, find_task
from arborax_experiments.harness import (
    commands,
    parameter_count,
    provenance,
    read_paths,
    tasks,
)
from arborax_experiments.harness.results import RunFolder
from arborax_experiments.sequences.data import Parts


RESULTS = pathlib.Path(__file__).parents[2] / "results"
NAMES = sorted(name for name in tasks() if (RESULTS / name).exists())


# What may differ, by experiment, setting and field: stored value and that of today, and
# the models whose row would be the same, with the reason; `ANY`: all models.
ABSENT, GONE, ANY = "absent", "gone", None
HARMLESS = {
    # Files older than the field; both rules keep the same weights there.
    ("rough-bergomi", "arborax", "keep"): (
        ("best", "last"),
        ("gru", "ncde", "ncde++", "stacked-xlstm"),
    ),
    # Files older than the field, of a model that does not read it.
    ("spd", "arborax", "amplitude"): ((1.0, 4.0), ("gru",)),
    ("spd", "arborax", "reach"): ((0.0, 4.0), ("gru",)),
    # The published objective does not read it.
    ("spd", "paper", "weights"): (([1.0, 0.1], [1.0, 3.0]), ("bnrde",)),
    # The Euclidean B-NRDE had windows of four, whatever the field said.
    ("so-rotation", "paper", "window"): ((10, 4), ("bnrde-euclidean",)),
    # The published rotations are older than fronts and the broad law.
    ("so-rotation", "paper", "front"): (("bank", "published"), ANY),
    ("so-rotation", "paper", "law"): (("broad", "free"), ANY),
    ("so-rotation", "paper", "correct"): ((True, False), ANY),
    ("so-rotation", "paper", "seconds"): ((True, False), ANY),
    ("so-rotation", "paper", "extrapolator"): (("default", GONE), ANY),
    ("so-rotation", "paper", "driven"): ((0.0, GONE), ANY),
    ("so-rotation", "paper", "held"): ((0.0, GONE), ANY),
    ("so-rotation", "paper", "bodies"): ((True, GONE), ANY),
    ("so-rotation", "paper", "inertia"): ((False, GONE), ANY),
    ("so-rotation", "paper", "train_rates"): (([10.0, 40.0], GONE), ANY),
    ("so-rotation", "paper", "correlation"): (([0.1, 0.5], GONE), ANY),
}


def harmless(result, key, pair):
    """Whether a stored result may have another value of a field than today."""
    place = result["experiment"], result["setting"], key
    known, models = HARMLESS.get(place, (None, ANY))
    return pair == known and (models is ANY or result["model"] in models)


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
        k: (stored.get(k, ABSENT), today.get(k, GONE))
        for k in stored.keys() | today.keys()
        if stored.get(k, ABSENT) != today.get(k, GONE)
    }


def stale_rows(name, folder):
    """Commands of stored rows, with the fields that they would not give today."""
    task, stale = find_task(name), {}
    results = collect(name, [folder])
    assert results
    for result in results:
        assert result["model"] in task.models
        found = differences(task, result)
        if found := {k: v for k, v in found.items() if not harmless(result, k, v)}:
            stale[result["command"]] = found
    return stale


@pytest.mark.parametrize("name", NAMES)
def test_stored_rows_can_be_made_today(name):
    assert not stale_rows(name, RESULTS)


def other(value):
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, list):
        return [*value, *(value[-1:] or [0])]
    return value + 1 if isinstance(value, int | float) else f"{value}, another"


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_stored_row_fails(name, tmp_path):
    """A stored file in which one field, any of them, is not what its command gives."""
    content = json.loads(min((RESULTS / name).rglob("*.json")).read_text("utf-8"))
    (tmp_path / name).mkdir()
    for key, value in content["config"].items():
        if key == "model":
            continue  # part of the command itself
        wrong = {**content, "config": {**content["config"], key: other(value)}}
        (tmp_path / name / "wrong.json").write_text(json.dumps(wrong))
        assert [list(v) for v in stale_rows(name, tmp_path).values()] == [[key]]


def test_what_is_harmless_is_so_for_some_models_only():
    """The same difference in a row of another model makes that row stale."""
    for (name, setting, key), (pair, models) in HARMLESS.items():
        result = {"experiment": name, "setting": setting}
        for model in find_task(name).models:
            allowed = models is ANY or model in models
            assert harmless({**result, "model": model}, key, pair) == allowed


# Models of these experiments ask of their data no more than shapes and first values.
FEW = {
    "rough-bergomi": {"paths": 64},
    "so-rotation": {"trajectories": 40, "test_windows": 8},
    "spd": {"paths": 64, "train": 0.5, "validation": 0.25, "test_paths": 16},
    "state-tracking": {"paths": 64},
}
# Of the sets of the UEA archive: times, channels, classes.
SERIES = {
    "AtrialFibrillation": (640, 2, 3),
    "BasicMotions": (100, 6, 4),
    "Epilepsy": (206, 3, 4),
    "JapaneseVowels": (29, 12, 9),
    "Libras": (45, 2, 15),
    "PenDigits": (8, 2, 10),
    "RacketSports": (30, 6, 4),
}


def data_for(task, config, cache):
    """Data with the shapes of those of a run, and few of them."""
    if task.name != "sequences":
        return task.data(dataclasses.replace(config, **FEW[task.name]), cache)
    times, channels, classes = SERIES[config.data]
    values = np.random.default_rng(0).normal(size=(classes, times, channels))
    names = tuple(map(str, range(classes)))
    part = LabelledSeries(values, np.full(classes, times), np.arange(classes), names)
    return Parts(part, None, part)


@pytest.mark.parametrize("name", [*FEW, "sequences"])
def test_stored_rows_have_as_many_parameters_as_models_of_today(name, tmp_path):
    """Each model that preset `quick` trained, built again; not on real data that are
    read with a package."""
    task, data, done = find_task(name), {}, set()
    for result in collect(name, [RESULTS]):
        changes, setting = result.get("changes", {}), result["setting"]
        row = setting, result["model"], *map(str, changes.items())
        if row in done or result["preset"] != "quick" or not result["stages"]:
            continue
        if "data" in changes and name in ("rough-bergomi", "spd"):
            continue
        done.add(row)
        config = task.configure(setting, "quick", model=result["model"], **changes)
        shapes = setting, getattr(config, "data", None)
        if shapes not in data:
            data[shapes] = data_for(task, config, tmp_path)

        def build(key):
            return task.trained(task.model(config, data[shapes], key=key))

        model = eqx.filter_eval_shape(build, jr.PRNGKey(0))
        assert parameter_count(model) == result["parameters"], row
    assert done


@pytest.mark.parametrize("name", NAMES)
def test_stored_rows_name_command_and_date(name):
    for result in collect(name, [RESULTS]):
        assert result["command"].startswith(f"arborax run {name} --model")
        assert f"--seed {result['seed']}" in result["command"]
        assert result["date"] and result["cpu_seconds"] > 0


def runs_of(words):
    """The runs that a command line asks for, as the command line reads it."""
    asked = _commands.parse(words[1:])
    task, runs = find_task(asked.experiment), []
    assert set(asked.model) <= set(task.models)
    for model, seed in it.product(asked.model, asked.seed):
        changes = _experiments._changes(task, asked.set, seed)
        shown = {k: v for k, v in changes.items() if k not in task.private}
        given = json.dumps(shown, sort_keys=True)
        runs.append((asked.setting, asked.preset, model, seed, given))
    return runs


def identity(result):
    """What tells a stored run from others."""
    changes = json.dumps(result.get("changes", {}), sort_keys=True)
    return *(result[k] for k in ("setting", "preset", "model", "seed")), changes


@pytest.mark.parametrize("name", NAMES)
def test_commands_of_tables_ask_for_their_rows(name):
    """Every command that stands at a table or in a file can be read by the command
    line, and asks for the runs it stands for, each of them once."""
    task, results = find_task(name), collect(name, [RESULTS])
    for result in results:
        assert runs_of(shlex.split(result["command"])) == [identity(result)]
    for group in task.groups(results).values():
        asked = [run for words in commands(group) for run in runs_of(words)]
        assert sorted(asked) == sorted(map(identity, group))
        printed = provenance(group).splitlines()[:-1]
        assert [shlex.split(line) for line in printed] == list(commands(group))


@pytest.mark.parametrize("name", NAMES)
def test_files_are_named_as_runs_name_their_folders(name):
    for file in (RESULTS / name).glob("*.json"):
        r = json.loads(file.read_text("utf-8"))
        setting, preset, model, seed, _ = identity(r)
        changes = r.get("changes", {})
        folder = RunFolder(name, setting, preset, model, seed, changes, RESULTS)
        assert file.stem == folder.path.name.replace(" ", "-")


@pytest.mark.slow
def test_all_pages_take_less_than_a_minute(tmp_path):
    """`arborax report --folders results` as users call it; processor time, as tests
    share the machine."""
    words = ["-c", "from arborax.cli import main; main()", "report", "--folders"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words, RESULTS], cwd=tmp_path, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 60
    pages = {page.parent.name for page in tmp_path.rglob("report.html")}
    assert pages == {*NAMES, "timing"}


# Figures of paths are drawn of these; and the rows that the guides speak of most.
HEADLINE = {
    "brackets/arborax-quick-branched-supplied-kappa_delta=1.0-22",
    "brackets/arborax-quick-ito-kappa_delta=1.0-22",
    "rough-bergomi/volterra-quick-bnrde-1",
    "spd/arborax-quick-bnrde-1",
    "spd/arborax-quick-gru-head=log-learning_rate=0.06-1",
}


def test_stored_weights_and_paths_belong_to_rows():
    found = {str(p.parent.relative_to(RESULTS)) for p in RESULTS.rglob("model.abx")}
    assert found == HEADLINE
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

"""What a release needs agrees with pyproject.toml, and slow nights are noticed."""

import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tomllib

import equinox as eqx
import jax
import jax.export
import pytest

from arborax.cli import main
from arborax.cli._device import device_cells


ROOT = pathlib.Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
GROUPS = device_cells()
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_recipe_has_the_dependencies_and_their_bounds():
    recipe = (ROOT / "recipe" / "meta.yaml").read_text()
    run = recipe.split("  run:\n")[1].split("  run_constrained:\n")[0]
    found = {line.strip(" -").replace(" ", "") for line in run.splitlines() if line}
    python = f"python{PROJECT['requires-python']}"
    assert found == {*PROJECT["dependencies"], python}
    bounds = {
        text for texts in PROJECT["optional-dependencies"].values() for text in texts
    }
    optional = recipe.split("  run_constrained:\n")[1].split("\ntest:")[0]
    for line in filter(None, optional.splitlines()):
        name = (
            line.strip(" -").replace(" ", "").replace("matplotlib-base", "matplotlib")
        )
        assert name in bounds, name


def test_citations_agree():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {PROJECT['version']}\n" in citation
    zenodo = json.loads((ROOT / ".zenodo.json").read_text())
    assert zenodo["version"] == PROJECT["version"]
    dated = rf"^## \[{re.escape(PROJECT['version'])}\] - \d{{4}}-\d\d-\d\d$"
    changelog = (ROOT / "CHANGELOG.md").read_text()
    match = re.search(dated, changelog, re.MULTILINE)
    assert match is not None
    released = match.group().rpartition(" ")[2]
    assert f"\ndate-released: {released}\n" in citation
    for name in (zenodo["title"], zenodo["description"], zenodo["license"]):
        assert name in citation
    assert zenodo["license"] == PROJECT["license"]


def test_notes_of_a_release_are_its_section_of_the_changelog():
    def run(version):
        command = [sys.executable, ROOT / ".ci" / "notes", version]
        return subprocess.run(command, capture_output=True, text=True)

    notes = run(PROJECT["version"]).stdout
    assert notes.startswith("### ") and len(notes) > 1000 and "\n## " not in notes
    assert notes.strip() in (ROOT / "CHANGELOG.md").read_text()
    assert run("9.9.9").returncode


def test_pythons_are_those_of_the_workflows():
    found = {
        line.rpartition(" ")[2]
        for line in PROJECT["classifiers"]
        if re.search(r":: 3\.\d+$", line)
    }
    used = set()
    for path in WORKFLOWS:
        used |= set(re.findall(r'"(3\.\d+)"', path.read_text()))
    assert found == used


def test_every_extra_of_users_is_installed_alone():
    script = (ROOT / ".ci" / "installs").read_text()
    match = re.search(r"USER_EXTRAS=(\S+)", script)
    assert match is not None
    extras = set(match.group(1).split(","))
    tools = {"bench", "docs", "lint", "rivals", "test"}
    assert extras == set(PROJECT["optional-dependencies"]) - tools
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    match = re.search(r"extra: \[(.*)\]", workflow)
    assert match is not None and set(match.group(1).split(", ")) == extras


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_read_and_name_what_exists(path):
    yaml = pytest.importorskip("yaml")
    text = path.read_text()
    content = yaml.safe_load(text)
    assert content["permissions"] == {"contents": "read"}
    for name, job in content["jobs"].items():
        needs = job.get("needs", [])
        needs = {needs} if isinstance(needs, str) else set(needs)
        assert needs <= set(content["jobs"]), name
        for step in job.get("steps", []):
            assert ("uses" in step) != ("run" in step)
            assert "uses" not in step or "@" in step["uses"]
    for file in re.findall(r"(?:python |run: )((?:tests|benchmarks|\.ci)/\S+)", text):
        assert (ROOT / file).exists(), file


def _script(name):
    spec = importlib.util.spec_from_file_location(
        f"{name}_bench", ROOT / "benchmarks" / f"{name}.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_benchmark_alert():
    smoke = _script("smoke")
    assert set(smoke.CELLS) <= {name for group in GROUPS.values() for name in group}
    # An old line and a new cell that it did not have; the median forgives one outlier.
    history = [{"times": {"a": 1.0, "b": 1.0}} for _ in range(6)]
    history.append({"times": {"a": 9.0, "b": 1.0}})
    line = {"times": {"a": 1.4, "b": 1.6, "new": 5.0}}
    assert smoke.slow_cells(history, line, 1.5) == {"b": 1.6}
    assert smoke.slow_cells([], line, 1.5) == {}
    long_ago = [{"times": {"a": 0.1, "b": 0.1}}] * 20
    assert smoke.slow_cells(long_ago + history, line, 1.5) == {"b": 1.6}


def test_a_device_is_timed_and_shown(tmp_path, capsys):
    """One command writes times with device and versions, and a page; another shows
    files side by side."""
    file, cells = tmp_path / "a.json", ["Shuffle(4,3)", "GRU"]
    main(["bench", *cells, "--device", "cpu", "--seconds", "0", "--out", str(file)])
    found = json.loads(file.read_text())
    assert found["platform"] == "cpu" and found["versions"]["arborax"]
    names = [row["cell"] for row in found["cells"]]
    assert names == ["Shuffle(4,3)", "Shuffle(4,3), gradient", "GRU"]
    assert all(0 < row["best_s"] <= row["median_s"] for row in found["cells"])
    assert "Shuffle(4,3)" in (tmp_path / "a.html").read_text()
    other = found | {"device": "<fast>", "cells": [dict(found["cells"][0], error="e")]}
    (tmp_path / "b.json").write_text(json.dumps(other))
    page = tmp_path / "page.html"
    shown = [str(tmp_path / name) for name in ("a.json", "b.json")]
    main(["bench", "--show", *shown, "--out", str(page)])
    text = page.read_text()
    assert "&lt;fast&gt;" in text and "failed: e" in text and "not timed" in text
    assert "<script" not in text and "http" not in text


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--device", "tpu"], "JAX finds no tpu here, only cpu"),
        (["--device", "cpu", "nothing"], "no cell has a name with nothing"),
        (["--show", __file__], "was not written by `arborax bench --device`"),
    ],
)
def test_what_cannot_be_timed_or_shown(arguments, message):
    with pytest.raises(SystemExit) as caught:
        main(["bench", *arguments])
    assert message in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "group, name", [(group, name) for group in GROUPS for name in GROUPS[group]]
)
def test_every_cell_is_lowered_for_every_device(group, name):
    function, arguments = GROUPS[group][name]()
    arrays, static = eqx.partition(arguments, eqx.is_array)

    def run(arrays):
        out = function(*eqx.combine(arrays, static))
        return jax.tree.leaves(eqx.filter(out, eqx.is_array))

    platforms = ("cpu", "cuda", "tpu")
    exported = jax.export.export(jax.jit(run), platforms=platforms)(arrays)
    assert exported.platforms == platforms

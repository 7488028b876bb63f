"""What a release needs agrees with pyproject.toml, and slow nights are noticed."""

import importlib.util
import json
import pathlib
import re
import sys
import tomllib

import pytest


ROOT = pathlib.Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
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
    for name in (zenodo["title"], zenodo["description"], zenodo["license"]):
        assert name in citation
    assert zenodo["license"] == PROJECT["license"]


def test_every_extra_of_users_is_installed_alone():
    script = (ROOT / ".ci" / "installs").read_text()
    match = re.search(r"USER_EXTRAS=(\S+)", script)
    assert match is not None
    extras = set(match.group(1).split(","))
    tools = {"bench", "docs", "lint", "test"}
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


def _smoke():
    folder = ROOT / "benchmarks"
    spec = importlib.util.spec_from_file_location("smoke_bench", folder / "smoke.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
        cells = set(importlib.import_module("compare").CELLS)
    finally:
        sys.path.remove(str(folder))
    return module, cells


def test_the_benchmark_alert():
    smoke, cells = _smoke()
    assert set(smoke.CELLS) <= cells
    # An old line and a new cell that it did not have; the median forgives one outlier.
    history = [{"times": {"a": 1.0, "b": 1.0}} for _ in range(6)]
    history.append({"times": {"a": 9.0, "b": 1.0}})
    line = {"times": {"a": 1.4, "b": 1.6, "new": 5.0}}
    assert smoke.slow_cells(history, line, 1.5) == {"b": 1.6}
    assert smoke.slow_cells([], line, 1.5) == {}
    long_ago = [{"times": {"a": 0.1, "b": 0.1}}] * 20
    assert smoke.slow_cells(long_ago + history, line, 1.5) == {"b": 1.6}

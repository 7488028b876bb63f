"""The code in README and docs runs as printed, and so do the examples."""

import importlib.util
import os
import pathlib
import re
import runpy

import pytest


ROOT = pathlib.Path(__file__).parents[1]
PAGES = [
    path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if "generated" not in path.parts and "_build" not in path.parts
]
# Blocks that all can run, and those that need a library named in their class.
BLOCK = re.compile(
    r"^```(?:python|\{code-block\} python\n:class: needs-(\w+)\n)\n(.*?)^```",
    re.MULTILINE | re.DOTALL,
)


def _name(path):
    return str(path.relative_to(ROOT))


def _module(name):
    file = ROOT / f"{name}.py"
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NOTEBOOKS, TABLES = _module("docs/notebooks"), _module("docs/tables")
SUMMARY = _module("benchmarks/summary")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=_name
)
def test_code_blocks(page, monkeypatch, tmp_path):
    """All Python blocks of a page run in order, in one namespace."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    namespace = {"__name__": "__main__"}
    for match in BLOCK.finditer(text):
        if match.group(1) and importlib.util.find_spec(match.group(1)) is None:
            continue
        line = text[: match.start(2)].count("\n")
        # Blank lines in front make tracebacks show the line of the page.
        code = compile("\n" * line + match.group(2), str(page), "exec")
        exec(code, namespace)


def test_blocks_of_other_libraries_run_by_night():
    """The job `rivals` has every library that a block needs, but the one that cannot be
    installed."""
    job = (ROOT / ".github" / "workflows" / "nightly.yml").read_text()
    found = re.search(r'python -c "import (.*)"', job)
    assert found is not None
    needed = {match[1] for page in PAGES for match in BLOCK.finditer(page.read_text())}
    assert needed - {None} <= {"signatory", *found[1].split(", ")}


# Those that train for more than a few seconds wait for the night.
SLOW = ("04_train_a_generator", "05_classify")


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(script, marks=pytest.mark.slow if script.stem in SLOW else ())
        for script in NOTEBOOKS.scripts(ROOT)
    ],
    ids=_name,
)
def test_notebooks(script, tmp_path):
    """Each runs as the documentation runs it, in less than a minute; those for
    beginners draw something."""
    start = NOTEBOOKS.cpu_seconds()
    text = NOTEBOOKS.page(script, tmp_path)
    # Seconds of the processor, because other work on the machine does not count.
    assert NOTEBOOKS.cpu_seconds() - start < 60
    assert text.startswith("# ")
    figures = re.findall(r"^!\[(.*)\]\((.*)\)$", text, re.MULTILINE)
    assert figures or script.parent.name == "how-to"
    for title, file in figures:
        assert title != "Figure" and (tmp_path / file).stat().st_size > 5000, file


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=_name)
def test_examples(script, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(script)])  # those of pytest are not meant
    runpy.run_path(str(script), run_name="__main__")


# Pages that `docs/conf.py` writes.
WRITTEN = ("api", "benchmark-results", "devices", "gallery")


def _sources():
    """Pages and notebooks, with the folder from which their links lead."""
    yield from ((page, page.parent) for page in PAGES)
    for script in NOTEBOOKS.scripts(ROOT):
        yield script, ROOT / "docs" / "generated" / script.parent.name


@pytest.mark.parametrize(
    "source, folder",
    list(_sources()),
    ids=lambda path: _name(path) if path.suffix else "",
)
def test_relative_links_resolve(source, folder):
    for target, anchor in re.findall(
        r"\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)", _markdown(source)
    ):
        found = pathlib.Path(os.path.normpath(folder / target)) if target else source
        parts = found.relative_to(ROOT).parts
        if parts[:2] == ("docs", "generated"):
            found = (ROOT / "examples").joinpath(*parts[2:]).with_suffix(".py")
            if parts[2:] in [(f"{name}.md",) for name in WRITTEN]:
                continue
            if parts[2] == "api":  # one page per room
                found = ROOT / "src" / "arborax" / pathlib.Path(parts[3]).stem
        assert found.exists(), f"{target} in {_name(source)}"
        if anchor:
            assert anchor in _anchors(found), f"{target}#{anchor} in {_name(source)}"


def _markdown(source):
    text = source.read_text()
    return text if source.suffix == ".md" else re.sub(r"^# ?", "", text, flags=re.M)


def _anchors(page):
    """What Sphinx and the usual hosts of repositories make of headings."""
    text = re.sub(r"^```.*?^```", "", _markdown(page), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", line.strip().lower()).replace(" ", "-")
        for line in headings
    }


def test_a_wrong_anchor_is_found():
    page = ROOT / "docs" / "guides" / "own-data.md"
    assert "generated-paths" in _anchors(page) and "nowhere" not in _anchors(page)


def test_every_page_is_in_the_table_of_contents():
    listed = set()
    for page in PAGES:
        if page.parent.name == "docs":
            for block in re.findall(
                r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.M | re.S
            ):
                listed |= {line for line in block.split() if line[0] != ":"}
    pages = {
        str(page.relative_to(ROOT / "docs").with_suffix(""))
        for page in PAGES
        if page.name not in ("README.md", "index.md")
    }
    pages |= {
        f"generated/{script.parent.name}/{script.stem}"
        for script in NOTEBOOKS.scripts(ROOT)
    }
    assert pages <= listed


@pytest.mark.parametrize("place", TABLES.PLACES, ids=lambda place: "-".join(place[:2]))
def test_tables_are_those_of_the_results(place):
    found, wanted = TABLES.rendered(*place)
    assert found == wanted, "run `make tables`"


@pytest.mark.parametrize("place", SUMMARY.PLACES, ids=lambda place: "-".join(place[:2]))
def test_speeds_are_those_of_the_benchmarks(place):
    file, _, make = place
    assert make() in (ROOT / file).read_text(), "run `python benchmarks/summary.py`"

"""The code in README and docs runs as printed, and so do the examples."""

import importlib.util
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
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _name(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=_name
)
def test_code_blocks(page, monkeypatch, tmp_path):
    """All Python blocks of a page run in order, in one namespace."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    namespace = {"__name__": "__main__"}
    for match in BLOCK.finditer(text):
        line = text[: match.start(1)].count("\n")
        # Blank lines in front make tracebacks show the line of the page.
        code = compile("\n" * line + match.group(1), str(page), "exec")
        exec(code, namespace)


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=_name)
def test_examples(script, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(script)])  # those of pytest are not meant
    runpy.run_path(str(script), run_name="__main__")


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_relative_links_resolve(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "generated/examples/" in target:
            stem = target.split("/")[-1].removesuffix(".md")
            found = ROOT / "examples" / f"{stem}.py"
        else:
            found = page.parent / target
        assert found.exists(), f"{target} in {_name(page)}"


def _tables():
    spec = importlib.util.spec_from_file_location("tables", ROOT / "docs" / "tables.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TABLES = _tables()


@pytest.mark.parametrize("place", TABLES.PLACES, ids=lambda place: "-".join(place[:2]))
def test_tables_are_those_of_the_results(place):
    found, wanted = TABLES.rendered(*place)
    assert found == wanted, "run `make tables`"

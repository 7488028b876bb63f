"""Sphinx configuration: MyST pages, API reference from Markdown docstrings."""

import importlib.util
import inspect
import json
import os
import pathlib
import re
import sys
import textwrap

import arborax


os.environ.setdefault("MPLBACKEND", "agg")

DOCS = pathlib.Path(__file__).parent
sys.path.insert(0, str(DOCS))  # for the module beside this one

import notebooks  # noqa: E402


ROOT = DOCS.parent
GENERATED = DOCS / "generated"

project = "arborax"
author = "The arborax authors"
copyright = "The arborax authors"
release = version = arborax.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
# Included changelogs and results bring their own heading levels.
suppress_warnings = ["myst.header"]

html_theme = "furo"
html_title = "arborax"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["style.css"]
# Summaries are fetched from the pages, which a browser refuses for files.
html_show_search_summary = False

autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autoclass_content = "both"
autodoc_class_signature = "mixed"


# Docstrings are written in Markdown; autodoc reads reStructuredText. The few
# constructs the house style allows are translated here.


def _inline(text: str) -> str:
    markup = r"(:py:obj:`[^`]+`|``[^`]+``|`[^`]+`|\$\$.+?\$\$|\$[^$]+\$)"
    pieces = re.split(markup, text, flags=re.S)
    out = []
    for piece in pieces:
        if piece.startswith("$$"):
            body = " ".join(piece[2:-2].split())
            out.append(f"\n\n.. math:: {body}\n\n")
        elif piece.startswith("$") and len(piece) > 1:
            out.append(f":math:`{' '.join(piece[1:-1].split())}`")
        elif piece.startswith(("``", ":py:obj:")):
            out.append(piece)
        elif piece.startswith("`") and len(piece) > 1:
            out.append(f"``{' '.join(piece[1:-1].split())}``")
        else:
            out.append(re.sub(r"\[([^\]]+)\]\((https?:[^)]+)\)", r"`\1 <\2>`__", piece))
    # Inline markup must not touch a letter: "\\ " separates without a space.
    for k in range(1, len(out) - 1, 2):
        if re.match(r"\w", out[k + 1]):
            out[k] += "\\ "
        if re.search(r"\w$", out[k - 1]):
            out[k] = "\\ " + out[k]
    return "".join(out)


def _admonition(match: re.Match) -> str:
    indent, kind = match.groups()
    if kind in ("caution", "danger", "note", "tip", "warning"):
        return f"{indent}.. {kind}::\n"
    return f"{indent}.. admonition:: {kind.capitalize()}\n"


def _table(match: re.Match) -> str:
    """A Markdown table as a list-table."""
    rows = [line.strip().strip("|") for line in match.group(0).strip().split("\n")]
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    out = [".. list-table::", "   :header-rows: 1", ""]
    for row in [cells[0], *cells[2:]]:
        out += [f"   {'* -' if k == 0 else '  -'} {cell}" for k, cell in enumerate(row)]
    indent = re.match(r"\s*", match.group(0).split("\n")[0]).group(0)
    return "\n" + textwrap.indent("\n".join(out), indent) + "\n\n"


def _reference(match: re.Match) -> str:
    """A link: names of the top level are described on the page of their room."""
    name = match.group(1)
    first = name.removeprefix("arborax.").split(".")[0]
    for room in ROOMS:
        if hasattr(importlib.import_module(f"arborax.{room}"), first):
            target = f"arborax.{room}." + name.removeprefix("arborax.")
            return f":py:obj:`{name} <{target}>`"
    return f":py:obj:`{name}`"


def _lists(text: str) -> str:
    """Lines of a list item are indented by four spaces here, by two there."""
    out, indent = [], None
    for line in text.split("\n"):
        if item := re.match(r"( *)[-*] ", line):
            indent = len(item[1])
        elif indent is not None and line.startswith(" " * (indent + 4)):
            line = line[2:]
        elif line.strip():
            indent = None
        out.append(line)
    return "\n".join(out)


def _prose(text: str) -> str:
    # A paragraph, a blank line, four more spaces: Markdown's indented code.
    text = re.sub(
        r"^( *)(?![-*] |!!!|\?\?\?)(\S.*)\n\n(?=\1    \S)",
        r"\1\2\n\n\1::\n\n",
        text,
        flags=re.M,
    )
    text = _lists(text)
    text = re.sub(r"^( *)!!! (\w+).*$", _admonition, text, flags=re.M)
    text = re.sub(r'^( *)\?\?\? \w+ "(.+)"$', r"\1**\2:**\n", text, flags=re.M)
    text = re.sub(r"\[`([^`]+)`\]\[\]", _reference, text)
    text = re.sub(r"(?:^ *\|.*\|\n?){3,}", _table, text, flags=re.M)
    return _inline(text)


def _code(indent: str, body: str) -> str:
    body = textwrap.indent(textwrap.dedent(body), "   ")
    block = f"\n.. code-block:: python\n\n{body}\n"
    return textwrap.indent(block, indent)


def markdown_docstring(app, what, name, obj, options, lines):
    # Odd pieces of the split are (indentation, body) of fenced blocks.
    pieces = re.split(
        r"^( *)```[^\n]*\n(.*?)^ *```$", "\n".join(lines), flags=re.M | re.S
    )
    out = _prose(pieces[0])
    for indent, body, prose in zip(pieces[1::3], pieces[2::3], pieces[3::3]):
        out += _code(indent, body) + _prose(prose)
    lines[:] = out.split("\n")


# Pages made from what the package and the repository hold at build time.

ROOMS = {
    "algebra": "Words, trees, forests and their Hopf algebras, as static tables.",
    "paths": "Sampled paths, interpolation, augmentation, windows, random drivers.",
    "signatures": "Signatures and log-signatures of paths, and controls made of them.",
    "geometry": "Manifolds of states: rotations, poses, covariances, spheres.",
    "lifts": "From driving fields and a log-signature to the field of a window.",
    "solvers": "Solving equations: the log-ODE, simulation, adjoints, Diffrax.",
    "kernels": "Signature kernels, distances between laws, two-sample tests.",
    "models": "Neural rough differential equations and their baselines.",
    "training": "`fit`, objectives, checkpoints, many devices.",
    "datasets": "Simulated and recorded data.",
    "estimators": "Estimators with the interface of scikit-learn, for your own data.",
    "plots": "Pictures, drawn with Matplotlib.",
    "cli": "The command `arborax`.",
}


def _write(path: pathlib.Path, text: str):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def _api_pages():
    pages, lines = [], ["| room | what is in it |", "|---|---|"]
    for room, summary in ROOMS.items():
        try:
            module = importlib.import_module(f"arborax.{room}")
        except ModuleNotFoundError:
            continue
        if not any(not name.startswith("_") for name in vars(module)):
            continue
        top = sorted(n for n in vars(module) if n[0] != "_" and hasattr(arborax, n))
        also = ", ".join(f":py:obj:`abx.{n} <arborax.{room}.{n}>`" for n in top)
        _write(
            GENERATED / "api" / f"{room}.md",
            f"# {room}\n\n{summary}\n\n"
            + "```{eval-rst}\n"
            + (f"Also at the top level: {also}.\n\n" if also else "")
            + f".. automodule:: arborax.{room}\n"
            "   :members:\n   :imported-members:\n   :show-inheritance:\n```\n",
        )
        pages.append(f"api/{room}")
        lines.append(f"| [{room}](api/{room}.md) | {summary} |")
    _write(
        GENERATED / "api.md",
        "# API reference\n\n"
        "One page per room. A room imports only from rooms above it in this list. "
        "Most names are also at the top level, as `abx.solve`.\n\n"
        + "\n".join(lines)
        + "\n\n```{toctree}\n:hidden:\n:maxdepth: 2\n\n"
        + "\n".join(pages)
        + "\n```\n\n"
        "```{eval-rst}\n.. autofunction:: arborax.citation\n"
        ".. autofunction:: arborax.debug_checks\n```\n",
    )


def _notebook_pages():
    for script in notebooks.scripts(ROOT):
        notebooks.write(script, GENERATED / script.parent.name)


def _gallery_page():
    """Each function of the gallery beside the picture that it draws."""
    path = ROOT / "examples" / "gallery.py"
    spec = importlib.util.spec_from_file_location("gallery", path)
    assert spec is not None and spec.loader is not None
    gallery = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gallery)
    gallery.main(GENERATED / "gallery")
    parts = [
        "# Gallery",
        "All pictures of [`abx.plots`](api/plots.md), each with the code that draws "
        "it. The imports are those of `examples/gallery.py`.",
    ]
    for picture in gallery.PICTURES:
        title, source = inspect.getdoc(picture), inspect.getsource(picture)
        parts += [
            f"## {picture.__name__}",
            title,
            f"![{title}](gallery/{picture.__name__}.png)",
            f"```python\n{source.strip()}\n```",
        ]
    _write(GENERATED / "gallery.md", "\n\n".join(parts) + "\n")


def _benchmark_page():
    results = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
    include = "\n\n".join(
        f"## {path.stem}\n\n```{{include}} ../../benchmarks/results/{path.name}\n```"
        for path in results
    )
    _write(
        GENERATED / "benchmark-results.md",
        "# Benchmark results\n\n" + (include or "No results are stored yet.") + "\n",
    )


def _device_page():
    """What `arborax bench --device` wrote, one column per file."""
    files = sorted((ROOT / "benchmarks" / "devices").glob("*.json"))
    documents = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    names = [f"{one['device']}, {one['cores']} cores" for one in documents]
    times: dict[str, dict[str, list[str]]] = {}
    for k, one in enumerate(documents):
        for row in one["cells"]:
            cells = times.setdefault(row["group"], {})
            line = cells.setdefault(row["cell"], ["not timed"] * len(documents))
            line[k] = "failed"
            if "error" not in row:
                line[k] = f"{1e3 * row['best_s']:.3g} ({row['first_s']:.1f})"
    parts = [
        "# Times by device",
        "Milliseconds per call, the best; in parentheses seconds of the first call, "
        "which compiles. `arborax bench --device gpu` (or `cpu`, `tpu`) times the "
        "device that is there and writes one JSON file and a page. Put the file into "
        "`benchmarks/devices`, and this page has one more column.",
    ]
    for group, cells in times.items():
        rows = [["", *names], ["---"] * (len(names) + 1)]
        rows += [[name, *line] for name, line in cells.items()]
        table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
        parts += [f"## {group}", table]
    parts.append("## Machines" if documents else "No file is stored yet.")
    for one, name in zip(documents, names):
        versions = ", ".join(f"{k} {v}" for k, v in one["versions"].items())
        day = one["date"].partition("T")[0]
        machine = f"{name}: {day}, {one['host']}, Python {one['python']}"
        notes = f"; {one['note']}" if "note" in one else ""
        parts.append(f"- {machine}, {versions}{notes}")
    _write(GENERATED / "devices.md", "\n\n".join(parts) + "\n")


def setup(app):
    app.connect("autodoc-process-docstring", markdown_docstring)
    _api_pages()
    _notebook_pages()
    _gallery_page()
    _benchmark_page()
    _device_page()

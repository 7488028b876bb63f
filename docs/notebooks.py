"""Text notebooks: scripts in the percent format, run cell by cell, as Markdown pages.

A script under `examples/tutorials`, `examples/explanation` or `examples/how-to` becomes
a page with its code, what the code prints, and the figures that it leaves open, in the
style `arborax.arborax`. The tests run the same function, so that a page cannot differ
from what was tested.
"""

import contextlib
import hashlib
import io
import os
import pathlib
import re
import sys
import tempfile
from collections.abc import Iterator

import matplotlib.pyplot as plt


SECTIONS = ("tutorials", "how-to", "explanation")


def scripts(root: pathlib.Path) -> list[pathlib.Path]:
    """All text notebooks of the repository, section by section."""
    return [
        script
        for section in SECTIONS
        for script in sorted((root / "examples" / section).glob("*.py"))
    ]


def cells(source: str) -> Iterator[tuple[bool, int, str]]:
    """Whether a cell is prose, the number of the line above it, and its text."""
    line = 0
    for k, cell in enumerate(re.split(r"^# %%", source, flags=re.M)):
        head, _, body = cell.partition("\n")
        if k and body.strip():
            yield "[markdown]" in head, line + 1, body
        line += cell.count("\n")


def page(script: pathlib.Path, folder: pathlib.Path) -> str:
    """Runs a script and returns its page. Figures go to `folder`, beside the page;
    files that the script writes go nowhere."""
    out, figures = [], 0
    namespace = {"__name__": "__main__"}
    folder.mkdir(parents=True, exist_ok=True)
    plt.close("all")  # what others left open is no figure of this script
    style = plt.style.context("arborax.arborax")
    with tempfile.TemporaryDirectory() as place, _inside(place), style:
        for prose, line, body in cells(script.read_text(encoding="utf-8")):
            if prose:
                out.append(re.sub(r"^# ?", "", body.strip("\n"), flags=re.M))
                continue
            out.append(f"```python\n{body.strip()}\n```")
            printed = io.StringIO()
            # Blank lines in front make tracebacks show the line of the script.
            code = compile("\n" * line + body, str(script), "exec")
            with contextlib.redirect_stdout(printed):
                exec(code, namespace)
            if printed.getvalue():
                out.append(f"```text\n{printed.getvalue().rstrip()}\n```")
            for number in plt.get_fignums():
                figures += 1
                name, figure = f"{script.stem}-{figures}.png", plt.figure(number)
                figure.savefig(folder / name, dpi=120)
                out.append(f"![{_title(figure)}]({name})")
                plt.close(figure)
    return "\n\n".join(out) + "\n"


def write(script: pathlib.Path, folder: pathlib.Path) -> None:
    """The page of a script, made again only if the script has changed."""
    digest = hashlib.sha256(script.read_bytes()).hexdigest()
    mark, target = f"<!-- {digest} -->\n\n", folder / f"{script.stem}.md"
    if not target.exists() or not target.read_text("utf-8").startswith(mark):
        target.parent.mkdir(parents=True, exist_ok=True)
        start = cpu_seconds()
        target.write_text(mark + page(script, folder), encoding="utf-8")
        print(f"{script.stem}: {cpu_seconds() - start:.0f} CPU s", flush=True)


def cpu_seconds() -> float:
    """Those of this process and of its children that have ended."""
    return sum(os.times()[:4])


@contextlib.contextmanager
def _inside(folder: str) -> Iterator[None]:
    before, arguments = pathlib.Path.cwd(), sys.argv
    os.chdir(folder)
    sys.argv = arguments[:1]
    try:
        yield
    finally:
        os.chdir(before)
        sys.argv = arguments


def _title(figure) -> str:
    """What a reader without eyes for the figure is told."""
    texts = [figure.get_suptitle()]
    for ax in figure.axes:
        texts += [ax.get_title(place) for place in ("left", "center", "right")]
    return "; ".join(dict.fromkeys(filter(None, texts))) or "Figure"

"""The report of an experiment: one HTML page that needs nothing else."""

import base64
import html
import io
import os
import pathlib
from typing import Any

from .figures import pyplot, training_curves
from .tables import Results
from .task import AbstractTask


STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 1000px;
  margin: 2em auto; padding: 0 1em; }
h1, h2, h3 { color: #1b6b58; } img { max-width: 100%; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; margin: 0.5em 0 1.5em; }
td, th { padding: 3px 9px; text-align: right; border-bottom: 1px solid #ddd; }
td:first-child, th:first-child { text-align: left; }
tr.reference td { color: #777; } code { background: #f2f2f2; padding: 1px 4px; }
"""


def report(
    task: AbstractTask, results: Results, file: str | os.PathLike
) -> pathlib.Path:
    """Writes the report of some results.

    **Arguments:**

    - `task`: the experiment.
    - `results`: from [`arborax_experiments.collect`][].
    - `file`: the page to write.

    **Returns:**

    The path of the page.
    """
    if not results:
        raise ValueError("no results to report; make one with `arborax run`.")
    body = [f"<h1>{html.escape(task.name)}</h1>", task.introduction]
    for title, group in task.groups(results).items():
        body.append(f"<h2>{html.escape(title).capitalize()}</h2>")
        body += [table.html for table in task.tables(group)]
        body.append(embedded("training", training_curves(task, group)))
        body += [embedded(*figure) for figure in task.figures(group)]
        for result in group:
            body.append(run_heading(task.label(result), result))
            body += [embedded(*figure) for figure in task.run_figures(result)]
    return write_page(task.name, body, file)


def run_heading(label: str, result: dict[str, Any]) -> str:
    """Model, seed, command, machine and date of one run."""
    machine = ", ".join(f"{k} {v}" for k, v in result["machine"].items())
    return (
        f"<h3>{html.escape(label)}, seed {result['seed']}</h3>"
        f"<p><code>{html.escape(result['command'])}</code><br>{html.escape(machine)}, "
        f"{result['date']}</p>"
    )


def embedded(title: str, figure: Any) -> str:
    """A figure as an image inside the page; closes the figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    pyplot().close(figure)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{html.escape(title)}" src="data:image/png;base64,{data}">'


def write_page(title: str, body: list[str], file: str | os.PathLike) -> pathlib.Path:
    """Writes the page beside the file, then renames it."""
    page = (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>arborax: {html.escape(title)}</title>"
        f"<style>{STYLE}</style></head><body>" + "\n".join(body) + "</body></html>\n"
    )
    file = pathlib.Path(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".tmp")
    temporary.write_text(page, encoding="utf-8")
    os.replace(temporary, file)
    return file

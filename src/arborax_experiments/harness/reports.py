"""The report of an experiment: one self-contained HTML page."""

import html
import os
import pathlib
from typing import Any

from arborax.plots import html_image, html_page

from .figures import training_curves
from .tables import all_tables, provenance, Results
from .task import AbstractTask


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
        made = html.escape(provenance(group))
        body.append(f"<div class='scroll'><pre>{made}</pre></div>")
        body += [table.html for table in all_tables(task, group)]
        compared = task.compared(group)
        body.append(html_image("training", training_curves(task, compared)))
        body += [html_image(*figure) for figure in task.figures(compared)]
        for result in group:
            figures = [html_image(*figure) for figure in task.run_figures(result)]
            if figures:
                body += [run_heading(task.label(result), result), *figures]
    return html_page(task.name, body, file)


def run_heading(label: str, result: dict[str, Any]) -> str:
    """Model, seed, command, machine and date of one run."""
    machine = ", ".join(f"{k} {v}" for k, v in result["machine"].items())
    return (
        f"<h3>{html.escape(label)}, seed {result['seed']}</h3>"
        f"<p><code>{html.escape(result['command'])}</code><br>{html.escape(machine)}, "
        f"{result['date']}</p>"
    )

"""The report: one HTML page that needs nothing else."""

import dataclasses
import html
import os
import pathlib
from typing import Any

from .._layout import embedded, html_table, write_page
from ._config import Config
from ._figures import fan_chart, marginals, read_paths, training
from ._table import by_setting, CONE, LABELS, MORE, rows


INTRODUCTION = """<p>Generated against true paths of covariance matrices. W1 is the
one-dimensional Wasserstein distance of each sorted eigenvalue, mean over eigenvalues,
times 100. The floor is what a perfect model would score: two samples of the true law.
The references never leave the identity, and follow the mean eigenvalues without noise.
A point is off the cone if an eigenvalue is not positive.</p>"""


def report(
    results: list[dict[str, Any]], file: str | os.PathLike, experiment: str
) -> pathlib.Path:
    """Writes the report of some results.

    **Arguments:**

    - `results`: from [`arborax.experiments.collect`][].
    - `file`: the page to write.
    - `experiment`: its name.

    **Returns:**

    The path of the page.
    """
    if not results:
        raise ValueError("no results to report; make one with `arborax run`.")
    body = [f"<h1>{html.escape(experiment)}</h1>", INTRODUCTION]
    for title, group in by_setting(results).items():
        body.append(f"<h2>{html.escape(title)}</h2>")
        body.append(_tables(group))
        body.append("<h3>Training</h3>" + embedded(training(group), "training"))
        body += [_run(result) for result in group]
    return write_page(experiment, body, file)


def _tables(group: list[dict[str, Any]]) -> str:
    content = rows(group)
    names = content["columns"]
    return "".join(
        [
            f"<h3>Pooled W1 x 100, {content['test_paths']} test paths</h3>",
            html_table(["", *names], content["pooled"]),
            "<h3>Per-batch W1 x 100, as published</h3>",
            html_table(["", *names], content["batch"]),
            "<h3>The cone (worst over seeds), and realised variation</h3>",
            html_table(["", *CONE], content["cone"]),
            "<h3>Runs</h3>",
            html_table(["", *MORE], content["more"]),
        ]
    )


def config_of(result: dict[str, Any]) -> Config:
    """The configuration stored in a result."""
    known = {field.name for field in dataclasses.fields(Config)}
    values = {k: v for k, v in result["config"].items() if k in known}
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    return Config(**values)


def _run(result: dict[str, Any]) -> str:
    label = LABELS[result["model"]]
    machine = ", ".join(f"{k} {v}" for k, v in result["machine"].items())
    out = [
        f"<h3>{html.escape(label)}, seed {result['seed']}</h3>",
        f"<p><code>{html.escape(result['command'])}</code><br>{html.escape(machine)}, "
        f"{result['date']}</p>",
    ]
    paths = read_paths(result)
    if paths is not None:
        config = config_of(result)
        out += [
            embedded(fan_chart(paths), "eigenvalues over time"),
            embedded(marginals(paths, config), "laws of eigenvalues"),
        ]
    return "".join(out)

"""The report: one HTML page that needs nothing else."""

import os
import pathlib
from typing import Any

from .._layout import embedded, html_table
from .._report import Results, run_heading, stored_config, write_report
from ._config import Config
from ._figures import fan_chart, marginals, read_paths, training
from ._table import by_setting, CONE, LABELS, MORE, rows


INTRODUCTION = """<p>Generated against true paths of covariance matrices. W1 is the
one-dimensional Wasserstein distance of each sorted eigenvalue, mean over eigenvalues,
times 100. The floor is what a perfect model would score: two samples of the true law.
The references never leave the identity, and follow the mean eigenvalues without noise.
A point is off the cone if an eigenvalue is not positive.</p>"""


def report(results: Results, file: str | os.PathLike, experiment: str) -> pathlib.Path:
    """Writes the report of some results.

    **Arguments:**

    - `results`: from [`arborax.experiments.collect`][].
    - `file`: the page to write.
    - `experiment`: its name.

    **Returns:**

    The path of the page.
    """
    return write_report(file, experiment, INTRODUCTION, by_setting(results), _sections)


def _sections(group: Results) -> list[str]:
    return [
        _tables(group),
        "<h3>Training</h3>" + embedded(training(group), "training"),
        *map(_run, group),
    ]


def _tables(group: Results) -> str:
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


def _run(result: dict[str, Any]) -> str:
    out = [run_heading(result, LABELS[result["model"]])]
    paths = read_paths(result)
    if paths is not None:
        config = stored_config(Config, result)
        out += [
            embedded(fan_chart(paths), "eigenvalues over time"),
            embedded(marginals(paths, config), "laws of eigenvalues"),
        ]
    return "".join(out)

"""The report: one HTML page that needs nothing else."""

import os
import pathlib
from typing import Any

from .._layout import embedded, html_table
from .._report import Results, run_heading, stored_config, write_report
from ._config import Config
from ._figures import (
    fan_chart,
    functionals,
    marginals,
    read_paths,
    smiles,
    training,
)
from ._table import by_setting, LABELS, MORE, rows


INTRODUCTION = """<p>Generated against true log-prices. KS is the two-sample
Kolmogorov-Smirnov statistic, times 100. The floor is what a perfect model would score:
two samples of the true law, of the size of the test set; "on these test paths" is what
fresh samples of the true law score on average against this very test set. The Gaussian
reference has the mean and variance of the data at every time and independent
increments. Realised variance, running maximum and clustering (lag-1 autocorrelation of
squared returns) are taken on the grid of windows; the bracket is the sum of all squared
steps, and for the data that of the simulator. The p-value is that of a permutation test
with a kernel that no model was trained on.</p>"""


def report(results: Results, file: str | os.PathLike, experiment: str) -> pathlib.Path:
    """Writes the report of some results.

    **Arguments:**

    - `results`: from [`arborax.experiments.collect`][].
    - `file`: the page to write.
    - `experiment`: its name.

    **Returns:**

    The path of the page.
    """
    groups = {name.capitalize(): group for name, group in by_setting(results).items()}
    return write_report(file, experiment, INTRODUCTION, groups, _sections)


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
            f"<h3>Pooled KS x 100, {content['test_paths']} test paths</h3>",
            html_table(["", *names], content["pooled"]),
            f"<h3>The same, mean over {content['fresh_sets']} fresh test sets</h3>",
            html_table(["", *names], content["fresh"]),
            "<h3>Per-batch KS x 100, as published</h3>",
            html_table(["", *names[: content["horizons"]]], content["batch"]),
            "<h3>Runs</h3>",
            html_table(["", *MORE], content["more"]),
        ]
    )


def _run(result: dict[str, Any]) -> str:
    out = [run_heading(result, LABELS[result["model"]])]
    paths, config = read_paths(result), stored_config(Config, result)
    if paths is not None:
        out += [
            embedded(fan_chart(paths), "true and generated paths"),
            embedded(marginals(paths, config), "marginal laws"),
            embedded(functionals(paths, config), "path functionals"),
        ]
    out.append(embedded(smiles(result), "implied volatilities"))
    return "".join(out)

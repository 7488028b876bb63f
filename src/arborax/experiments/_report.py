"""The report: one HTML page that needs nothing else."""

import dataclasses
import html
import os
import pathlib
from typing import Any

from ._config import Config
from ._figures import (
    embedded,
    fan_chart,
    functionals,
    marginals,
    read_paths,
    smiles,
    training,
)
from ._table import by_setting, LABELS, MORE, rows


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
    for (setting, preset), group in by_setting(results).items():
        body.append(f"<h2>Setting {setting}, preset {preset}</h2>")
        body.append(_tables(group))
        body.append("<h3>Training</h3>" + embedded(training(group), "training"))
        for result in group:
            body.append(_run(result))
    page = (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>arborax: {html.escape(experiment)}</title>"
        f"<style>{STYLE}</style></head><body>" + "\n".join(body) + "</body></html>\n"
    )
    file = pathlib.Path(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".tmp")
    temporary.write_text(page, encoding="utf-8")
    os.replace(temporary, file)
    return file


INTRODUCTION = """<p>Generated against true log-prices. KS is the two-sample
Kolmogorov-Smirnov statistic, times 100. The floor is what a perfect model would score:
two samples of the true law, of the size of the test set. The Gaussian reference has the
mean and variance of the data at every time and independent increments. Realised
variance, running maximum and clustering (lag-1 autocorrelation of squared returns) are
taken on the grid of windows. The p-value is that of a permutation test with a kernel
that no model was trained on.</p>"""


def _tables(group: list[dict[str, Any]]) -> str:
    content = rows(group)
    names = content["columns"]
    return "".join(
        [
            f"<h3>Pooled KS x 100, {content['test_paths']} test paths</h3>",
            _html_table(["", *names], content["pooled"]),
            "<h3>Per-batch KS x 100, as published</h3>",
            _html_table(["", *names[: content["horizons"]]], content["batch"]),
            "<h3>Runs</h3>",
            _html_table(["", *MORE], content["more"]),
        ]
    )


def _html_table(header: list[str], lines: list[tuple[str, list[str]]]) -> str:
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    out = [f"<div class='scroll'><table><tr>{head}</tr>"]
    for label, cells in lines:
        reference = "floor" in label or "reference" in label or "published" in label
        mark = " class='reference'" if reference else ""
        row = "".join(f"<td>{html.escape(cell)}</td>" for cell in [label, *cells])
        out.append(f"<tr{mark}>{row}</tr>")
    return "".join(out) + "</table></div>"


def config_of(result: dict[str, Any]) -> Config:
    """The configuration stored in a result."""
    known = {field.name for field in dataclasses.fields(Config)}
    values = {k: v for k, v in result["config"].items() if k in known}
    return Config(**{**values, "horizons": tuple(values["horizons"])})


def _run(result: dict[str, Any]) -> str:
    label = LABELS[result["model"]]
    machine = ", ".join(f"{k} {v}" for k, v in result["machine"].items())
    out = [
        f"<h3>{html.escape(label)}, seed {result['seed']}</h3>",
        f"<p><code>{html.escape(result['command'])}</code><br>{html.escape(machine)}, "
        f"{result['date']}</p>",
    ]
    paths, config = read_paths(result), config_of(result)
    if paths is not None:
        out += [
            embedded(fan_chart(paths), "true and generated paths"),
            embedded(marginals(paths, config), "marginal laws"),
            embedded(functionals(paths, config), "path functionals"),
        ]
    out.append(embedded(smiles(result), "implied volatilities"))
    return "".join(out)

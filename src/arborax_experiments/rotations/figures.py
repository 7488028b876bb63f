"""The report: one HTML page that needs nothing else."""

import html
import os
import pathlib
from typing import Any

from .._layout import embedded, html_table, pyplot
from .._report import Results, write_report
from ._table import (
    by_setting,
    column_parts,
    columns,
    FIGURES,
    label_of,
    means,
    NOISY,
    noisy_rows,
    PUBLISHED_COLUMNS,
    published_rows,
    rows,
    run_rows,
    RUNS,
)


INTRODUCTION = """<p>Orientations: 12 observed points, 9 forecast. RGE is the angle
between forecast and truth in degrees. References are not learned and see the same
observations. Models are trained on simulated rotation only; recordings are forecast
without further training.</p>"""


def report(results: Results, file: str | os.PathLike, experiment: str) -> pathlib.Path:
    """Writes the report of some results.

    **Arguments:**

    - `results`: from [`arborax.experiments.collect`][].
    - `file`: the page to write.
    - `experiment`: its name.

    **Returns:**

    The path of the page.
    """
    groups = {
        f"Setting {setting}, preset {preset}": group
        for (setting, preset), group in by_setting(results).items()
    }
    return write_report(file, experiment, INTRODUCTION, groups, _sections)


def _sections(group: Results) -> list[str]:
    out = []
    sources, lines = noisy_rows(group)
    if sources:
        out.append(f"<h3>{NOISY}</h3>" + html_table(["", *sources], lines))
    for figure, title in FIGURES.items():
        for source, names in column_parts(columns(group)).items():
            short = [name.partition(", ")[2] for name in names]
            out.append(f"<h3>{html.escape(source)}: {title}</h3>")
            out.append(html_table(["", *short], rows(group, figure, names)))
    out.append("<h3>As published: twice the mean, all points</h3>")
    out.append(html_table(["", *PUBLISHED_COLUMNS, "ours"], published_rows(group)))
    out.append("<h3>Runs</h3>" + html_table(["", *RUNS], run_rows(group)))
    out.append(embedded(_bars(group), "forecast errors"))
    out.append(embedded(_training(group), "training"))
    for result in group:
        command = html.escape(result["command"])
        out.append(f"<p><code>{command}</code>, {result['date']}</p>")
    return out


def _bars(results: Results) -> Any:
    """Forecast errors in units of the best reference of each column."""
    plt = pyplot()
    names = columns(results)
    figure, axes = plt.subplots(figsize=(9, 4))
    best = {}
    for result in results:
        for scores in result["references"].values():
            for name, value in means(scores, "forecast").items():
                best[name] = min(value, best.get(name, value))
    for result in results:
        found = means(result["scores"], "forecast")
        ratios = [found[n] / best[n] if n in found else float("nan") for n in names]
        label = f"{label_of(result)}, {result['seed']}"
        axes.plot(range(len(names)), ratios, "o", label=label, alpha=0.7)
    axes.axhline(1, color="grey", linewidth=1)
    axes.set_yscale("log")
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=7)
    axes.set_ylabel("error / best reference")
    axes.legend(fontsize=6, ncols=2)
    return figure


def _training(results: Results) -> Any:
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(7, 3.5))
    for result in results:
        records = result["stages"][0]["validation"]
        steps, values = zip(*((r["step"], r["metric"]) for r in records))
        axes.plot(steps, values, label=f"{label_of(result)}, {result['seed']}")
    axes.set_xlabel("step")
    axes.set_ylabel("validation")
    axes.set_yscale("log")
    axes.legend(fontsize=6, ncols=2)
    return figure

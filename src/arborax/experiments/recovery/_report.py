"""The report: one HTML page that needs nothing else."""

import html
import os
import pathlib
from typing import Any

from .._layout import embedded, html_table, pyplot, write_page
from ._table import curve_gaps, CURVES, HEADER, PUBLISHED, rows


def report(
    results: list[dict[str, Any]], file: str | os.PathLike, experiment: str
) -> pathlib.Path:
    """Writes the report of some results; arguments as
    `arborax.experiments.rough_bergomi.report`."""
    if not results:
        raise ValueError("no results to report; make one with `arborax run`.")
    body = [
        f"<h1>{html.escape(experiment)}</h1>",
        "<p>B-NRDE in the shuffle algebra on vectors with softplus is the log-NCDE: at "
        "equal weights the outputs agree to rounding, and so do loss curves.</p>",
        html_table(["", *HEADER], rows(results)),
        html_table(["", *CURVES], curve_gaps(results)),
        f"<p>{html.escape(PUBLISHED)}</p>",
        embedded(_curves(results), "loss curves"),
    ]
    body += [f"<p><code>{html.escape(r['command'])}</code></p>" for r in results]
    return write_page(experiment, body, file)


def _curves(results: list[dict[str, Any]]) -> Any:
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(7, 3.5))
    for result in results:
        style = "-" if result["model"] == "log-ncde" else "--"
        label = f"{result['model']}, {result['data']}, {result['seed']}"
        axes.plot(result["loss"], style, label=label)
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.set_yscale("log")
    axes.legend(fontsize=6)
    return figure

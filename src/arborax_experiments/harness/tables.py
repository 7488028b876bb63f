"""Tables as text and as HTML, figures inside a page, and the page itself."""

import base64
import html
import io
import os
import pathlib
from typing import Any

import numpy as np


Lines = list[tuple[str, list[str]]]

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


def percent_cells(values: list[list[float]]) -> list[str]:
    """Hundredfold values of one run, or their mean and deviation over several."""
    table = 100 * np.asarray(values)
    if len(values) == 1:
        return [f"{v:.2f}" for v in table[0]]
    spread = table.std(axis=0, ddof=1)
    return [f"{m:.2f}±{s:.2f}" for m, s in zip(table.mean(axis=0), spread)]


def text_table(header: list[str], lines: Lines) -> str:
    """Columns aligned: labels left, numbers right."""
    cells = [header, *([label, *values] for label, values in lines)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]

    def line(row):
        first = row[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        return "  ".join([first, *rest]).rstrip()

    rule = "-" * (sum(widths) + 2 * len(widths) - 2)
    return "\n".join([line(cells[0]), rule, *(line(row) for row in cells[1:])])


def html_table(header: list[str], lines: Lines) -> str:
    """Rows that are not measured models (floors, references, published) are grey."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    out = [f"<div class='scroll'><table><tr>{head}</tr>"]
    for label, cells in lines:
        reference = any(word in label for word in ("floor", "reference", "published"))
        mark = " class='reference'" if reference else ""
        row = "".join(f"<td>{html.escape(cell)}</td>" for cell in [label, *cells])
        out.append(f"<tr{mark}>{row}</tr>")
    return "".join(out) + "</table></div>"


def pyplot() -> Any:
    """Matplotlib without a screen, in the style of the library."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError(
            "figures need Matplotlib: pip install 'arborax[plots]'."
        ) from error
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    plt.style.use("arborax.arborax")
    return plt


def embedded(figure: Any, title: str) -> str:
    """A figure as an image inside the page; closes the figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    pyplot().close(figure)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{html.escape(title)}" src="data:image/png;base64,{data}">'


def write_page(title: str, body: list[str], file: str | os.PathLike) -> pathlib.Path:
    """One HTML page that needs nothing else."""
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

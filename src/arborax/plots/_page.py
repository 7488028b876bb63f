"""Reports: one self-contained HTML page with its pictures inside."""

import base64
import html
import io
import os
import pathlib
from collections.abc import Sequence
from typing import Any

from ._style import pyplot


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


def html_image(title: str, figure: Any) -> str:
    """A figure as an element of a page, its data inside; closes the figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    pyplot().close(figure)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{html.escape(title)}" src="data:image/png;base64,{data}">'


def html_page(title: str, body: Sequence[str], file: str | os.PathLike) -> pathlib.Path:
    """Writes a page of HTML elements beside the file, then renames it.

    **Returns:**

    The path of the page.
    """
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

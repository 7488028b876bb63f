"""What the reports of all experiments have in common."""

import dataclasses
import html
import os
import pathlib
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ._layout import write_page


Results = list[dict[str, Any]]
C = TypeVar("C")


def write_report(
    file: str | os.PathLike,
    experiment: str,
    introduction: str,
    groups: dict[str, Results],
    sections: Callable[[Results], Iterable[str]],
) -> pathlib.Path:
    """Writes one HTML page that needs nothing else.

    **Arguments:**

    - `file`: the page to write.
    - `experiment`: its name.
    - `introduction`: a paragraph in HTML.
    - `groups`: results by the heading that they stand under.
    - `sections`: the parts, in HTML, of one group.

    **Returns:**

    The path of the page.
    """
    if not groups:
        raise ValueError("no results to report; make one with `arborax run`.")
    body = [f"<h1>{html.escape(experiment)}</h1>", introduction]
    for title, group in groups.items():
        body.append(f"<h2>{html.escape(title)}</h2>")
        body.extend(sections(group))
    return write_page(experiment, body, file)


def run_heading(result: dict[str, Any], label: str) -> str:
    """Model, seed, command, machine and date of one run."""
    machine = ", ".join(f"{k} {v}" for k, v in result["machine"].items())
    return (
        f"<h3>{html.escape(label)}, seed {result['seed']}</h3>"
        f"<p><code>{html.escape(result['command'])}</code><br>{html.escape(machine)}, "
        f"{result['date']}</p>"
    )


def stored_config(kind: type[C], result: dict[str, Any]) -> C:
    """The configuration stored in a result, which may have been written by another
    version: fields that it has no more are left out, new ones have their defaults."""
    known = {field.name for field in dataclasses.fields(kind)}  # pyright: ignore
    values = {k: v for k, v in result["config"].items() if k in known}
    return kind(
        **{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    )

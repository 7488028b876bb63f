"""Heat maps of stored times of log-signatures, which `benchmarks/bench_timing.py`
measures: channels by algebra and depth, beside pysiglib."""

import html
import json
import os
import pathlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Float

from arborax.plots import html_image, html_page

from .harness import pyplot, Table


FILE = "timing/timing.json"
LIBRARIES = ("arborax", "pysiglib")
ALGEBRAS = ("Shuffle", "GrossmanLarson", "MuntheKaasWright", "Ito")
LABELS = [(depth, algebra) for depth in (2, 3) for algebra in ALGEBRAS]
COLUMNS = ["blank cells", "of pysiglib", "pysiglib / arborax: median", "range"]


def grid(document: dict[str, Any], library: str) -> Float[np.ndarray, "rows channels"]:
    """Milliseconds of each algebra and depth, NaN where there is no time. The `Ito`
    algebra is set against the rival's planar trees, which it compresses."""
    channels = document["channels"]
    out = np.full((len(LABELS), len(channels)), np.nan)
    for row in document["rows"]:
        for k, (depth, algebra) in enumerate(LABELS):
            if library == "pysiglib" and algebra == "Ito":
                algebra = "MuntheKaasWright"
            key = row["library"], row["depth"], row["algebra"]
            if key == (library, depth, algebra):
                out[k, channels.index(row["dim"])] = 1e3 * row["seconds"]
    return out


def heat_maps(document: dict[str, Any]) -> Any:
    """Two heat maps, ours and the rival's, on one scale."""
    plt = pyplot()
    from matplotlib.colors import LogNorm

    grids = {name: grid(document, name) for name in LIBRARIES}
    times = np.concatenate([values.ravel() for values in grids.values()])
    norm = LogNorm(np.nanmin(times), np.nanmax(times))
    figure, axes = plt.subplots(2, 1, figsize=(11, 6.4), layout="constrained")
    image: Any = None
    for ax, (name, values) in zip(axes, grids.items()):
        image = ax.imshow(values, norm=norm, cmap="viridis", aspect="auto")
        ax.set_xticks(range(values.shape[1]), [str(d) for d in document["channels"]])
        ticks = [f"{algebra}, N={depth}" for depth, algebra in LABELS]
        ax.set_yticks(range(len(ticks)), ticks)
        ax.grid(False)
        for (i, j), value in np.ndenumerate(values):
            if np.isfinite(value):
                colour = "white" if norm(value) < 0.6 else "black"
                style: Any = dict(ha="center", va="center", color=colour, size=6)
                ax.text(j, i, _short(value), **style)
        blank = int(np.isnan(values).sum())
        ax.set_title(f"{name}: log-signature, CPU ms ({blank} blank cells)")
    axes[-1].set_xlabel("channels")
    figure.colorbar(image, ax=axes, label="CPU ms for 32 paths of 64 points")
    return figure


def ratios(document: dict[str, Any]) -> Table:
    """Times of the rival over ours, by algebra and depth."""
    ours, theirs = (grid(document, name) for name in LIBRARIES)
    lines = []
    for (depth, algebra), mine, other in zip(LABELS, ours, theirs):
        ratio = (other / mine)[np.isfinite(other / mine)]
        blanks = [str(int(np.isnan(values).sum())) for values in (mine, other)]
        extent = ["-", "-"]
        if ratio.size:
            low, high = _short(ratio.min()), _short(ratio.max())
            extent = [_short(np.median(ratio)), f"{low} to {high}"]
        lines.append((f"{algebra}, {depth}", [*blanks, *extent]))
    return Table("ratios", COLUMNS, lines)


def timing_report(
    folders: Iterable[str | os.PathLike], file: str | os.PathLike
) -> pathlib.Path | None:
    """Writes the page of the times stored in the first of some folders that has any.

    **Returns:**

    The path of the page, or `None` if there are no times.
    """
    for folder in folders:
        stored = pathlib.Path(folder) / FILE
        if stored.exists():
            document = json.loads(stored.read_text(encoding="utf-8"))
            made = document["settings"]
            note = f"{made['command']}; {made['machine']}"
            body = ["<h1>timing</h1>", f"<p><code>{html.escape(note)}</code></p>"]
            body += [ratios(document).html]
            body += [html_image("times by channels", heat_maps(document))]
            return html_page("timing", body, file)
    return None


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"

"""The figure of the experiment: from simulated motion to recordings."""

from typing import Any

from ..harness import OURS, pyplot, Results, TRUE
from .tables import noisy_table


STEPS = (
    "training:\nsimulated motion,\nnoise and gaps",
    "12 observed points\nfront: noise removed,\n9 points proposed",
    "equation on SO(3)\ndriven by the front:\n9 forecast points",
    "tests, without training:\nrecorded motion,\nnoise and gaps",
)


def scheme(results: Results) -> Any:
    """The steps of the experiment, and the errors under noise at each source: every
    reference and every model, the first model of the table emphasised."""
    figure, (top, bottom) = pyplot().subplots(
        2, 1, figsize=(9, 5), height_ratios=(1, 2.4)
    )
    for k, text in enumerate(STEPS):
        box = dict(boxstyle="round,pad=0.5", facecolor="white", edgecolor=OURS)
        place: Any = dict(ha="center", va="center", fontsize=8, bbox=box)
        top.text(k, 0, text, **place)
        if k:
            arrow = dict(arrowstyle="->", color=OURS, shrinkA=0, shrinkB=0)
            ends = dict(xy=(k - 0.36, 0), xytext=(k - 0.64, 0))
            top.annotate("", **ends, arrowprops=arrow)
    top.set(xlim=(-0.5, len(STEPS) - 0.5), ylim=(-1, 1))
    top.axis("off")
    table = noisy_table(results)
    angles = [i for i, name in enumerate(table.columns) if "%" not in name]
    first = next(i for i, (label, _) in enumerate(table.lines) if _is_model(label))
    rows = [*table.lines[:first], *table.lines[first + 1 :], table.lines[first]]
    for k, (label, cells) in enumerate(rows):
        xs = [x for x, i in enumerate(angles) if cells[i] != "-"]
        ys = [float(cells[angles[x]].split("±")[0]) for x in xs]
        shift = 0.12 if _is_model(label) else -0.12
        look = dict(color=TRUE, marker="_", markersize=14)
        if _is_model(label):
            look = dict(color="C1", marker="o", markersize=4, alpha=0.6)
        if k == len(rows) - 1:
            look, shift = dict(color=OURS, marker="D", markersize=7), 0.12
        names = {0: "references", first: "other models", len(rows) - 1: label}
        own: Any = dict(linestyle="", label=names.get(k))
        bottom.plot([x + shift for x in xs], ys, **look, **own)
    bottom.set_xticks(range(len(angles)), [table.columns[i] for i in angles])
    bottom.set(yscale="log", ylabel="error under noise, degrees")
    bottom.legend(fontsize=7, loc=(0.56, 0.03))
    return figure


def _is_model(label: str) -> bool:
    return not label.startswith("reference")

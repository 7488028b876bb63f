"""The figure of the experiment: from simulated motion to recordings."""

from typing import Any

from ..harness import OURS, pyplot, Results, TRUE
from .tables import BANKS, LABELS, noisy_table


STEPS = (
    "training:\nsimulated motion,\nnoise and gaps",
    "12 observed points\nfront: noise removed,\n9 points proposed",
    "equation on SO(3)\ndriven by the front:\n9 forecast points",
    "tests, without training:\nrecorded motion,\nnoise and gaps",
)


def scheme(results: Results) -> Any:
    """The steps of the experiment, and the errors under noise at each source, with the
    rows that the conclusion is about emphasised: the first model, the same with no
    equation, and the untrained bank."""
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
    first = next((label for label, _ in table.lines if _is_model(label)), "")
    named = set()
    for label, cells in table.lines:
        xs = [x for x, i in enumerate(angles) if cells[i] != "-"]
        ys = [float(cells[angles[x]].split("±")[0]) for x in xs]
        name, shift, look = _look(label, first)
        own: Any = dict(linestyle="", label=None if name in named else name)
        bottom.plot([x + shift for x in xs], ys, **look, **own)
        named.add(name)
    bottom.set_xticks(range(len(angles)), [table.columns[i] for i in angles])
    bottom.set(yscale="log", ylabel="error under noise, degrees")
    figure.legend(fontsize=7, loc="outside lower center", ncols=3)
    return figure


def _look(label: str, first: str) -> tuple[str, float, dict[str, Any]]:
    """The name of a row in the legend, its place beside the others, and its marks."""
    if label == first:
        return label, 0.2, dict(color=OURS, marker="D", markersize=6)
    if label.startswith(f"{LABELS['front']}, "):
        return label, 0.0, dict(color="C2", marker="s", markersize=6)
    if label.endswith(BANKS["60 laws"]):
        return f"untrained {label}", -0.2, dict(color="black", marker="_", ms=16, mew=3)
    if _is_model(label):
        return "other models", 0.1, dict(color="C1", marker="o", ms=4, alpha=0.6)
    return "other references", -0.2, dict(color=TRUE, marker="_", markersize=14)


def _is_model(label: str) -> bool:
    return not label.startswith("reference")

"""Figures that all experiments share."""

import pathlib
from typing import Any

import numpy as np

from arborax import plots
from arborax.training import History

from .tables import Results


TRUE, OURS = "#7a7a7a", "#1b6b58"
COLOURS = 5  # of the library's style
STYLES = ("-", "--", ":", "-.")


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


def densities(
    ax: Any, bins: Any, true: Any, ours: Any, colours: tuple[str, str] = (TRUE, OURS)
) -> None:
    """Histograms of the data, filled, and of generated values, as a line."""
    ax.hist(true, bins, density=True, color=colours[0], alpha=0.4, label="true")
    line: Any = dict(histtype="step", label="generated")
    ax.hist(ours, bins, density=True, color=colours[1], **line)
    ax.set(yticks=[])


def read_paths(result: dict[str, Any]) -> dict[str, np.ndarray] | None:
    """The arrays of `paths.npz`, or `None` where only scores were kept."""
    file = pathlib.Path(result["folder"]) / "paths.npz"
    if not file.exists():
        return None
    with np.load(file) as content:
        return {name: content[name] for name in content.files}


def look(number: int) -> tuple[str, int]:
    """The colour of the row `number` of a figure, and which of four kinds of line or
    mark tells it from rows of the same colour."""
    return f"C{number % COLOURS}", number // COLOURS % len(STYLES)


def training_curves(task: Any, results: Results) -> Any:
    """Losses and validation metrics of all stages; rows differ in colour and line, and
    seeds of a row share them. Rows without training are left out."""
    results = [result for result in results if result["stages"]]
    labels = list(dict.fromkeys(task.label(result) for result in results))
    size = 9, 3.2 + 0.15 * len(labels) / 3
    figure, (left, right) = pyplot().subplots(1, 2, figsize=size)
    for number, label in enumerate(labels):
        colour, kind = look(number)
        left.plot([], STYLES[kind], color=colour, label=label)
    for result in results:
        losses, steps, validation, done = [], [], [], 0
        for stage in result["stages"]:
            # Tasks that train by themselves hold the losses outside of the stages.
            loss = stage.get("loss", result.get("loss", []))
            every = max(1, stage["steps"] // max(1, len(loss)))
            losses += loss
            steps += range(done, done + every * len(loss), every)
            records = stage.get("validation", [])
            validation += [{**r, "step": done + r["step"]} for r in records]
            done += stage["steps"]
        colour, kind = look(labels.index(task.label(result)))
        history = History(loss=losses, validation=validation)
        options: dict[str, Any] = {"style": STYLES[kind], "colour": colour}
        if losses:
            plots.training_curve(history, steps=np.array(steps), **options, ax=left)
        if validation:
            plots.training_curve(history, "metric", **options, ax=right)
    if left.get_yscale() == "linear":  # unbiased distances may fall below zero
        left.set_yscale("symlog", linthresh=1e-3)
    if not right.lines:
        right.set_axis_off()
    if labels:
        figure.legend(loc="outside lower left", ncols=3, fontsize=7)
    return figure

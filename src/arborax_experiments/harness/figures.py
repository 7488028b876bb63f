"""Figures that all experiments share."""

import pathlib
from typing import Any

import numpy as np

from arborax import plots
from arborax.training import History

from .tables import Results


TRUE, OURS = "#7a7a7a", "#1b6b58"
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


def training_curves(task: Any, results: Results) -> Any:
    """Losses and validation metrics of all stages; models differ in their line."""
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(9, 3.2))
    models = list(dict.fromkeys(result["model"] for result in results))
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
        style = STYLES[models.index(result["model"]) % len(STYLES)]
        label = f"{task.label(result)}, {result['seed']}"
        history = History(loss=losses, validation=validation)
        (mark,) = left.plot([], style, label=label)
        options: dict[str, Any] = {"style": style, "colour": mark.get_color()}
        if losses:
            plots.training_curve(history, steps=np.array(steps), **options, ax=left)
        if validation:
            plots.training_curve(history, "metric", **options, ax=right)
    if left.get_yscale() == "linear":  # unbiased distances may fall below zero
        left.set_yscale("symlog", linthresh=1e-3)
    left.legend(fontsize=6)
    return figure

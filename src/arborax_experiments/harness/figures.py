"""Figures that all experiments share."""

import pathlib
from typing import Any

import numpy as np

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
        style = STYLES[models.index(result["model"]) % len(STYLES)]
        options: dict[str, Any] = {
            "ls": style,
            "label": f"{task.label(result)}, {result['seed']}",
        }
        done = 0
        for stage in result["stages"]:
            # Tasks that train by themselves hold the losses outside of the stages.
            loss = np.abs(np.asarray(stage.get("loss", result.get("loss", []))))
            every = max(1, stage["steps"] // max(1, loss.size))
            width = max(1, loss.size // 60)
            count = loss.size // width
            smooth = loss[: count * width].reshape(count, width).mean(axis=1)
            middles = done + every * width * (np.arange(count) + 0.5)
            (line,) = left.plot(middles, smooth, **options)
            options["color"] = line.get_color()
            records = stage.get("validation", [])
            steps = [done + record["step"] for record in records]
            metric = [record["metric"] for record in records]
            right.plot(steps, metric, marker=".", **{**options, "label": None})
            options["label"] = None
            done += stage["steps"]
    left.set(yscale="log", xlabel="step", title="size of the loss")
    right.set(yscale="log", xlabel="step", title="validation metric")
    left.legend(fontsize=6)
    return figure

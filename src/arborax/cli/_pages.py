"""Reports of the commands for own data: one page each, pictures inside."""

import html
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import plots
from ..paths import SampledPath
from ._understood import Understood


SCORES = {
    "classify": "accuracy",
    "regress": "R squared",
    "forecast": "squared error removed, against no change",
}


def of_fit(
    file: pathlib.Path,
    estimator: Any,
    data: Any,
    understood: Understood,
    scores: Sequence[tuple[str, int, float]],
) -> pathlib.Path:
    """Data, scores and training of a fitted estimator."""
    task, channels = estimator.columns_["task"], labels_of(understood.columns)
    body = [f"<h1>{html.escape(str(understood.file))}: {task}</h1>"]
    body += ["<h2>Data</h2>", table(["", "understood as"], understood.lines())]
    if data.paths.ts.ndim == 1 and len(data.groups) > 1:
        for k, name in enumerate(channels):  # each in a unit of its own
            ax = plots.fan_chart(data.paths, channel=k)
            ax.set_ylabel(name)
            body.append(picture(f"data of {name}", ax))
    body.append("<h2>Model</h2>")
    settings = estimator.get_params(deep=False).items()
    body.append(table(["setting", "value"], [(k, f"{v}") for k, v in settings]))
    result = estimator.result_
    said = [f"Training: {result.message.rstrip('.')}."]
    if result.best_metric is not None:
        said.append(
            f"The model is that of step {result.best_step}, the best on held-out data: "
            f"{result.best_metric:.4g}."
        )
        if result.best_step == 0:
            said.append("So nothing was learned that holds there.")
    body += ["<h2>Training</h2>", f"<p>{html.escape(' '.join(said))}</p>"]
    ax = plots.training_curve(result, label="trained on")
    if len(getattr(estimator, "held_out_", ())):  # a generator has another metric
        plots.training_curve(result, "metric", label="held out", ax=ax)
        ax.set_ylabel("loss")
    body.append(picture("loss", ax))
    whole = " on the training data" if task == "generate" else ""
    body.append(f"<h2>Scores{whole}</h2>")
    if task == "generate":
        body += _generated(estimator, data.paths, channels)
    else:
        rows = [(part, f"{count}", f"{score:.4g}") for part, count, score in scores]
        body.append(table(["part of the data", "groups", SCORES[task]], rows))
        if len(rows) > 1:
            body.append(
                "<p>The held-out part chose the weights, so its score is a little "
                "better than that of new data.</p>"
            )
    return plots.html_page(f"{understood.file} {task}", body, file)


def _generated(generator: Any, paths: SampledPath, channels: Sequence[str]) -> list:
    """Generated paths beside data, and their distances."""
    made = generator.sample(min(paths.batch_shape[0], 200), random_state=0)
    made = SampledPath(np.asarray(generator.times_, made.dtype), made)
    body = []
    for k, name in enumerate(channels):
        ax = plots.sample_paths(paths, made, channel=k)
        ax.set_ylabel(name)
        body.append(picture(f"paths of {name}", ax))
    scores = generator.compare(paths)
    rows = [("squared MMD", f"{scores.pop('mmd'):.4g}", "")]
    for name, value in scores.items():
        pair = (np.atleast_1d(value[key]) for key in ("ks", "floor"))
        distance, floor = (", ".join(f"{x:.3f}" for x in xs) for xs in pair)
        rows.append((name, distance, floor))
    head = ["statistic", "distance of each channel", "floor"]
    return [*body, table(head, rows)]


def of_comparison(
    command: Any, samples: list[SampledPath], columns: Any, result: Any
) -> pathlib.Path:
    """The test and the paths of two files."""
    names = [str(command.first), str(command.second)]
    rows = [
        ("paths", " and ".join(str(paths.batch_shape[0]) for paths in samples)),
        ("kernel", command.kind),
        ("values at the start", "count" if command.level else "do not count"),
        ("squared MMD", f"{float(result.statistic):.4g}"),
        ("p-value", f"{float(result.p_value):.4g}"),
    ]
    title = " and ".join(names)
    body = [f"<h1>{html.escape(title)}</h1>", table(["", "two-sample test"], rows)]
    body.append(picture("test", plots.permutation_histogram(result)))
    for k, name in enumerate(labels_of(columns)):
        ax = plots.sample_paths(samples[0], samples[1], channel=k, names=names)
        ax.set_ylabel(name)
        body.append(picture(f"paths of {name}", ax))
    return plots.html_page(title, body, command.report)


def labels_of(columns: Any) -> list[str]:
    """Names of the channels, less their origin if they have one."""
    origin = columns.origin or (0.0,) * len(columns.channels)
    pairs = zip(columns.channels, origin)
    return [f"{name} - {start:.10g}" if start else name for name, start in pairs]


def picture(title: str, ax: Any) -> str:
    """The figure of some axes."""
    return plots.html_image(title, ax.figure)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts."""

    def row(cells: Sequence[str], tag: str) -> str:
        return "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)

    body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
    return f"<table><tr>{row(head, 'th')}</tr>{body}</table>"

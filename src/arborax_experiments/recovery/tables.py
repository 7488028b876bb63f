"""Tables: the two models side by side."""

import collections

import numpy as np

from ..harness import AbstractTask, Lines, Results, Table


# Mean squared errors on PPG-DaLiA: of both models after 10 epochs (arXiv:2606.05272),
# and of log-NCDE as its authors measured it, by another protocol.
PUBLISHED = {
    "both models, published; not reproduced: data not available": 0.134,
    "log-NCDE, published by its authors; not reproduced: data not available": 0.0956,
}
COMMAND = (
    "arborax run ppg-dalia --model all --preset paper --setting paper "
    "--set folder=FOLDER"
)
TITLE = f"PPG-DaLiA: {COMMAND}"
RUNS = ["data", "seed", "identity", "first loss", "last loss", "test loss", "accuracy"]
RUNS += ["CPU s"]
CURVES = ["preset", "seed", "steps", "largest relative difference of the losses"]


def tables(task: AbstractTask, results: Results) -> list[Table]:
    """One line per run, and one per pair of runs that should agree."""
    lines: Lines = []
    for result in results:
        scores = result["scores"]
        accuracy = scores.get("accuracy")
        cells = [
            result["data"],
            str(result["seed"]),
            f"{result['identity']:.1e}",
            f"{result['loss'][0]:.4f}",
            f"{result['loss'][-1]:.4f}",
            f"{scores['loss']:.4f}",
            "-" if accuracy is None else f"{accuracy:.3f}",
            f"{result['cpu_seconds']:.0f}",
        ]
        lines.append((task.label(result), cells))
    curves = curve_gaps(results)
    if not curves:
        curves = [("run both models (--model all) to compare", [""] * len(CURVES))]
    for label, value in PUBLISHED.items():
        cells = ["PPG-DaLiA", *["-"] * 4, f"{value:.4g}", "-", "-"]
        lines.append((label, cells))
    return [Table(TITLE, RUNS, lines), Table("loss curves", CURVES, curves)]


def curve_gaps(results: Results) -> Lines:
    """For each pair of runs, the largest relative difference of the loss curves."""
    pairs: dict[tuple, dict] = collections.defaultdict(dict)
    for result in results:
        key = (result["setting"], result["preset"], result["data"], result["seed"])
        pairs[key][result["model"]] = result
    lines: Lines = []
    for (_, preset, data, seed), pair in pairs.items():
        if len(pair) == 2:
            a, b = (np.asarray(pair[name]["loss"]) for name in ("bnrde", "log-ncde"))
            steps = min(a.size, b.size)
            gap = np.abs(a[:steps] - b[:steps]) / np.abs(b[:steps])
            cells = [preset, str(seed), str(steps), f"{gap.max():.1e}"]
            lines.append((data, cells))
    return lines

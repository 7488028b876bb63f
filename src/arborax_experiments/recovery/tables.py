"""Tables: the two models side by side."""

import collections
from typing import Any

import numpy as np

from .._layout import Lines, text_table


PUBLISHED = "published: both 0.134 mean square error on PPG-DaLiA after 10 epochs"
HEADER = (
    "data",
    "seed",
    "identity",
    "first loss",
    "last loss",
    "test loss",
    "accuracy",
    "CPU s",
)


def rows(results: list[dict[str, Any]]) -> Lines:
    """One row for each run."""
    lines: Lines = []
    for result in results:
        scores = result["scores"]
        accuracy = scores.get("accuracy")
        lines.append(
            (
                {"bnrde": "B-NRDE (shuffle)", "log-ncde": "log-NCDE"}[result["model"]],
                [
                    result["data"],
                    str(result["seed"]),
                    f"{result['identity']:.1e}",
                    f"{result['loss'][0]:.4f}",
                    f"{result['loss'][-1]:.4f}",
                    f"{scores['loss']:.4f}",
                    "-" if accuracy is None else f"{accuracy:.3f}",
                    f"{result['cpu_seconds']:.0f}",
                ],
            )
        )
    return lines


def curve_gaps(results: list[dict[str, Any]]) -> Lines:
    """For each pair of runs, the largest relative difference of the loss curves."""
    pairs: dict[tuple, dict[str, Any]] = collections.defaultdict(dict)
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


CURVES = ("preset", "seed", "steps", "largest relative difference of the losses")


def table(results: list[dict[str, Any]]) -> str:
    """All results as text."""
    if not results:
        return "no results yet; make one with `arborax run`."
    parts = [text_table(["", *HEADER], rows(results))]
    if gaps := curve_gaps(results):
        parts.append(text_table(["", *CURVES], gaps))
    else:
        parts.append("run both models (--model all) to compare their loss curves")
    return "\n\n".join([*parts, PUBLISHED])

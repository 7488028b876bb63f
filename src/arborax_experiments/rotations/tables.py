"""Tables: forecasts beside references and published figures."""

import collections
from typing import Any

import numpy as np

from .._layout import Lines, text_table
from ._models import EXTRAPOLATORS


# As printed in arXiv:2606.05272: Frobenius on simulated data, then RGE in degrees on
# three recordings of the Oxford Multimotion data. All but the first row are twice the
# mean over 21 points of which 12 are observed.
PUBLISHED = {
    "mnode": (2.461, 132.40, 118.25, 121.08),
    "ncde": (0.294, 22.21, 21.83, 22.45),
    "gru": (0.271, 20.25, 20.39, 21.13),
    "xlstm": (0.233, 16.67, 16.77, 17.36),
    "nrde": (0.097, 7.45, 7.34, 7.32),
    "stacked-xlstm": (0.110, 7.11, 7.50, 7.03),
    "sg-ncde": (0.050, 2.93, 3.31, 2.80),
    "bnrde-euclidean": (0.049, 3.23, 3.70, 3.33),
}
PUBLISHED_COLUMNS = ["Frobenius", "static", "translational", "unconstrained"]
LABELS = {
    "bnrde": "B-NRDE on SO(3), window 10",
    "bnrde-4": "B-NRDE on SO(3), window 4",
    "mixture": "mixture: gains, no equation",
    "bnrde-euclidean": "B-NRDE, Euclidean (MLP)",
    "sg-ncde": "SG-NCDE",
    "stacked-xlstm": "stacked xLSTM (Hermite)",
    "nrde": "NRDE (Hermite)",
    "xlstm": "xLSTM (Hermite)",
    "gru": "GRU (Hermite)",
    "ncde": "NCDE (Hermite)",
    "mnode": "M-NODE",
}
CHANGES = {
    ("bodies", False): "no bodies",
    ("inertia", True): "inertia learned",
}
GROUPS = ("broad", "tum", "BasicMotions")
# The fronts that models have by themselves, for the table of models by front.
FRONTS = {
    "bnrde": "bank",
    "mixture": "bank",
    "bnrde-euclidean": "mlp",
    "sg-ncde": "sg3",
    "stacked-xlstm": "hermite",
    "nrde": "hermite",
    "xlstm": "hermite",
    "gru": "hermite",
    "ncde": "hermite",
}
CROSS_COLUMNS = (
    "free, noise 0.02",
    "free, noise 0.05",
    "BROAD, 40 Hz, noise 0.02",
    "TUM, 40 Hz, noise 0.02",
)


def group_of(name: str) -> str:
    """The column of a test set: recordings of one benchmark at one rate and noise are
    averaged."""
    source, *rest = name.split(", ")
    for group in GROUPS:
        if source.startswith(group):
            label = group if group[0].isupper() else group.upper()
            return ", ".join([label, *rest])
    return name


def columns(results: list[dict[str, Any]]) -> list[str]:
    """Columns of all test sets of some results, in their order."""
    return list(dict.fromkeys(group_of(name) for r in results for name in r["scores"]))


def means(scores: dict[str, dict[str, float]], figure: str) -> dict[str, float]:
    """One figure by column: the mean over its test sets."""
    found = collections.defaultdict(list)
    for name, values in scores.items():
        found[group_of(name)].append(values[figure])
    return {name: float(np.mean(values)) for name, values in found.items()}


def label_of(result: dict[str, Any]) -> str:
    """The model, and what was changed."""
    label = LABELS[result["model"]]
    changes = dict(result.get("changes", {}))
    if front := changes.pop("extrapolator", None):
        label = f"{label.split(' (')[0]} ({front})"
    for (name, value), words in CHANGES.items():
        if changes.get(name) == value:
            changes.pop(name)
            label += f", {words}"
    return label + "".join(f", {k}={v}" for k, v in sorted(changes.items()))


def rows(results: list[dict[str, Any]], figure: str, names: list[str]) -> Lines:
    """References, then models, mean and spread over seeds."""
    lines: Lines = []
    references: dict[str, dict[str, float]] = collections.defaultdict(dict)
    for result in results:
        for reference, scores in result["references"].items():
            references[reference].update(means(scores, figure))
    for reference, found in references.items():
        lines.append((f"reference: {reference}", _cells([found], names)))
    groups = collections.defaultdict(list)
    for result in results:
        groups[label_of(result)].append(means(result["scores"], figure))
    order = list(LABELS.values())
    for label in sorted(groups, key=lambda x: (_rank(x, order), x)):
        count = len(groups[label])
        seeds = f"{label}, {count} seed{'s' if count > 1 else ''}"
        lines.append((seeds, _cells(groups[label], names)))
    return lines


def cross_rows(results: list[dict[str, Any]], column: str) -> tuple[list[str], Lines]:
    """Fronts, and models with the forecast error of each of them at one column: the
    mean over seeds. Models that were run with one front only are left out."""
    found: dict[str, dict[str, list[float]]] = collections.defaultdict(
        lambda: collections.defaultdict(list)
    )
    for result in results:
        changes = result.get("changes", {})
        model = result["model"]
        front = changes.get("extrapolator", FRONTS.get(model))
        values = means(result["scores"], "forecast")
        if front and column in values and set(changes) <= {"extrapolator"}:
            found[model][front].append(values[column])
    found = {k: v for k, v in found.items() if len(v) > 1}
    known = [*EXTRAPOLATORS, "bank"]
    fronts = [f for f in known if any(f in row for row in found.values())]
    lines: Lines = []
    for model in [name for name in LABELS if name in found]:
        label = LABELS[model].split(" (")[0]
        cells = [
            f"{np.mean(found[model][f]):.2f}" if f in found[model] else "-"
            for f in fronts
        ]
        lines.append((label, cells))
    return fronts, lines


def noisy_rows(results: list[dict[str, Any]]) -> tuple[list[str], Lines]:
    """Sources, and the forecast error of each row there: the mean over the columns with
    noise, then over seeds."""
    parts = {
        source: [name for name in names if "noise 0" not in name.split(", ")]
        for source, names in column_parts(columns(results)).items()
    }
    sources = [source for source, names in parts.items() if names]

    def summed(scores: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        found = means(scores, "forecast")
        return {
            source: {
                "forecast": float(np.mean([found[name] for name in parts[source]]))
            }
            for source in sources
            if all(name in found for name in parts[source])
        }

    short = [
        {
            **result,
            "scores": summed(result["scores"]),
            "references": {k: summed(v) for k, v in result["references"].items()},
        }
        for result in results
    ]
    return sources, rows(short, "forecast", sources)


def _rank(label: str, order: list[str]) -> int:
    matches = [
        k for k, name in enumerate(order) if label.startswith(name.split(" (")[0])
    ]
    exact = [k for k, name in enumerate(order) if label.startswith(name)]
    return (exact or matches or [len(order)])[0]


def _cells(found: list[dict[str, float]], names: list[str]) -> list[str]:
    cells = []
    for name in names:
        values = [f[name] for f in found if name in f]
        if not values:
            cells.append("-")
        elif len(values) == 1:
            cells.append(f"{values[0]:.2f}")
        else:
            cells.append(f"{np.mean(values):.2f}±{np.std(values, ddof=1):.2f}")
    return cells


def published_rows(results: list[dict[str, Any]]) -> Lines:
    """The published table, with our doubled Frobenius figure on clean free rotation
    beside it."""
    ours = collections.defaultdict(list)
    for result in results:
        clean = result["scores"].get("free, noise 0")
        if clean and not result.get("changes"):
            ours[result["model"]].append(clean["doubled_frobenius"])
    lines: Lines = []
    for model, printed in PUBLISHED.items():
        cells = [f"{printed[0]:.3f}", *(f"{v:.2f}" for v in printed[1:])]
        mine = f"{np.mean(ours[model]):.3f}" if model in ours else "-"
        lines.append((f"{LABELS[model]}, published", [*cells, mine]))
    for model in ours:
        if model not in PUBLISHED:
            mine = f"{np.mean(ours[model]):.3f}"
            lines.append((LABELS[model], ["-"] * 4 + [mine]))
    return lines


RUNS = ("seed", "parameters", "best step", "validation", "step s", "compile s", "CPU s")


def run_rows(results: list[dict[str, Any]]) -> Lines:
    """What the runs cost."""
    lines: Lines = []
    for result in results:
        (training,) = result["stages"]
        seconds = training["seconds"]
        lines.append(
            (
                label_of(result),
                [
                    str(result["seed"]),
                    str(result["parameters"]),
                    f"{training['best_step']}/{training['steps']}",
                    f"{training['best_metric']:.3f}",
                    f"{seconds['step']:.3f}",
                    f"{seconds['compile']:.0f}",
                    f"{result['cpu_seconds']:.0f}",
                ],
            )
        )
    return lines


def by_setting(results: list[dict[str, Any]]) -> dict[tuple[str, str], list]:
    """Results grouped by setting and preset, `quick` first, which has all rows."""
    groups: dict[tuple[str, str], list] = collections.defaultdict(list)
    for result in results:
        groups[result["setting"], result["preset"]].append(result)
    order = sorted(groups, key=lambda pair: (pair[0], pair[1] != "quick", pair[1]))
    return {pair: groups[pair] for pair in order}


def column_parts(names: list[str]) -> dict[str, list[str]]:
    """Columns of one source each, so that tables stay narrow."""
    parts: dict[str, list[str]] = collections.defaultdict(list)
    for name in names:
        parts[name.split(",")[0]].append(name)
    return dict(parts)


FIGURES = {
    "forecast": "RGE in degrees, forecast points",
    "all": "RGE in degrees, all points, observed ones included",
}


NOISY = "under noise: RGE in degrees, forecast points, mean over all columns with noise"


def table(results: list[dict[str, Any]]) -> str:
    """All results as text."""
    if not results:
        return "no results yet; make one with `arborax run`."
    parts = []
    for (setting, preset), everything in by_setting(results).items():
        group = [r for r in everything if "extrapolator" not in r.get("changes", {})]
        group = group or everything
        parts.append(f"setting {setting}, preset {preset}")
        sources, lines = noisy_rows(group)
        if sources:
            parts.append(f"{NOISY}\n{text_table(['', *sources], lines)}")
        for figure, title in FIGURES.items():
            for source, names in column_parts(columns(group)).items():
                short = [name.partition(", ")[2] for name in names]
                text = text_table(["", *short], rows(group, figure, names))
                parts.append(f"{source}: {title}\n{text}")
        parts.append(
            "as published: twice the mean over all points (M-NODE: once); last column "
            "ours, twice the mean, clean free rotation\n"
            + text_table(["", *PUBLISHED_COLUMNS, "ours"], published_rows(group))
        )
        for column in CROSS_COLUMNS:
            fronts, lines = cross_rows(everything, column)
            if lines:
                text = text_table(["", *fronts], lines)
                parts.append(
                    f"model by extrapolator: forecast points, {column}\n{text}"
                )
        parts.append(text_table(["", *RUNS], run_rows(everything)))
    return "\n\n".join(parts)

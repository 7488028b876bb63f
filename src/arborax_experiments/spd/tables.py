"""Tables: measured scores beside published ones, floors and references."""

import collections
from typing import Any

import numpy as np

from .._layout import Lines, percent_cells, text_table


# Mean and standard deviation of W1 x 100 at 128, 256, 384 and 512 of 1,025 points, as
# printed in arXiv:2606.05272: mean over batches of 16. No GRU row was printed.
PUBLISHED = {
    "ncde++": [(64.95, 0.98), (58.27, 1.36), (50.56, 1.73), (42.15, 2.22)],
    "ncde": [(65.56, 1.74), (58.72, 2.38), (50.32, 3.02), (42.38, 3.11)],
    "nrde": [(11.80, 0.15), (15.50, 0.16), (17.36, 0.13), (17.70, 0.28)],
    "xlstm": [(8.36, 0.63), (10.49, 0.41), (13.16, 0.39), (14.09, 0.53)],
    "log-ncde": [(12.10, 0.30), (14.76, 0.22), (16.17, 0.32), (16.81, 0.40)],
    "stacked-xlstm": [(5.50, 0.10), (6.85, 0.35), (11.47, 0.63), (14.30, 0.46)],
    "bnrde": [(5.73, 0.20), (5.81, 0.19), (6.28, 0.86), (8.35, 0.94)],
    "bnrde-bk": [(5.81, 0.20), (5.87, 0.21), (6.30, 0.85), (8.32, 0.94)],
}
HORIZONS = ["t=128", "t=256", "t=384", "t=512"]
LABELS = {
    "bnrde": "B-NRDE (GK)",
    "bnrde-ito": "B-NRDE (GK), Itô algebra",
    "bnrde-bk": "B-NRDE (BK)",
    "log-ncde": "log-NCDE",
    "nrde": "NRDE",
    "ncde": "NCDE",
    "ncde++": "NCDE++",
    "gru": "GRU",
    "xlstm": "xLSTM",
    "stacked-xlstm": "stacked xLSTM",
}
CONE = ("points off the cone, %", "paths off, %", "least eigenvalue")
CONE += ("variation, KS x 100 (floor)",)
MORE = ("seed", "parameters", "batch", "iterations", "best step", "step s", "CPU s")


def rows(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Header and rows of the tables of one group of results.

    **Returns:**

    A dictionary: `columns`; `pooled`, a list of (label, cells); `batch` likewise for
    the published metric with the published figures; `cone`; `more`, one line a run.
    """
    first = results[0]["scores"]
    groups = collections.defaultdict(list)
    for result in results:
        groups[result["model"]].append(result)
    pooled: Lines = [
        ("floor (true against true)", percent_cells([first["floor"]])),
        ("floor, 95 % quantile", percent_cells([first["floor_upper"]])),
        *_here(results),
        ("reference: constant identity", percent_cells([first["identity"]])),
        ("reference: mean path", percent_cells([first["mean_path"]])),
    ]
    if "past" in first:
        pooled.append(("reference: training windows", percent_cells([first["past"]])))
    batch: Lines = [
        (f"floor (batch {first['batch_size']})", percent_cells([first["batch_floor"]]))
    ]
    cone: Lines = []
    more: Lines = []
    simulated = results[0]["config"]["data"] == "simulated"
    for model in (name for name in LABELS if name in groups):
        group, label = groups[model], LABELS[model]
        seeds = f"{label}, {len(group)} seed{'s' if len(group) > 1 else ''}"
        pooled.append((seeds, percent_cells([r["scores"]["w1"] for r in group])))
        batch.append((seeds, percent_cells([r["scores"]["batch_w1"] for r in group])))
        if simulated and model in PUBLISHED:
            batch.append((f"{label}, published", _published(model, first["columns"])))
        cone.append((seeds, _cone(group)))
        more += [(label, _more(result)) for result in group]
    pooled += _ratios(groups, first["floor"])
    return {
        "columns": first["columns"],
        "pooled": pooled,
        "batch": batch,
        "cone": cone,
        "more": more,
        "test_paths": first["test_paths"],
    }


def _here(results: list[dict[str, Any]]) -> Lines:
    """The floor against the test paths of these runs, which are the same for all; older
    results do not have it."""
    found = [r["scores"]["floor_here"] for r in results if "floor_here" in r["scores"]]
    return [("floor on these test paths", percent_cells(found[:1]))] if found else []


def _ratios(groups: dict[str, list], floor: list[float]) -> Lines:
    """Mean scores of B-NRDE over the floor, and over the lowest mean at each time of
    the models that are not B-NRDE."""
    if "bnrde" not in groups:
        return []
    means = {
        model: np.mean([r["scores"]["w1"] for r in group], axis=0)
        for model, group in groups.items()
    }
    ours, label = means["bnrde"], LABELS["bnrde"]
    lines = [(f"{label} / floor", [f"{v:.2f}" for v in ours / np.asarray(floor)])]
    others = [v for model, v in means.items() if not model.startswith("bnrde")]
    if others:
        ratio = ours / np.min(others, axis=0)
        lines.append((f"{label} / best baseline", [f"{v:.2f}" for v in ratio]))
    return lines


def _published(model: str, columns: list[str]) -> list[str]:
    printed = dict(zip(HORIZONS, PUBLISHED[model]))
    cells = [printed.get(column) for column in columns]
    return ["" if c is None else f"{c[0]:.2f}±{c[1]:.2f}" for c in cells]


def _cone(group: list[dict[str, Any]]) -> list[str]:
    cones = [result["scores"]["cone"] for result in group]
    points, paths = (
        100 * max(c[name] for c in cones) for name in ("points_off", "paths_off")
    )
    moved = 100 * np.mean([result["scores"]["variation"] for result in group])
    floor = 100 * group[0]["scores"]["variation_floor"]
    return [
        "0" if points == 0 else f"{points:.2g}",
        "0" if paths == 0 else f"{paths:.2g}",
        f"{min(c['least_eigenvalue'] for c in cones):.2g}",
        f"{moved:.1f} ({floor:.1f})",
    ]


def _more(result: dict[str, Any]) -> list[str]:
    config, last = result["config"], result["stages"][-1]
    return [
        str(result["seed"]),
        str(result["parameters"]),
        str(config["batch"]),
        "+".join(str(stage["steps"]) for stage in result["stages"]),
        f"{last['best_step']}/{last['steps']}",
        f"{result['stages'][0]['seconds']['step']:.2f}",
        f"{result['cpu_seconds']:.0f}",
    ]


def by_setting(results: list[dict[str, Any]]) -> dict[str, list]:
    """Results that may be compared, under a title: setting, preset, changes."""
    groups: dict[str, list] = collections.defaultdict(list)
    for result in results:
        title = f"setting {result['setting']}, preset {result['preset']}"
        for name, value in sorted(result.get("changes", {}).items()):
            title += f", {name}={value}"
        groups[title].append(result)
    return dict(groups)


def table(results: list[dict[str, Any]]) -> str:
    """All results as text."""
    if not results:
        return "no results yet; make one with `arborax run`."
    parts = []
    for title, group in by_setting(results).items():
        content = rows(group)
        names = content["columns"]
        parts += [
            title,
            f"pooled W1 x 100 of sorted eigenvalues, {content['test_paths']} test paths"
            "\n" + text_table(["", *names], content["pooled"]),
            "per-batch W1 x 100, as published\n"
            + text_table(["", *names], content["batch"]),
            "worst over seeds\n" + text_table(["", *CONE], content["cone"]),
            text_table(["", *MORE], content["more"]),
        ]
    return "\n\n".join(parts)

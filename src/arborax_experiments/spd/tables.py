"""Tables: measured scores beside published ones, floors and references."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import baselines
from ..harness import (
    AbstractTask,
    Lines,
    percent_cells,
    published_cells,
    Results,
    run_table,
    Table,
    with_seeds,
)


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
REFERENCES = {"har": "reference: HAR", "ewma": "reference: EWMA"}
LABELS = {"bnrde": "", "bnrde-ito": "B-NRDE, Itô algebra", **baselines.LABELS}
LABELS |= REFERENCES
CONE = ["points off the cone, %", "paths off, %", "least eigenvalue"]
CONE += ["variation, KS x 100 (floor)"]


def label_of(result: dict[str, Any]) -> str:
    """The model, and its head if that is not the published one."""
    head = ", log head" if _head(result) == "log" else ""
    return LABELS[result["model"]] + head


def _head(result: dict[str, Any]) -> str:
    """The head of a baseline: B-NRDE and references read none."""
    own = result["model"].startswith("bnrde") or result["model"] in REFERENCES
    return "vech" if own else result["config"].get("head", "vech")


def by_row(results: Results) -> Iterator[tuple[str, str, Results]]:
    """Name, label with the number of seeds, and results of each model and head."""
    for name in LABELS:
        for head in ("vech", "log"):
            group = [r for r in results if (r["model"], _head(r)) == (name, head)]
            if not group:
                continue
            seeds = {result["seed"] for result in group}
            yield name, with_seeds(label_of(group[0]), len(seeds)), group


def tables(task: AbstractTask, results: Results) -> list[Table]:
    """Pooled W1, the published metric, the cone, and the runs."""
    first = results[0]["scores"]
    names = first["columns"]
    pooled = _references(results)
    batch: Lines = [
        (f"floor (batch {first['batch_size']})", percent_cells([first["batch_floor"]]))
    ]
    cone: Lines = []
    means, ordered = {}, []
    simulated = results[0]["config"]["data"] == "simulated"
    for model, label, group in by_row(results):
        found = [r["scores"]["w1"] for r in group]
        means[model, _head(group[0])] = np.mean(found, axis=0)
        pooled.append((label, percent_cells(found)))
        batch.append((label, percent_cells(r["scores"]["batch_w1"] for r in group)))
        if simulated and model in PUBLISHED and _head(group[0]) == "vech":
            printed = dict(zip(HORIZONS, published_cells(PUBLISHED[model])))
            cells = [printed.get(name, "") for name in names]
            batch.append((f"{baselines.PRINTED[model]}, published", cells))
        cone.append((label, _cone(group)))
        ordered += group
    pooled += _ratios(means, first["floor"])
    count = first["test_paths"]
    return [
        Table(
            f"pooled W1 x 100 of sorted eigenvalues, {count} test paths", names, pooled
        ),
        Table("per-batch W1 x 100, as published", names, batch),
        Table("the cone, worst over seeds, and realised variation", CONE, cone),
        run_table(task, ordered),
    ]


def _references(results: Results) -> Lines:
    """Floors and references, which are the same for all results of a group."""
    first = results[0]["scores"]
    # Some stored results do not have the floor on these test paths.
    here = (r["scores"]["floor_here"] for r in results if "floor_here" in r["scores"])
    found = {
        "floor (true against true)": first["floor"],
        "floor, 95 % quantile": first["floor_upper"],
        "floor on these test paths": next(here, None),
        "reference: constant identity": first["identity"],
        "reference: mean path": first["mean_path"],
        "reference: training windows": first.get("past"),
    }
    return [(k, percent_cells([v])) for k, v in found.items() if v is not None]


def _ratios(means: dict[tuple[str, str], Any], floor: list[float]) -> Lines:
    """Mean scores of B-NRDE over the floor, and over the lowest mean at each time of
    the models that are not B-NRDE."""
    if ("bnrde", "vech") not in means:
        return []
    ours, label = means["bnrde", "vech"], LABELS["bnrde"]
    lines = [(f"{label} / floor", [f"{v:.2f}" for v in ours / np.asarray(floor)])]
    others = [
        v
        for (model, _), v in means.items()
        if not model.startswith("bnrde") and model not in REFERENCES
    ]
    if others:
        ratio = ours / np.min(others, axis=0)
        lines.append((f"{label} / best baseline", [f"{v:.2f}" for v in ratio]))
    return lines


def _cone(group: Results) -> list[str]:
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

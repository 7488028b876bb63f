"""Tables: measured scores beside published ones, floors and references."""

import collections
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import baselines
from ..harness import (
    AbstractTask,
    by_model,
    Lines,
    mean_cells,
    percent_cells,
    published_cells,
    Results,
    run_table,
    Table,
)
from .scores import LAGS


# Mean and standard deviation of KS x 100 at the four horizons, as printed in
# arXiv:2606.05272, per-batch metric.
PUBLISHED = {
    "xlstm": [(11.04, 1.38), (10.31, 1.30), (10.94, 0.89), (11.71, 0.71)],
    "ncde": [(9.06, 1.94), (8.93, 1.07), (9.75, 1.02), (9.65, 0.81)],
    "ncde++": [(8.11, 0.93), (8.82, 0.86), (9.67, 0.34), (10.73, 0.52)],
    "stacked-xlstm": [(7.69, 0.16), (9.19, 1.09), (9.50, 1.21), (10.95, 1.11)],
    "log-ncde": [(7.75, 1.39), (7.38, 0.46), (8.72, 0.88), (8.89, 0.24)],
    "nrde": [(8.74, 0.96), (8.41, 0.94), (8.12, 0.79), (7.47, 0.83)],
    "gru": [(7.73, 1.78), (7.59, 0.58), (7.87, 0.67), (8.02, 1.15)],
    "bnrde": [(6.89, 1.81), (6.91, 0.98), (8.56, 0.38), (9.58, 0.36)],
    "bnrde-bk": [(7.93, 1.49), (7.70, 0.87), (7.77, 1.02), (8.11, 0.52)],
}
REFERENCES = {"garch": "GARCH(1,1)", "bootstrap": "block bootstrap, 20 days"}
LABELS = {**baselines.LABELS, **REFERENCES}
HORIZONS = ["t=128", "t=256", "t=384", "t=512"]


def tables(task: AbstractTask, results: Results) -> list[Table]:
    """KS with all fresh paths, pooled KS of the test set, KS on fresh test sets, the
    published metric, and the runs."""
    first = results[0]["scores"]
    if results[0]["config"].get("data", "simulated") == "sp500":
        own = {"p-value": _p_values}
        return [*_large(results), run_table(task, results, own)]
    pooled = [
        ("floor (true against true)", percent_cells([first["floor"]])),
        ("floor, 95 % quantile", percent_cells([first["floor_upper"]])),
        ("floor on these test paths", percent_cells([first["floor_here"]])),
        ("Gaussian reference", percent_cells([first["gaussian"]])),
    ]
    fresh = [pooled[0]]
    batch = [
        (f"floor (batch {first['batch_size']})", percent_cells([first["batch_floor"]]))
    ]
    ordered = []
    for model, label, group in by_model(results, LABELS):
        pooled.append((label, percent_cells(r["scores"]["ks"] for r in group)))
        fresh.append((label, percent_cells(r["scores"]["fresh_ks"] for r in group)))
        batch.append((label, percent_cells(r["scores"]["batch_ks"] for r in group)))
        if first["columns"][: len(HORIZONS)] == HORIZONS:
            printed = published_cells(PUBLISHED[model])
            batch.append((f"{baselines.PRINTED[model]}, published", printed))
        ordered += group
    names = first["columns"]
    marginals = names[: len(first["batch_ks"])]
    own = {
        "p-value": _p_values,
        "smile error ± MC (floor), vol points": _smile_cell,
    }
    return [
        *_large(results),
        Table(f"pooled KS x 100 on {first['test_paths']} test paths", names, pooled),
        Table(
            f"the same, mean over {first['fresh_sets']} fresh test sets", names, fresh
        ),
        Table("per-batch KS x 100, as published", marginals, batch),
        run_table(task, ordered, own),
    ]


def _large(results: Results) -> Iterator[Table]:
    """Scores of all fresh paths: KS x 100, structure functions, the left wing, the
    largest error of the smile, and p-values by seed. Rows that were scored with another
    number of paths, and so have another floor, are a table of their own."""
    sizes: dict[int, Results] = collections.defaultdict(list)
    for result in results:
        if "large" in result["scores"]:
            sizes[result["scores"]["large"]["paths"]].append(result)
    for _, group in sorted(sizes.items(), reverse=True):
        yield _large_table(group)


def _large_table(results: Results) -> Table:
    first = results[0]["scores"]["large"]
    lags = [f"lag {lag}" for lag in LAGS][: len(first["structure"])]
    if "past" in first:  # real data: no second sample of the law
        cells = percent_cells([first["past"]]) + mean_cells([first["structure_floor"]])
        lines: Lines = [("reference: training windows", [*cells, "", "", ""])]
    else:
        floor, upper = (percent_cells([first[k]]) for k in ("floor", "floor_upper"))
        ratios = mean_cells([first["structure_floor"]])
        lines = [
            ("floor (true against true)", [*floor, *ratios, "", "", ""]),
            ("floor, 95 % quantile", [*upper, *[""] * (len(lags) + 3)]),
        ]
    for _, label, group in by_model(results, LABELS):
        found = [r["scores"]["large"] for r in group]
        cells = percent_cells(one["ks"] for one in found)
        cells += mean_cells(one["structure"] for one in found)
        smiles = [r["scores"]["smile"]["horizons"][0] for r in group]
        smile = _error_cell(smiles, [s["error"] for s in smiles])
        p_values = ", ".join(f"{one['p_value']:.2g}" for one in found)
        lines.append((label, [*cells, _wing_cell(found), smile, p_values]))
    title = (
        f"KS x 100 of {first['paths']} paths; squared changes of log local variance, "
    )
    title += "model / true; errors of left wing and smile, vol points; p of all paths"
    return Table(title, [*first["columns"], *lags, "left wing", "smile", "p"], lines)


def _wing_cell(found: list[dict[str, Any]]) -> str:
    wings = [one["left_wing"][0] for one in found]
    known = all(wing["monte_carlo"] is not None for wing in wings)
    gaps = [wing["generated"] - wing["true"] if known else None for wing in wings]
    return _error_cell(wings, gaps, "+")


def _error_cell(found: list[dict[str, Any]], gaps: list[Any], sign: str = "") -> str:
    """Errors at the first horizon, mean and deviation over seeds, and that of Monte
    Carlo."""
    if any(gap is None for gap in gaps):
        return "-"
    noise = np.mean([one["monte_carlo"] for one in found])
    spread = f"±{np.std(gaps, ddof=1):.1f}" if len(gaps) > 1 else ""
    return f"{np.mean(gaps):{sign}.1f}{spread} (MC {noise:.1f})"


def _p_values(result: dict[str, Any]) -> str:
    """Of 1,000 paths, and of all fresh ones."""
    scores = result["scores"]
    large = f"; {scores['large']['p_value']:.3f}" if "large" in scores else ""
    return f"{scores['p_value']:.3f}{large}"


def _smile_cell(result: dict[str, Any]) -> str:
    return "; ".join(
        f"t={s['time']:g}: {_number(s['error'])} ± {_number(s['monte_carlo'])} "
        f"({_number(s['floor'])}){_missing(s)}"
        for s in result["scores"]["smile"]["horizons"]
    )


def _missing(smile: dict[str, Any]) -> str:
    """Strikes at which no generated path pays have no implied volatility."""
    count = smile["missing"]
    return f", {count} strike{'s' if count > 1 else ''} missing" if count else ""


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"

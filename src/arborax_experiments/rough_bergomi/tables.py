"""Tables: measured scores beside published ones, floors and references."""

import collections
from typing import Any

from .._layout import percent_cells, text_table


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
HORIZONS = ["t=128", "t=256", "t=384", "t=512"]
LABELS = {
    "bnrde": "B-NRDE (GK)",
    "bnrde-bk": "B-NRDE (BK)",
    "log-ncde": "log-NCDE",
    "nrde": "NRDE",
    "ncde": "NCDE",
    "ncde++": "NCDE++",
    "gru": "GRU",
    "xlstm": "xLSTM",
    "stacked-xlstm": "stacked xLSTM",
}


def rows(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Header and rows of the tables of one setting and preset.

    **Returns:**

    A dictionary: `columns`; `pooled`, a list of (label, cells); `fresh` likewise for
    the mean over fresh test sets; `batch` likewise for the published per-batch metric
    with the published figures; `more` (seeds, p-values, smiles, times).
    """
    first = results[0]["scores"]
    groups = collections.defaultdict(list)
    for result in results:
        groups[result["model"]].append(result)
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
    more = []
    for model in (name for name in LABELS if name in groups):
        group, label = groups[model], LABELS[model]
        seeds = f"{label}, {len(group)} seed{'s' if len(group) > 1 else ''}"
        pooled.append((seeds, percent_cells([r["scores"]["ks"] for r in group])))
        fresh.append((seeds, percent_cells([r["scores"]["fresh_ks"] for r in group])))
        batch.append((seeds, percent_cells([r["scores"]["batch_ks"] for r in group])))
        if first["columns"][: len(HORIZONS)] == HORIZONS:
            printed = [f"{mean:.2f}±{sd:.2f}" for mean, sd in PUBLISHED[model]]
            batch.append((f"{label}, published", printed))
        more += [(label, _more(result)) for result in group]
    return {
        "columns": first["columns"],
        "horizons": len(first["batch_ks"]),
        "pooled": pooled,
        "fresh": fresh,
        "fresh_sets": first["fresh_sets"],
        "batch": batch,
        "more": more,
        "test_paths": first["test_paths"],
    }


MORE = ("seed", "parameters", "p-value", "smile error ± MC (floor), vol points")
MORE += ("batch", "kept step", "CPU s", "step s", "compile s", "to kept s")


def _more(result: dict[str, Any]) -> list[str]:
    smiles = "; ".join(
        f"t={s['time']:g}: {_number(s['error'])} ± {_number(s['monte_carlo'])} "
        f"({_number(s['floor'])}){_missing(s)}"
        for s in result["scores"]["smile"]["horizons"]
    )
    stages = result["stages"]
    seconds = stages[-1]["seconds"]
    return [
        str(result["seed"]),
        str(result["parameters"]),
        f"{result['scores']['p_value']:.3f}",
        smiles,
        str(result["config"]["batch"]),
        " + ".join(f"{stage['best_step']}/{stage['steps']}" for stage in stages),
        f"{result['cpu_seconds']:.0f}",
        f"{seconds['step']:.2f}",
        f"{seconds['compile']:.0f}",
        f"{sum(s['seconds']['to_best'] for s in stages):.0f}",
    ]


def _missing(smile: dict[str, Any]) -> str:
    """Strikes at which no generated path pays have no implied volatility."""
    count = smile["missing"]
    return f", {count} strike{'s' if count > 1 else ''} missing" if count else ""


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def by_setting(results: list[dict[str, Any]]) -> dict[str, list]:
    """Results grouped by setting, preset and changes of the configuration."""
    groups: dict[str, list] = collections.defaultdict(list)
    for result in results:
        name = f"setting {result['setting']}, preset {result['preset']}"
        changes = sorted(result.get("changes", {}).items())
        name += "".join(f", {key} = {value}" for key, value in changes)
        groups[name].append(result)
    return dict(groups)


def table(results: list[dict[str, Any]]) -> str:
    """All results as text."""
    if not results:
        return "no results yet; make one with `arborax run`."
    parts = []
    for name, group in by_setting(results).items():
        content = rows(group)
        parts.append(name)
        parts.append(
            f"pooled KS x 100 on {content['test_paths']} test paths\n"
            + text_table(["", *content["columns"]], content["pooled"])
        )
        parts.append(
            f"the same, mean over {content['fresh_sets']} fresh test sets\n"
            + text_table(["", *content["columns"]], content["fresh"])
        )
        marginals = content["columns"][: content["horizons"]]
        parts.append(
            "per-batch KS x 100, as published\n"
            + text_table(["", *marginals], content["batch"])
        )
        parts.append(text_table(["", *MORE], content["more"]))
    return "\n\n".join(parts)

"""The figure of forecast errors."""

from typing import Any

from ..harness import pyplot, Results
from .tables import columns, label_of, means


def error_ratios(results: Results) -> Any:
    """Forecast errors in units of the best reference of each column."""
    names = columns(results)
    figure, axes = pyplot().subplots(figsize=(9, 4))
    best: dict[str, float] = {}
    for result in results:
        for scores in result["references"].values():
            for name, value in means(scores, "forecast").items():
                best[name] = min(value, best.get(name, value))
    for result in results:
        found = means(result["scores"], "forecast")
        ratios = [found[n] / best[n] if n in found else float("nan") for n in names]
        label = f"{label_of(result)}, {result['seed']}"
        axes.plot(range(len(names)), ratios, "o", label=label, alpha=0.7)
    axes.axhline(1, color="grey", linewidth=1)
    axes.set_yscale("log")
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=7)
    axes.set_ylabel("error / best reference")
    axes.legend(fontsize=6, ncols=2)
    return figure

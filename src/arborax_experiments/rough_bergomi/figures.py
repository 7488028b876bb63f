"""Figures of a run: paths, marginals, path functionals, smiles."""

import collections
from typing import Any

import numpy as np

from arborax import plots

from ..harness import AbstractTask, densities, OURS, pyplot, Results, TRUE
from ..harness.figures import look, STYLES
from .config import Config
from .scores import FUNCTIONALS, summaries


def fan_chart(paths: dict[str, np.ndarray]) -> Any:
    """Quantile bands and a few paths, true and generated side by side."""
    plt = pyplot()
    figure, axes = plt.subplots(1, 2, sharey=True, figsize=(9, 3.6))
    for ax, name, colour in zip(axes, ("true", "generated"), (TRUE, OURS)):
        plots.fan_chart(paths[name], paths["ts"], show=12, colour=colour, ax=ax)
        ax.set(title=name)
    axes[0].set(ylabel="log-price")
    low, high = np.quantile(paths["true"][:, -1], [0.01, 0.99])
    axes[0].set_ylim(1.2 * low, 1.6 * high)
    return figure


def marginals(paths: dict[str, np.ndarray], config: Config) -> Any:
    """Densities and quantile plots at the horizons."""
    plt = pyplot()
    count = len(config.horizons)
    stride = config.steps // (paths["ts"].size - 1)
    figure, axes = plt.subplots(2, count, figsize=(2.4 * count, 4.6))
    levels = np.concatenate(
        [[0.002, 0.005], np.linspace(0.01, 0.99, 99), [0.995, 0.998]]
    )
    for k, horizon in enumerate(config.horizons):
        true, ours = (paths[n][:, horizon // stride] for n in ("true", "generated"))
        low, high = np.quantile(true, [0.005, 0.998])
        top, bottom = axes[:, k]
        densities(top, np.linspace(low, high, 50), true, ours)
        top.set(title=f"t = {horizon / config.steps:g}")
        a, b = np.quantile(true, levels), np.quantile(ours, levels)
        bottom.plot([a[0], a[-1]], [a[0], a[-1]], color=TRUE, lw=1)
        bottom.plot(a, b, ".", color=OURS, ms=3)
        bottom.set(xlabel="true quantile")
    axes[0, 0].legend(fontsize=8)
    axes[1, 0].set(ylabel="generated quantile")
    return figure


def functionals(paths: dict[str, np.ndarray], config: Config) -> Any:
    """Densities of the path functionals."""
    plt = pyplot()
    full = config.steps // (paths["ts"].size - 1)
    # Stored paths are thinned: blocks and horizons in units of the stored grid.
    thinned = Config(
        block=config.block // full,
        horizons=tuple(h // full for h in config.horizons),
    )
    true, ours = (
        summaries(paths[name][..., None], thinned)[:, -len(FUNCTIONALS) :].T
        for name in ("true", "generated")
    )
    figure, axes = plt.subplots(1, len(FUNCTIONALS), figsize=(9, 2.8))
    for k, (ax, name) in enumerate(zip(axes, FUNCTIONALS)):
        low, high = np.quantile(true[k], [0.0, 0.95])
        densities(ax, np.linspace(low, high, 45), true[k], ours[k])
        ax.set(title=name)
    return figure


def smiles(result: dict[str, Any]) -> Any:
    """Implied volatilities at the first and the last horizon, with two standard errors
    of Monte Carlo."""
    plt = pyplot()
    content = result["scores"]["smile"]
    figure, axes = plt.subplots(1, len(content["horizons"]), figsize=(8, 3))
    for ax, entry in zip(np.atleast_1d(axes), content["horizons"]):
        for name, colour in (("true", TRUE), ("generated", OURS)):
            values = 100 * np.array(entry[name], dtype=float)
            error = 100 * np.array(entry[f"{name}_error"], dtype=float)
            look: Any = dict(fmt="o-", ms=3, color=colour, label=name)
            ax.errorbar(content["strikes"], values, 2 * error, **look)
        ax.set(title=f"t = {entry['time']:g}", xlabel="strike")
    np.atleast_1d(axes)[0].set(ylabel="implied volatility, %")
    np.atleast_1d(axes)[0].legend(fontsize=8)
    return figure


def smiles_of_rows(task: AbstractTask, results: Results) -> Any:
    """Implied volatilities of each row, mean over seeds, beside the true ones with two
    standard errors of Monte Carlo."""
    plt = pyplot()
    rows: dict[str, list[Any]] = collections.defaultdict(list)
    for result in results:
        rows[task.label(result)].append(result["scores"]["smile"])
    first = results[0]["scores"]["smile"]
    strikes, count = first["strikes"], len(first["horizons"])
    figure, axes = plt.subplots(1, count, figsize=(8, 3.6), squeeze=False)
    for k, (ax, entry) in enumerate(zip(axes[0], first["horizons"])):
        true, error = (100 * np.array(entry[n], float) for n in ("true", "true_error"))
        label = "true" if k == 0 else None
        ax.errorbar(strikes, true, 2 * error, fmt="o", ms=3, color=TRUE, label=label)
        for number, (row, found) in enumerate(rows.items()):
            all_seeds = [one["horizons"][k]["generated"] for one in found]
            values = 100 * np.array(all_seeds, float).mean(axis=0)
            colour, kind = look(number)
            label = row if k == 0 else None
            ax.plot(strikes, values, STYLES[kind], color=colour, lw=1, label=label)
        ax.set(title=f"t = {entry['time']:g}", xlabel="strike")
    axes[0, 0].set(ylabel="implied volatility, %")
    figure.legend(loc="outside lower left", ncols=4, fontsize=7)
    return figure

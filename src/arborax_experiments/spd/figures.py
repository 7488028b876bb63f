"""Figures of a run: eigenvalues over time, and their laws."""

from typing import Any

import numpy as np

from arborax import plots

from ..harness import densities, pyplot
from .config import Config


def fan_chart(paths: dict[str, np.ndarray]) -> Any:
    """Quantile bands of each eigenvalue, true and generated side by side."""
    plt = pyplot()
    figure, axes = plt.subplots(1, 2, sharey=True, figsize=(9, 3.6))
    names = ("smallest", *["middle"] * (paths["true"].shape[-1] - 2), "largest")
    for ax, name in zip(axes, ("true", "generated")):
        plots.fan_chart(paths[name], paths["ts"], levels=(0.5, 0.9), names=names, ax=ax)
        ax.set(title=name)
    axes[0].set(ylabel="eigenvalues")
    axes[0].set_ylim(0, 1.4 * np.quantile(paths["true"][:, -1], 0.99))
    return figure


def marginals(paths: dict[str, np.ndarray], config: Config) -> Any:
    """Densities of the eigenvalues at the horizons."""
    plt = pyplot()
    stored = paths["ts"].size - 1
    horizons = [h for h in config.horizons if h * stored % config.steps == 0]
    figure, axes = plt.subplots(
        1, len(horizons), figsize=(2.3 * len(horizons), 2.6), squeeze=False
    )
    for ax, horizon in zip(axes[0], horizons):
        at = horizon * stored // config.steps
        high = np.quantile(paths["true"][:, at], 0.995)
        bins = np.linspace(0, high, 50)
        for k in range(paths["true"].shape[-1]):
            colour = f"C{k}"
            true, ours = (paths[name][:, at, k] for name in ("true", "generated"))
            densities(ax, bins, true, ours, (colour, colour))
        ax.set(title=f"t = {horizon / config.steps:g}")
    return figure

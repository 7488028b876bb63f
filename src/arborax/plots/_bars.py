"""Coordinates of signatures as bars, with words and trees below them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._inputs import as_count, as_kind
from ..algebra import AbstractHopfAlgebra
from ._style import (
    as_axes,
    as_finite,
    as_names,
    Axes,
    colour_of,
    FAINT,
    Numbers,
    pyplot,
    styled,
)
from ._trees import as_forest, layout


@styled
def signature_bars(
    values: Numbers | Mapping[str, Numbers],
    alg: AbstractHopfAlgebra,
    *,
    largest: int | None = None,
    names: Sequence[str] | None = None,
    colours: Sequence[str] = ("#33658a", "#b5cbdb", "#8a6a9a", "#3b3b3b"),
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Coordinates of a signature or log-signature; the labels are drawn.

    Words are rows of tiles, trees stand on their roots, and a colour is a channel. A
    bar below two tiles joins the channels of a bracket letter of `Ito`. Keys that are
    neither words nor forests, as those of `MultiIndex`, are written.

    **Arguments:**

    - `values`: `(size,)` for a signature, `(primitive_size,)` for a log-signature; or
        several of them by name, drawn side by side.
    - `alg`: the algebra of the coordinates.
    - `largest`: draw only this many coordinates, the largest in size, in the order of
        the basis. All by default; more than about 40 are hard to read.
    - `names`: of the channels, for the legend.
    - `colours`: of the bars, one for each array of `values`.
    - `legend`: whether to draw one, above the axes to the right.
    - `ax`: where to draw; new axes by default.

    **Returns:**

    The axes.
    """
    as_kind("alg", alg, AbstractHopfAlgebra, "be an algebra")
    named = values if isinstance(values, Mapping) else {"": values}
    arrays = {name: as_finite("values", value) for name, value in named.items()}
    shapes = {array.shape for array in arrays.values()}
    if shapes == {(alg.size,)}:
        keys, weights = alg.basis, alg.weights
    elif shapes == {(alg.primitive_size,)}:
        keys, weights = alg.primitive_basis, alg.primitive_weights
    else:
        raise ValueError(
            f"`values` must have shape ({alg.size},), a signature in {alg}, or "
            f"({alg.primitive_size},), a log-signature; got {sorted(shapes)}. Draw one "
            "path at a time."
        )
    labels = as_names(names, alg.dim)
    table = np.stack(list(arrays.values()))
    chosen = np.arange(len(keys))
    if largest is not None:
        order = np.argsort(-np.abs(table).max(axis=0), kind="stable")
        chosen = np.sort(order[: as_count("largest", largest)])
    least = 4.5 if len(table) == 1 else 7.0  # room for a title beside the legend
    ax = as_axes(ax, figsize=(min(11, max(least, 0.42 * len(chosen) + 1)), 3.6))
    width = 0.76 / len(table)
    for row, name in enumerate(arrays):
        x = np.arange(len(chosen)) + (row - (len(table) - 1) / 2) * width
        colour = colours[row % len(colours)]
        ax.bar(x, table[row, chosen], width, color=colour, label=name, zorder=2)
    ax.axhline(0, color=FAINT, lw=0.8)
    for k in np.flatnonzero(np.diff(weights[chosen])):
        ax.axvline(k + 0.5, color=FAINT, lw=0.6, ls=":")
    ax.set_xlim(-0.6, len(chosen) - 0.4)
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)
    ax.grid(axis="y")
    labelled = [keys[k] for k in chosen]
    if all(as_forest(key) or _is_word(key, alg) for key in labelled):
        _draw_labels(ax, labelled)
    else:
        texts = [str(key).replace(" ", "") for key in labelled]
        ax.set_xticks(np.arange(len(texts)), texts, rotation=90, fontsize=7)
    if legend:
        handles = ax.get_legend_handles_labels()[0] if len(named) > 1 else []
        for k, label in enumerate(labels):
            dot: dict[str, Any] = dict(marker="o", ls="", color=colour_of(k))
            handles += ax.plot([], [], label=label, **dot)
        place: dict[str, Any] = dict(loc="lower right", bbox_to_anchor=(1, 1))
        place |= dict(borderpad=0, handlelength=1, columnspacing=1.2)
        ax.legend(handles=handles, ncols=len(handles), **place)
    return ax


def _is_word(key: Any, alg: AbstractHopfAlgebra) -> bool:
    """Whether a key is a word in channels, or in what the algebra calls its letters."""
    letters = {*range(alg.dim), *getattr(alg, "letters", ())}
    return isinstance(key, tuple) and letters.issuperset(key)


def _draw_labels(ax: Any, keys: list[Any]) -> None:
    """Draws the keys below the axis, as large as their number allows, at most 10 pt."""
    from matplotlib.offsetbox import AnnotationBbox

    room = 72 * ax.get_window_extent().width / ax.figure.dpi / len(keys)
    extents = [_extent(key) for key in keys]
    unit = min(10.0, 0.92 * room / max(width for width, _ in extents))
    height = unit * max(height for _, height in extents)
    for k, key in enumerate(keys):
        ax.add_artist(
            AnnotationBbox(
                _picture(key, unit, height),
                (k, 0),
                xycoords=("data", "axes fraction"),
                xybox=(0, -4),
                boxcoords="offset points",
                box_alignment=(0.5, 1.0),
                frameon=False,
                pad=0,
            )
        )


def _extent(key: Any) -> tuple[float, float]:
    forest = as_forest(key)
    if forest:
        return layout(forest)[:2]
    letters = _letters(key)
    return sum(len(letter) for letter in letters) + 0.4 * (len(letters) - 1), 1.5


def _letters(word: Any) -> list[tuple[int, ...]]:
    return [letter if isinstance(letter, tuple) else (letter,) for letter in word]


def _picture(key: Any, unit: float, height: float) -> Any:
    """A key on a canvas of its own, in points; tiles hang from the top, roots stand on
    the ground."""
    from matplotlib.lines import Line2D
    from matplotlib.offsetbox import DrawingArea

    circle, tile = pyplot().Circle, pyplot().Rectangle
    area = DrawingArea(unit * _extent(key)[0], height)
    forest = as_forest(key)
    if forest:
        drawing = layout(forest)
        points = [(unit * x, unit * (y + 0.5)) for x, y, _ in drawing.vertices]
        for start, end in drawing.edges:
            area.add_artist(
                Line2D(*zip(points[start], points[end]), color="#555555", lw=unit / 6)
            )
        for point, (_, _, channel) in zip(points, drawing.vertices):
            area.add_artist(
                circle(point, 0.33 * unit, fc=colour_of(channel), ec="none")
            )
        return area
    at, ground = 0.0, height - unit
    for letter in _letters(key):
        for channel in letter:
            area.add_artist(
                tile(
                    (at + 0.04 * unit, ground),
                    0.92 * unit,
                    0.92 * unit,
                    fc=colour_of(channel),
                    ec="none",
                )
            )
            at += unit
        if len(letter) > 1:
            ends = [at - len(letter) * unit + 0.1 * unit, at - 0.1 * unit]
            bar = Line2D(ends, 2 * [ground - 0.3 * unit], color="#555555", lw=unit / 6)
            area.add_artist(bar)
        at += 0.4 * unit
    return area

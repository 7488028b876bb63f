"""Trees, forests and words as drawings, roots at the bottom."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from .._values import shown
from ._style import as_axes, Axes, colour_of, styled


class Drawing(NamedTuple):
    """Vertices `(x, y, channel)` and edges between their numbers, in unit steps."""

    width: float
    height: float
    vertices: list[tuple[float, float, int]]
    edges: list[tuple[int, int]]


@styled
def draw_forest(
    forest: tuple, *, names: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """A tree or a forest, one colour for each channel.

    **Arguments:**

    - `forest`: a key of `GrossmanLarson` or `MuntheKaasWright`: a tree
        `(channel, (branch, ...))` or a tuple of trees, as in `alg.basis` and
        `alg.primitive_basis`.
    - `names`: of the channels, written on the vertices; numbers by default.
    - `ax`: where to draw; new axes by default. Several forests fit on one row of axes.

    **Returns:**

    The axes.
    """
    trees = as_forest(forest)
    if not trees:
        raise ValueError(
            "`forest` must be a tree (channel, branches) or a tuple of trees, got "
            f"{shown(forest)}. The keys are in `alg.basis`."
        )
    drawing = layout(trees)
    last = max(channel for _, _, channel in drawing.vertices)
    if names is not None and (isinstance(names, str) or len(names) <= last):
        raise ValueError(f"`names` must name {last + 1} channels, got {names!r}.")
    size = (0.9 * drawing.width + 0.4, 0.9 * drawing.height + 0.4)
    ax = as_axes(ax, figsize=size)
    for start, end in drawing.edges:
        xs, ys, _ = zip(drawing.vertices[start], drawing.vertices[end])
        ax.plot(xs, ys, color="#555555", lw=1.6, zorder=1)
    for x, y, channel in drawing.vertices:
        label = str(channel) if names is None else names[channel]
        ax.plot(x, y, "o", ms=19, color=colour_of(channel), mew=0, zorder=2)
        ax.text(x, y, label, color="white", ha="center", va="center_baseline", zorder=3)
    ax.set(xlim=(-0.1, drawing.width + 0.1), ylim=(-0.6, drawing.height - 0.4))
    ax.set_aspect("equal")
    ax.axis("off")
    return ax


def as_forest(key: Any) -> tuple:
    """The trees of a key; none if the key is a word."""
    if _is_tree(key):
        return (key,)
    return key if isinstance(key, tuple) and key and all(map(_is_tree, key)) else ()


def _is_tree(key: Any) -> bool:
    return (
        isinstance(key, tuple)
        and len(key) == 2
        and isinstance(key[0], int)
        and isinstance(key[1], tuple)
        and all(map(_is_tree, key[1]))
    )


def layout(forest: tuple) -> Drawing:
    """Places of the vertices: each stands in the middle below its branches."""
    vertices: list[tuple[float, float, int]] = []
    edges: list[tuple[int, int]] = []

    def place(tree: tuple, left: float, height: int) -> tuple[float, int]:
        channel, branches = tree
        right, above = left, []
        for branch in branches:
            right, vertex = place(branch, right, height + 1)
            above.append(vertex)
        right = max(right, left + 1)
        ends = [vertices[v][0] for v in above] or [left + 0.5]
        vertices.append((sum(ends) / len(ends), float(height), channel))
        edges.extend((len(vertices) - 1, vertex) for vertex in above)
        return right, len(vertices) - 1

    width = 0.0
    for tree in forest:
        width, _ = place(tree, width, 0)
    height = 1 + max(y for _, y, _ in vertices)
    return Drawing(width, height, vertices, edges)

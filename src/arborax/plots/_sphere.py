"""Curves on the unit sphere, and rotations by the ways of their axes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._style import as_axes, as_finite, Axes, colour_of, FAINT, Numbers, pyplot, styled


@styled
def on_sphere(
    points: Numbers,
    *,
    view: tuple[float, float] = (25.0, 35.0),
    colour: str | None = None,
    label: str | None = None,
    width: float = 1.6,
    ax: Axes | None = None,
) -> Axes:
    """Curves of unit vectors in space, seen from far away; the far side is faint.

    A dot marks the end of each curve.

    **Arguments:**

    - `points`: `(times, 3)` or `(n, times, 3)`, of length one.
    - `view`: elevation and azimuth of the eye, in degrees.
    - `colour`: of all curves; by default one for each.
    - `label`: written beside the end of each curve.
    - `width`: of the curves, in points.
    - `ax`: where to draw; new axes by default. Call again on the same axes, with the
        same `view`, to add curves.

    **Returns:**

    The axes.
    """
    curves = as_finite("points", points)
    if curves.ndim not in (2, 3) or curves.shape[-1] != 3 or curves.shape[-2] < 1:
        raise ValueError(
            f"`points` must have shape (times, 3) or (n, times, 3), got {curves.shape}."
        )
    if np.abs(np.linalg.norm(curves, axis=-1) - 1).max() > 1e-3:
        raise ValueError("`points` must have length one: divide them by their norm.")
    curves = curves.reshape(-1, *curves.shape[-2:])
    ax = as_axes(ax, figsize=(4.5, 4.5))
    turn = _towards_eye(view)
    _globe(ax, turn)
    for k, curve in enumerate(curves):
        shade = colour or colour_of(k)
        _curve(ax, curve @ turn.T, shade, width)
        x, y, depth = turn @ curve[-1]
        ax.plot(
            x,
            y,
            "o",
            ms=2.5 + 1.5 * width,
            color=shade,
            alpha=float(_alpha(depth)),
            zorder=3,
        )
        if label is not None:
            from matplotlib.patheffects import withStroke

            outward = 11 / max(np.hypot(x, y), 1e-3) * np.array([x, y])
            place: dict[str, Any] = dict(xytext=outward, textcoords="offset points")
            place |= dict(ha="center", va="center", color=shade, weight="bold")
            text = ax.annotate(label, (x, y), zorder=4, **place)
            text.set_path_effects([withStroke(linewidth=3, foreground="white")])
    return ax


@styled
def rotations(
    rotations: Numbers,
    *,
    view: tuple[float, float] = (25.0, 35.0),
    names: Sequence[str] = ("x", "y", "z"),
    ax: Axes | None = None,
) -> Axes:
    """The way of a rotating body: its three axes as curves on the unit sphere.

    **Arguments:**

    - `rotations`: matrices `(times, 3, 3)`; the columns are the axes of the body.
    - `view`: elevation and azimuth of the eye, in degrees.
    - `names`: of the axes.
    - `ax`: where to draw; new axes by default.

    **Returns:**

    The axes.
    """
    matrices = as_finite("rotations", rotations)
    if matrices.ndim != 3 or matrices.shape[1:] != (3, 3):
        raise ValueError(
            f"`rotations` must have shape (times, 3, 3), got {matrices.shape}. Draw "
            "one trajectory at a time."
        )
    defect = np.swapaxes(matrices, -1, -2) @ matrices - np.eye(3)
    if np.abs(defect).max() > 1e-3 or np.linalg.det(matrices).min() < 0:
        raise ValueError(
            "`rotations` must be rotation matrices (orthogonal, determinant one); "
            "`abx.project_rotation` finds the nearest ones."
        )
    if isinstance(names, str) or len(names) != 3:
        raise ValueError(f"`names` must name three axes, got {names!r}.")
    for k, name in enumerate(names):
        options: dict[str, Any] = dict(colour=colour_of(k), label=name, view=view)
        ax = on_sphere(matrices[..., k], ax=ax, **options)
    assert ax is not None
    return ax


def _towards_eye(view: tuple[float, float]) -> np.ndarray:
    """The rotation after which the eye looks down the third axis."""
    elevation, azimuth = np.deg2rad(view)
    eye = np.array(
        [
            np.cos(elevation) * np.cos(azimuth),
            np.cos(elevation) * np.sin(azimuth),
            np.sin(elevation),
        ]
    )
    right = np.array([-np.sin(azimuth), np.cos(azimuth), 0.0])
    return np.stack([right, np.cross(eye, right), eye])


def _alpha(depth: Any) -> Any:
    return np.where(np.asarray(depth) >= 0, 1.0, 0.25)


def _curve(ax: Any, curve: np.ndarray, colour: str, width: float) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    pieces = np.stack([curve[:-1, :2], curve[1:, :2]], axis=1)
    colours = np.tile(to_rgba(colour), (len(pieces), 1))
    colours[:, 3] *= _alpha(curve[:-1, 2] + curve[1:, 2])
    ax.add_collection(
        LineCollection(list(pieces), colors=colours, linewidths=width, capstyle="round")
    )


def _globe(ax: Any, turn: np.ndarray) -> None:
    """Outline, meridians and parallels, once for each axes."""
    if any(patch.get_gid() == "globe" for patch in ax.patches):
        return
    outline: dict[str, Any] = dict(fc="#f6f6f4", ec=FAINT, lw=1, zorder=0, gid="globe")
    ax.add_patch(pyplot().Circle((0, 0), 1, **outline))
    angle = np.linspace(0, 2 * np.pi, 121)
    zero = np.zeros_like(angle)
    for tilt in np.deg2rad(np.arange(0, 180, 30)):
        flat = np.stack([np.cos(angle), zero, np.sin(angle)], axis=1)
        spin = np.array(
            [[np.cos(tilt), 0, 0], [np.sin(tilt), 1, 0], [0, 0, 1]], np.float64
        )
        _curve(ax, flat @ spin.T @ turn.T, "#dcdcd8", 0.6)
    for height in np.sin(np.deg2rad(np.arange(-60, 90, 30))):
        radius = np.sqrt(1 - height**2)
        ring = np.stack(
            [radius * np.cos(angle), radius * np.sin(angle), zero + height], axis=1
        )
        _curve(ax, ring @ turn.T, "#dcdcd8", 0.6)
    ax.set(xlim=(-1.22, 1.22), ylim=(-1.22, 1.22))
    ax.set_aspect("equal")
    ax.axis("off")

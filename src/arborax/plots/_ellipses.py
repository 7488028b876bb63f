"""Covariance matrices over time as ellipses."""

import numpy as np

from .._inputs import as_count
from ._style import as_axes, as_finite, Axes, Numbers, pyplot, styled


@styled
def covariance_ellipses(
    covariances: Numbers,
    ts: Numbers | None = None,
    *,
    channels: tuple[int, int] = (0, 1),
    count: int = 12,
    centres: Numbers | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Ellipses of one standard deviation, from left to right in time.

    **Arguments:**

    - `covariances`: `(times, n, n)`, symmetric and positive semidefinite, `n >= 2`; or
        `(rows, times, n, n)` for several sequences, one row of ellipses each.
    - `ts`: times `(times,)`; numbers of the matrices by default.
    - `channels`: which two channels, for `n > 2`.
    - `count`: draw at most this many, evenly spaced.
    - `centres`: `(times, 2)`: draw the ellipses there, on a common scale, instead of in
        a row. For one sequence.
    - `ax`: where to draw; new axes by default.

    **Returns:**

    The axes.
    """
    matrices = as_finite("covariances", covariances)
    if matrices.ndim not in (3, 4) or matrices.shape[-1] != matrices.shape[-2]:
        raise ValueError(
            "`covariances` must have shape (times, n, n) or (rows, times, n, n), got "
            f"{matrices.shape}."
        )
    matrices = matrices.reshape(-1, *matrices.shape[-3:])
    rows, times, size, _ = matrices.shape
    pair = [as_count("channels", channel, 0) for channel in channels]
    if len(set(pair)) != 2 or max(pair) >= size:
        raise ValueError(
            f"`channels` must be two of the {size} channels, numbered from 0, got "
            f"{tuple(channels)}."
        )
    matrices = matrices[..., pair, :][..., pair]
    values, vectors = np.linalg.eigh(matrices)
    if (
        not np.allclose(matrices, np.swapaxes(matrices, -1, -2))
        or values.min() < -1e-6 * np.abs(values).max()
    ):
        raise ValueError(
            "`covariances` must be symmetric and positive semidefinite; symmetrise "
            "them by `(c + c.T) / 2`."
        )
    labels = np.arange(times) if ts is None else as_finite("ts", ts)
    if labels.shape != (times,):
        raise ValueError(f"`ts` must have shape ({times},), got {labels.shape}.")
    shown = np.linspace(0, times - 1, min(as_count("count", count), times))
    shown = np.unique(np.round(shown).astype(int))
    radii = np.sqrt(np.maximum(values, 0))
    step = 2.3 * radii[:, shown].max()
    across = step * np.arange(len(shown))
    if centres is None:
        places = np.stack(
            [
                np.stack([across, np.full(len(shown), -step * row)], axis=1)
                for row in range(rows)
            ]
        )
    else:
        places = as_finite("centres", centres)
        if rows != 1 or places.shape != (times, 2):
            raise ValueError(
                f"`centres` must have shape ({times}, 2), for one sequence of "
                f"matrices; got {places.shape} and {rows} sequences."
            )
        places = places[None, shown]
    height = 4.5 if centres is not None else 0.9 + 7.6 * rows / max(len(shown), 4)
    ax = as_axes(ax, figsize=(8, height))
    shades = pyplot().get_cmap("viridis")(np.linspace(0.05, 0.85, len(shown)))
    for row in range(rows):
        for k, at in enumerate(shown):
            x, y = vectors[row, at, :, 1]
            ax.add_patch(
                ellipse(places[row, k], radii[row, at], np.arctan2(y, x), shades[k])
            )
    ax.set_aspect("equal")
    ax.autoscale_view()
    if centres is None:
        ax.set_xticks(places[0, :, 0], [f"{labels[at]:.3g}" for at in shown])
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        ax.set_xlabel("time" if ts is not None else "matrix")
    return ax


def ellipse(centre, radii, angle, colour):
    """The patch; radii ascending, the angle is that of the second axis."""
    from matplotlib.patches import Ellipse

    minor, major = 2 * radii
    return Ellipse(
        centre,
        major,
        minor,
        angle=np.rad2deg(angle),
        fc=(*colour[:3], 0.25),
        ec=colour,
        lw=1.4,
    )

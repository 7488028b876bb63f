"""One style for all pictures; Matplotlib is imported when one is drawn."""

import functools as ft
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TYPE_CHECKING, TypeVar

import numpy as np

from .._imports import require
from .._values import shown


if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from numpy.typing import ArrayLike as Numbers
else:
    Axes = Numbers = Any  # lists, too, which run-time checkers would have to walk

_P = ParamSpec("_P")
_R = TypeVar("_R")

# The cycle of the style file; the last one, grey, stands for data.
COLOURS = ("#1b6b58", "#d9822b", "#5b5ea6", "#b23a48", "#7a7a7a")
DATA, MODEL = COLOURS[-1], COLOURS[0]
FAINT = "#9a9a9a"


def pyplot() -> Any:
    return require("matplotlib.pyplot", "plots", "drawing")


def styled(draw: Callable[_P, _R]) -> Callable[_P, _R]:
    """`draw` inside the library's style, whatever style is set outside."""

    @ft.wraps(draw)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with pyplot().style.context("arborax.arborax"):
            return draw(*args, **kwargs)

    return wrapped


def as_axes(ax: Any, **figure: Any) -> Axes:
    """The axes to draw on; new ones if `ax` is `None`."""
    if ax is None:
        return pyplot().subplots(**figure)[1]
    if not hasattr(ax, "add_patch"):
        raise TypeError(
            f"`ax` must be one Matplotlib axes, got {shown(ax)}. Make one by "
            "`figure, ax = plt.subplots()`, or leave it out."
        )
    return ax


def colour_of(channel: int) -> str:
    """The colour of a channel, in every picture the same."""
    return COLOURS[channel % len(COLOURS)]


def as_finite(name: str, value: Any) -> np.ndarray:
    """A float64 array on the host without NaN or infinity."""
    array = np.asarray(value, np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"`{name}` holds NaN or infinity. Leave these values out.")
    return array


def as_names(
    names: Sequence[str] | None, count: int, what: str = "channels"
) -> Sequence[str]:
    """One name each, or `channel 0`, `channel 1`, ..."""
    if names is None:
        return [f"channel {k}" for k in range(count)]
    if isinstance(names, str) or len(names) != count:
        raise ValueError(f"`names` must name the {count} {what}, got {names!r}.")
    return names

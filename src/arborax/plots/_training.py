"""The course of a training run."""

from typing import Any

import numpy as np

from .._inputs import as_kind
from ..training import FitResult, History
from ._style import as_axes, Axes, Numbers, styled


@styled
def training_curve(
    result: FitResult | History,
    quantity: str = "loss",
    *,
    steps: Numbers | None = None,
    label: str | None = None,
    colour: str | None = None,
    style: str = "-",
    ax: Axes | None = None,
) -> Axes:
    """One quantity of a run of [`arborax.fit`][] over the steps.

    What was recorded at every step is drawn faint, with means over blocks of steps
    above it; validations have a dot each, and the one whose model `fit` returned a
    larger one. The scale is logarithmic if all values are positive.

    **Arguments:**

    - `result`: from [`arborax.fit`][], or its `history`.
    - `quantity`: `"loss"`, `"gradient_norm"`, a scalar that the objective returned by
        name, or a number of the validations (`"metric"`).
    - `steps`: the step of each value, where only some were kept; all by default.
    - `label`: for a legend; `colour`, `style`: of the line.
    - `ax`: where to draw; new axes by default.

    **Returns:**

    The axes.
    """
    as_kind("result", result, FitResult | History, "come from `abx.fit`")
    history = result.history if isinstance(result, FitResult) else result
    at, values, validated = _values(history, quantity)
    if steps is not None:
        at = np.asarray(steps)
        if at.shape != values.shape:
            raise ValueError(
                f"`steps` must have shape {values.shape}, one step for each value of "
                f"{quantity!r}, got {at.shape}."
            )
    ax = as_axes(ax)
    options: dict[str, Any] = dict(color=colour, ls=style, label=label)
    if validated:
        (line,) = ax.plot(at, values, marker=".", **options)
        best: Any = getattr(result, "best_step", None)
        if quantity == "metric" and best in at:
            ax.plot(best, values[at == best][0], "o", ms=8, color=line.get_color())
    else:
        width = max(1, values.size // 60)
        count = values.size // width
        blocks = [x[: count * width].reshape(count, width) for x in (at, values)]
        middles, means = (block.mean(axis=1) for block in blocks)
        (line,) = ax.plot(middles, means, **options)
        if width > 1:
            ax.plot(at, values, lw=0.6, alpha=0.25, color=line.get_color(), zorder=1)
    drawn = np.concatenate([line.get_ydata() for line in ax.lines])
    ax.set_yscale("log" if np.nanmin(drawn) > 0 else "linear")
    ax.set(xlabel="step", ylabel=quantity.replace("_", " "))
    ax.locator_params(axis="x", integer=True)
    if label is not None:
        ax.legend()
    return ax


def _values(history: History, quantity: str) -> tuple[np.ndarray, np.ndarray, bool]:
    """Steps, values, and whether they belong to validations."""
    recorded = {"loss": history.loss, "gradient_norm": history.gradient_norm}
    recorded |= history.aux
    if recorded.get(quantity):
        values = np.asarray(recorded[quantity], np.float64)
        return np.arange(values.size), values, False
    records = [record for record in history.validation if quantity in record]
    if not records:
        known = {name for name, column in recorded.items() if column}
        known |= {name for record in history.validation for name in record}
        raise ValueError(
            f"the run recorded no {quantity!r}; there are {sorted(known - {'step'})}."
        )
    at = np.array([record["step"] for record in records])
    return at, np.array([record[quantity] for record in records], np.float64), True

"""The result of `fit`, and the events of its hooks."""

import dataclasses
from typing import Any, Literal

import numpy as np


StopReason = Literal["steps", "patience", "non-finite", "interrupted", "hook"]


@dataclasses.dataclass
class History:
    """The course of a run.

    **Fields:**

    - `loss`, `gradient_norm`: one number per step, before the update of that step.
    - `aux`: for each scalar the objective returned by name, one number per step.
    - `validation`: one record per validation: `step`, `metric`, `seconds` (since the
        start, without compilation), and the other numbers of the metric.
    """

    loss: list[float] = dataclasses.field(default_factory=list)
    gradient_norm: list[float] = dataclasses.field(default_factory=list)
    aux: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    validation: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The per-step curves as named float64 arrays."""
        columns = {"loss": self.loss, "gradient_norm": self.gradient_norm}
        columns |= {f"aux/{name}": values for name, values in self.aux.items()}
        return {f"history/{k}": np.asarray(v, np.float64) for k, v in columns.items()}

    @staticmethod
    def from_arrays(
        arrays: dict[str, np.ndarray], validation: list[dict[str, Any]]
    ) -> "History":
        """The inverse of `to_arrays`."""
        columns = {k.removeprefix("history/"): v.tolist() for k, v in arrays.items()}
        return History(
            loss=columns.pop("loss"),
            gradient_norm=columns.pop("gradient_norm"),
            aux={k.removeprefix("aux/"): v for k, v in columns.items()},
            validation=validation,
        )


@dataclasses.dataclass(frozen=True)
class Timings:
    """Wall times in seconds, summed over resumed runs (`compile`: of the last one).

    **Fields:**

    - `compile`: tracing and compiling the training step.
    - `step`: mean time of a training step, compilation and validation excluded.
    - `to_best`: from the start to the end of the validation that found the returned
        model; compilation and the validation before the first step excluded. Without
        validation, the time of all steps.
    - `training`, `validation`: sums over all steps and over all validations.
    """

    compile: float
    step: float
    to_best: float
    training: float
    validation: float


@dataclasses.dataclass(frozen=True)
class FitResult:
    """The outcome of `fit`.

    **Fields:**

    - `model`: the best model by the validation metric; without validation the last one
        whose loss was finite.
    - `last`: the model at the end (after a non-finite loss: the last good one).
    - `history`: losses and validations.
    - `stop`: why it ended: `"steps"`, `"patience"`, `"non-finite"`, `"interrupted"` or
        `"hook"`.
    - `message`: the same in words, with the step and what is known of a failure.
    - `steps`: number of steps done.
    - `best_step`, `best_metric`: of the returned model; `best_metric` is `None` without
        validation.
    - `failure`: after a non-finite loss or gradient, a record of `step`, `epoch`,
        `loss`, `gradient_norm` and the `aux` of that step (such as the window), and the
        `cause` if the model or the solver names one (layer, window) when the loss of
        that step is computed once more; otherwise `None`.
    - `timings`: see `Timings`.
    """

    model: Any
    last: Any
    history: History
    stop: StopReason
    message: str
    steps: int
    best_step: int
    best_metric: float | None
    failure: dict[str, Any] | None
    timings: Timings


@dataclasses.dataclass(frozen=True)
class Event:
    """The argument of a hook.

    **Fields:**

    - `kind`: `"start"`, `"step"`, `"validation"`, `"checkpoint"` or `"stop"`.
    - `step`: number of steps done.
    - `record`: the numbers of this event.
    - `model`: a function that gives a copy of the present model.
    """

    kind: Literal["start", "step", "validation", "checkpoint", "stop"]
    step: int
    record: dict[str, Any]
    model: Any

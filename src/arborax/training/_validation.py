"""Validation with a fixed key, and the choice of the best model."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import numpy as np

from ._batches import is_array, leading_size, take_rows
from ._distributed import broadcast_float, Placement
from ._step import call_objective


@dataclasses.dataclass
class Best:
    """The best value so far and the number of validations since."""

    mode: Literal["min", "max"]
    value: float | None = None
    step: int = 0
    seconds: float = 0.0
    waited: int = 0

    def improves(self, value: float) -> bool:
        """Whether a value is better; a non-finite one never is."""
        if not math.isfinite(value):
            return False
        if self.value is None:
            return True
        return value < self.value if self.mode == "min" else value > self.value


def _pair(out: Any) -> tuple[Any, Any]:
    return (out[0], out[1]) if isinstance(out, tuple) and len(out) == 2 else (out, {})


@dataclasses.dataclass
class Validator:
    """Evaluates a state's parameters: `validator(params) -> (value, extra)`.

    A user's metric is called plainly (it may use NumPy or SciPy) as
    `metric(model, validation, key)` on copies of the arrays on the default device; in
    several processes each computes it and the value of process 0 counts. Without one,
    the value is the mean objective over the validation set, in batches, all with the
    same key.
    """

    metric: Callable | None
    validation: Any
    objective: Callable
    batch_size: int | None
    frozen: Any
    static: Any
    key: jax.Array
    place: Placement

    def __post_init__(self):
        if self.metric is None:
            self._size = leading_size(self.validation, "validation")
            self.frozen, self.key = self.place.replicate((self.frozen, self.key))
            self._evaluate = eqx.filter_jit(
                lambda m, batch, key: call_objective(self.objective, m, batch, key)[0]
            )

    def _mean_objective(self, model: Any) -> float:
        size, total = min(self.batch_size or self._size, self._size), 0.0
        for first in range(0, self._size, size):
            rows = slice(first, min(first + size, self._size))
            batch = take_rows(self.validation, rows)
            arrays, rest = eqx.partition(batch, is_array)
            batch = eqx.combine(self.place.batch(arrays), rest)
            loss = self._evaluate(model, batch, self.key)
            total += float(loss) * (rows.stop - rows.start)
        return total / self._size

    def __call__(self, params: Any) -> tuple[float, dict[str, Any]]:
        if self.metric is None:
            model = eqx.combine(params, self.frozen, self.static)
            return broadcast_float(self._mean_objective(model)), {}
        model = eqx.combine(self.place.local(params), self.frozen, self.static)
        value, extra = _pair(self.metric(model, self.validation, self.key))
        if np.shape(value) != ():
            raise ValueError(
                "the metric must return a scalar, or (scalar, dictionary); got shape "
                f"{np.shape(value)}."
            )
        return broadcast_float(float(value)), dict(extra)

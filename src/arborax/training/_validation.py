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


class Validator:
    """Evaluates a state's parameters: `validator(params) -> (value, extra)`.

    A user's metric is called plainly (it may use NumPy or SciPy) as
    `metric(model, validation, key)` on copies of the arrays on the default device; in
    several processes each computes it and the value of process 0 counts. Without one,
    the value is the mean objective over the validation set, in batches, all with the
    same key.
    """

    def __init__(
        self,
        metric: Callable | None,
        validation: Any,
        objective: Callable,
        batch_size: int | None,
        frozen: Any,
        static: Any,
        key: jax.Array,
        place: Placement,
    ):
        self._metric, self._validation, self._place = metric, validation, place
        self._frozen, self._static, self._key = frozen, static, key
        if metric is None:
            self._size = leading_size(validation, "validation")
            self._batch = min(batch_size or self._size, self._size)
            self._frozen, self._key = place.replicate((frozen, key))

            @eqx.filter_jit
            def evaluate(model: Any, batch: Any, key: Any) -> Any:
                return call_objective(objective, model, batch, key)[0]

            self._evaluate = evaluate

    def _mean_objective(self, model: Any) -> float:
        total = 0.0
        for first in range(0, self._size, self._batch):
            rows = slice(first, min(first + self._batch, self._size))
            batch = take_rows(self._validation, rows)
            arrays, rest = eqx.partition(batch, is_array)
            batch = eqx.combine(self._place.batch(arrays), rest)
            loss = self._evaluate(model, batch, self._key)
            total += float(loss) * (rows.stop - rows.start)
        return total / self._size

    def __call__(self, params: Any) -> tuple[float, dict[str, Any]]:
        if self._metric is None:
            model = eqx.combine(params, self._frozen, self._static)
            return broadcast_float(self._mean_objective(model)), {}
        model = eqx.combine(self._place.local(params), self._frozen, self._static)
        value, extra = _pair(self._metric(model, self._validation, self._key))
        if np.shape(value) != ():
            raise ValueError(
                "the metric must return a scalar, or (scalar, dictionary); got shape "
                f"{np.shape(value)}."
            )
        return broadcast_float(float(value)), dict(extra)

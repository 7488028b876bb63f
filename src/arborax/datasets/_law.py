"""Laws of paths, and the data sets simulated from them."""

import abc
import dataclasses
import functools as ft
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from .._inputs import as_count, as_key, as_number
from .._values import shown


BLOCK = 1024  # paths simulated at a time


@dataclasses.dataclass(frozen=True)
class PathData:
    """Paths of one law, independent of each other, in host memory.

    **Fields:**

    - `ts`: common times `(times,)`.
    - `values`: `(paths, times, channels)`.
    - `brackets`: quadratic variation of each step as the simulator knows it,
        `(paths, times - 1, channels, channels)`, for instance `v dt`; `None` where it
        does not exist or is not stored.
    """

    ts: Float[np.ndarray, " times"]
    values: Float[np.ndarray, "paths times channels"]
    brackets: Float[np.ndarray, "paths steps channels channels"] | None

    def __len__(self) -> int:
        return self.values.shape[0]

    def __getitem__(self, rows: slice) -> "PathData":
        """The paths of a slice; no copy."""
        brackets = None if self.brackets is None else self.brackets[rows]
        return PathData(self.ts, self.values[rows], brackets)

    def split(self, train: float = 0.8, validation: float = 0.1) -> "Splits":
        """Disjoint parts along the path axis, in order; the rest is the test set.

        Paths are independent and none is cut, so the parts are independent as well.
        """
        check_fractions(train, validation)
        first = int(train * len(self))
        second = int(round((train + validation) * len(self), 6))
        if first == 0 or second == len(self) or (validation > 0 and first == second):
            raise ValueError(
                f"{len(self)} paths are too few for parts of {train}, {validation} and "
                "the rest: one of them would be empty."
            )
        return Splits(self[:first], self[first:second], self[second:])


def check_fractions(train: Any, validation: Any) -> None:
    """Refuse fractions of a training and a validation set that leave no test set."""
    as_number("train", train, 0, above=True)
    as_number("validation", validation, 0)
    if not train + validation < 1:
        raise ValueError(
            "`train` and `validation` must leave something to test on, got "
            f"{train} and {validation}."
        )


class Splits(NamedTuple):
    """Training, validation and test set."""

    train: PathData
    validation: PathData
    test: PathData


@dataclasses.dataclass(frozen=True)
class AbstractLaw(abc.ABC):
    """A law of paths on `linspace(0, horizon, steps + 1)`: parameters only."""

    steps: int = 512
    horizon: float = 1.0
    has_brackets: ClassVar[bool] = True
    channels: ClassVar[int] = 1
    positive: ClassVar[tuple[str, ...]] = ("horizon",)

    @abc.abstractmethod
    def simulate(
        self, paths: int, *, key: PRNGKeyArray, dtype: Any
    ) -> tuple[Float[Array, "paths times"], Float[Array, "paths steps"] | None]:
        """Values and brackets of each step (or `None`) of independent paths.

        Laws of several channels have them on further axes.
        """

    def check(self) -> None:
        """Refuse parameters that make no sense: those named in `positive` must be
        positive, and a correlation `rho` lies in [-1, 1]."""
        as_count("steps", self.steps)
        for field in dataclasses.fields(self):
            if isinstance(field.default, float):
                value, positive = getattr(self, field.name), field.name in self.positive
                as_number(field.name, value, 0 if positive else -np.inf, above=positive)
        if not -1 <= getattr(self, "rho", 0) <= 1:
            raise ValueError(f"`rho` must lie in [-1, 1], got {shown(self)}.")

    def times(self, dtype: Any = np.float64) -> Float[np.ndarray, " times"]:
        """The grid."""
        return np.linspace(0.0, self.horizon, self.steps + 1).astype(dtype)

    def sample(
        self, paths: int, *, key: PRNGKeyArray, dtype: Any = np.float32
    ) -> PathData:
        """Independent paths, simulated in blocks.

        **Arguments:**

        - `paths`: number of paths. A smaller sample is the beginning of a larger one.
        - `key`: a JAX random key.
        - `dtype`: of the result and of the simulation.

        **Returns:**

        A `PathData`.
        """
        self.check()
        key, paths = as_key(key), as_count("paths", paths)
        dtype = as_float_dtype(dtype)
        if jax.dtypes.canonicalize_dtype(dtype) != dtype:
            raise ValueError(
                f"paths in {dtype} need the 64-bit mode of JAX: "
                "`jax.config.update('jax_enable_x64', True)`."
            )
        width = self.channels
        data = PathData(
            self.times(dtype),
            np.empty((paths, self.steps + 1, width), dtype),
            np.empty((paths, self.steps, width, width), dtype)
            if self.has_brackets
            else None,
        )
        for block, first in enumerate(range(0, paths, BLOCK)):
            found = _simulate(self, jr.fold_in(key, block), dtype)
            for array, part in zip((data.values, data.brackets), found):
                if array is None:
                    continue
                rows = array[first : first + BLOCK]
                rows[...] = part[: len(rows)].reshape(rows.shape)
                if not np.isfinite(rows).all():
                    raise ValueError(
                        f"paths of {shown(self)} leave the range of {dtype}. Choose "
                        "parameters nearer to one."
                    )
        return data


def as_float_dtype(dtype: Any) -> np.dtype:
    """A dtype of the floating numbers that laws are simulated in."""
    try:
        found = jnp.dtype(dtype)
    except TypeError:
        found = None
    # `None` equals the dtype float64 for NumPy.
    if found is None or found not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise TypeError(f"`dtype` must be float32 or float64, got {shown(dtype)}.")
    return found


@ft.partial(jax.jit, static_argnums=(0, 2))
def _simulate(law: AbstractLaw, key: PRNGKeyArray, dtype: Any):
    return law.simulate(BLOCK, key=key, dtype=dtype)

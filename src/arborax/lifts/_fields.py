"""Driving fields in the forms users write them, behind one interface."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float, PyTree

from .._values import shown


class DrivingFields(eqx.Module):
    r"""The `d` driving fields $V_1, \dots, V_d$ in frame coordinates.

    Three forms are understood.

    - A callable `fields(y)` (or `fields(t, y)`) that returns all channels at once,
      shape `(d, dim)`.
    - A list or tuple of `d` callables, each returning `(dim,)`.
    - A callable as in the first form with a method `expand(y, directions)` (or
      `expand(t, y, directions)`) that gives its derivatives, for fields that can have
      them for less than forward-mode differentiation does: see
      `arborax.lifts.AbstractExpansion`.
    """

    fields: Callable | tuple[Callable, ...]
    number: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    time_dependent: bool = eqx.field(static=True)

    def __call__(self, t, y: PyTree[Array]) -> Float[Array, "channels dim"]:
        """All fields at `y`, in its dtype: times may have another."""
        args = (t, y) if self.time_dependent else (y,)
        if isinstance(self.fields, tuple):
            return jnp.stack([self.channel(i, *args) for i in range(self.number)])
        value = _as_real("`fields`", self.fields(*args), y)
        return self.check(value)

    def channel(self, i: int, *args) -> Float[Array, " dim"]:
        """Field number `i` of a tuple, at `(y,)` or `(t, y)`."""
        assert isinstance(self.fields, tuple)
        out = _as_real(f"field number {i}", self.fields[i](*args), args[-1])
        if out.shape != (self.dim,):
            raise ValueError(
                f"field number {i} must return frame coordinates of shape "
                f"({self.dim},), got {out.shape}."
            )
        return out

    def check(self, value: Array) -> Float[Array, "channels dim"]:
        """Refuse values of the wrong shape."""
        if value.shape != (self.number, self.dim):
            raise ValueError(
                f"`fields` must return one row for each of the {self.number} channels "
                f"of the control, in frame coordinates: shape "
                f"{(self.number, self.dim)}, got {value.shape}."
            )
        return value


def _as_real(name: str, value: Any, y: PyTree[Array]) -> Array:
    """What a field returned, as an array of the dtype of the state."""
    try:
        array = jnp.asarray(value)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name} must return one array, got {shown(value)}. Stack lists of "
            "rows by `jnp.stack`."
        ) from error
    if jnp.iscomplexobj(array):
        raise TypeError(f"{name} must return real numbers, got {array.dtype}.")
    return array.astype(jtu.tree_leaves(y)[0].dtype)


def _takes_time(field: Callable) -> bool:
    """Whether the callable has two required positional arguments, `(t, y)`; more are
    refused."""
    try:
        parameters = inspect.signature(field).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
    required = [p for p in parameters if p.kind in positional and p.default is p.empty]
    if len(required) > 2:
        names = ", ".join(p.name for p in required)
        raise TypeError(
            f"fields are called as `fields(y)` or `fields(t, y)`; got one that needs "
            f"({names}). Bind the rest, for instance by a lambda."
        )
    return len(required) == 2


def as_driving_fields(
    fields: Callable | Sequence[Callable],
    number: int,
    dim: int,
    time_dependent: bool | None = None,
) -> DrivingFields:
    """Wrap the user's fields, finding out whether they depend on time.

    **Arguments:**

    - `fields`: see [`DrivingFields`][].
    - `number`: how many channels the control has.
    - `dim`: length of frame coordinates.
    - `time_dependent`: whether fields are called as `fields(t, y)`. By default they are
        if they have exactly two required positional arguments.

    **Returns:**

    A `DrivingFields`.
    """
    if isinstance(fields, DrivingFields):
        return fields
    if isinstance(fields, list | tuple):
        if len(fields) != number:
            raise ValueError(
                f"The control has {number} channels but {len(fields)} fields were "
                "given. Give one callable for each channel."
            )
        fields = tuple(fields)
    each: tuple[Any, ...] = fields if isinstance(fields, tuple) else (fields,)
    for field in each:
        if not callable(field):
            raise TypeError(
                "`fields` must be a callable, or a list of callables, one for each "
                f"channel; got {shown(type(field).__name__)}."
            )
    if time_dependent is None:
        timed = [_takes_time(field) for field in each]
        time_dependent = timed[0]
        if any(one != time_dependent for one in timed):
            raise TypeError(
                "some fields take `(y)` and some `(t, y)`; give all the same arguments."
            )
    chosen: Any = fields  # one callable, or a tuple of them
    return DrivingFields(chosen, number, dim, time_dependent)  # pyright: ignore


def check_fields(fields: DrivingFields, y: PyTree[Array], t: Array) -> None:
    """Refuse, at trace time, fields of the wrong shape."""
    jax.eval_shape(fields, t, y)

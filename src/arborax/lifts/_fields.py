"""Driving fields in the forms users write them, behind one interface."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree


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
        """All fields at `y`."""
        args = (t, y) if self.time_dependent else (y,)
        if isinstance(self.fields, tuple):
            return jnp.stack([self.channel(i, *args) for i in range(self.number)])
        return self.check(jnp.asarray(self.fields(*args)))

    def channel(self, i: int, *args) -> Float[Array, " dim"]:
        """Field number `i` of a tuple, at `(y,)` or `(t, y)`."""
        assert isinstance(self.fields, tuple)
        out = jnp.asarray(self.fields[i](*args))
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


def _takes_time(field: Callable) -> bool:
    """Whether the callable has two required positional arguments, `(t, y)`."""
    try:
        parameters = inspect.signature(field).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
    required = [p for p in parameters if p.kind in positional and p.default is p.empty]
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
        first = fields[0]
    else:
        first = fields
    if not callable(first):
        raise TypeError(
            "`fields` must be a callable, or a list of callables, one for each "
            f"channel; got {type(first)}."
        )
    if time_dependent is None:
        time_dependent = _takes_time(first)
    chosen: Any = fields  # one callable, or a tuple of them
    return DrivingFields(chosen, number, dim, time_dependent)  # pyright: ignore


def check_fields(fields: DrivingFields, y: PyTree[Array]) -> None:
    """Refuse, at trace time, fields of the wrong shape."""
    t = jnp.zeros((), jax.tree_util.tree_leaves(y)[0].dtype)
    jax.eval_shape(lambda z: fields(t, z), y)

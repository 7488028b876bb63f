"""Driving fields in the forms users write them, behind one interface."""

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float, PyTree

from .._values import shown


class DrivingFields(eqx.Module):
    r"""The `d` driving fields $V_1, \dots, V_d$ in frame coordinates.

    Three forms are understood.

    - A callable `fields(y)`, or `fields(t, y, args)` as in Diffrax, that returns all
      channels at once, shape `(d, dim)`.
    - A list or tuple of `d` callables, each returning `(dim,)`.
    - A callable as in the first form with a method `expand(y, directions)` (or
      `expand(t, y, args, directions)`) that gives its derivatives, for fields that can
      have them for less than forward-mode differentiation does: see
      `arborax.lifts.AbstractExpansion`.

    `time_dependent` fields are those of the form `(t, y, args)`. They are bound to
    `args`, whose arrays are leaves of this module and so are differentiated like the
    parameters of the fields.
    """

    fields: Callable | tuple[Callable, ...]
    number: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    time_dependent: bool = eqx.field(static=True)
    args: PyTree = None

    def __call__(self, t, y: PyTree[Array]) -> Float[Array, "channels dim"]:
        """All fields at `y`, in its dtype: times may have another."""
        if isinstance(self.fields, tuple):
            return jnp.stack([self.channel(i, t, y) for i in range(self.number)])
        value = _as_real("`fields`", self.fields(*self.arguments(t, y)), y)
        return self.check(value)

    def arguments(self, t, y: PyTree[Array]) -> tuple:
        """The arguments of the callables: `(y,)` or `(t, y, args)`."""
        return (t, y, self.args) if self.time_dependent else (y,)

    def channel(self, i: int, t, y: PyTree[Array]) -> Float[Array, " dim"]:
        """Field number `i` of a tuple."""
        assert isinstance(self.fields, tuple)
        value = self.fields[i](*self.arguments(t, y))
        out = _as_real(f"field number {i}", value, y)
        if out.shape != (self.dim,):
            raise ValueError(
                f"field number {i} must return frame coordinates of shape "
                f"({self.dim},), got {out.shape}."
            )
        return out

    def bind(self, args: PyTree) -> "DrivingFields":
        """The same fields with other `args`."""
        if not self.time_dependent:
            raise TypeError(
                "`args` was given, but fields called as `fields(y)` cannot see it. "
                "Write them as `fields(t, y, args)`."
            )
        return dataclasses.replace(self, args=args)

    def hoist(self, t, y: PyTree[Array]) -> "DrivingFields":
        """The same fields, with arrays that plain functions close over as leaves, so
        that they can be differentiated and returned from compiled functions. Callables
        that are PyTrees (Equinox modules) are left as they are."""

        def convert(function):
            if isinstance(function, eqx.Module | jtu.Partial):
                return function
            return eqx.filter_closure_convert(function, *self.arguments(t, y))

        is_field = lambda x: not isinstance(x, tuple)  # noqa: E731
        chosen = jtu.tree_map(convert, self.fields, is_leaf=is_field)
        return dataclasses.replace(self, fields=chosen)

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
    """The value of a field as an array of the dtype of the state."""
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


def takes_time(field: Callable, name: str = "fields") -> bool:
    """Whether the callable has the form `(t, y, args)`; if not, it has the form `(y)`,
    or is refused."""
    try:
        parameters = inspect.signature(field).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = [
        p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    required = [p.name for p in positional if p.default is p.empty]
    if len(required) <= 1:
        return False
    if len(required) > 3 or len(positional) < 3:
        raise TypeError(
            f"`{name}` must be called as `{name}(y)` or `{name}(t, y, args)`; got one "
            f"that needs ({', '.join(required)}). Take `args` even if it is not used."
        )
    return True


def as_driving_fields(
    fields: Callable | Sequence[Callable],
    number: int,
    dim: int,
    time_dependent: bool | None = None,
    args: PyTree = None,
) -> DrivingFields:
    """The user's fields as [`DrivingFields`][] of `number` channels, each with `dim`
    frame coordinates. By default they are called as `fields(t, y, args)` if they have
    more than one required positional argument."""
    if isinstance(fields, DrivingFields):
        return fields if args is None else fields.bind(args)
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
        timed = [takes_time(field) for field in each]
        time_dependent = timed[0]
        if any(one != time_dependent for one in timed):
            raise TypeError(
                "some fields take `(y)` and some `(t, y, args)`; give all the same "
                "arguments."
            )
    chosen: Any = fields  # one callable, or a tuple of them
    driving = DrivingFields(chosen, number, dim, time_dependent)  # pyright: ignore
    return driving if args is None else driving.bind(args)

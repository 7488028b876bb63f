"""Driving fields in the forms users write them, behind one interface."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree


_LONG_ROW = 16  # of shorter rows one product for all channels is taken


class DrivingFields(eqx.Module):
    r"""The `d` driving fields $V_1, \dots, V_d$ in frame coordinates.

    Three forms are understood.

    - A callable `fields(y)` (or `fields(t, y)`) that returns all channels at once,
      shape `(d, dim)`.
    - A list or tuple of `d` callables, each returning `(dim,)`.
    - A callable as in the first form with methods `features(y)` (or `features(t, y)`)
      and `channel(i, features)`, row `i` being `channel(i, features(y))`: for a neural
      network the last hidden layer, and a part of the last layer. Window fields
      differentiate channel `i` along its own direction only; what all channels share
      is then computed once, and of the rest only row `i`. A method
      `head(features)` that returns all rows at once is used where there is one.

    If the callable has an attribute `many_directions` that is true, several directions
    are pushed through it at once, under `vmap`. Fields made of `arborax.models.MLP` are
    fastest so; other code is, on a CPU, if directions are taken one after another.
    """

    fields: Callable | tuple[Callable, ...]
    number: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    time_dependent: bool = eqx.field(static=True)

    @property
    def by_channel(self) -> bool:
        """Whether rows are taken one by one: they can be had for less than all of them,
        and are long enough for that to be faster."""
        if isinstance(self.fields, tuple):
            return True
        return self.has_features and self.dim >= _LONG_ROW

    @property
    def has_features(self) -> bool:
        """Whether the fields are given with `features` and `channel`."""
        return all(hasattr(self.fields, name) for name in ("features", "channel"))

    @property
    def many_directions(self) -> bool:
        """Whether derivatives along several directions are best taken at once."""
        return bool(getattr(self.fields, "many_directions", False))

    def __call__(self, t, y: PyTree[Array]) -> Float[Array, "channels dim"]:
        """All fields at `y`."""
        if isinstance(self.fields, tuple):
            given = self.features(t, y)
            return jnp.stack([self.channel(i, given) for i in range(self.number)])
        args = (t, y) if self.time_dependent else (y,)
        out = jnp.asarray(self.fields(*args))
        if out.shape != (self.number, self.dim):
            raise ValueError(
                f"`fields` must return one row for each of the {self.number} channels "
                f"of the control, in frame coordinates: shape "
                f"{(self.number, self.dim)}, got {out.shape}."
            )
        return out

    def features(self, t, y: PyTree[Array]) -> PyTree[Array]:
        """What all channels share at `y`."""
        if isinstance(self.fields, tuple):
            return (t, y) if self.time_dependent else (y,)
        fields: Any = self.fields
        return fields.features(t, y) if self.time_dependent else fields.features(y)

    def channel(self, i: int, features: PyTree[Array]) -> Float[Array, " dim"]:
        """Field number `i` from the features."""
        if isinstance(self.fields, tuple):
            out, name = self.fields[i](*features), f"field number {i}"
        else:
            fields: Any = self.fields
            out, name = fields.channel(i, features), "`fields.channel`"
        out = jnp.asarray(out)
        if out.shape != (self.dim,):
            raise ValueError(
                f"{name} must return frame coordinates of shape ({self.dim},), got "
                f"{out.shape}."
            )
        return out

    def head(self, features: PyTree[Array]) -> Float[Array, "channels dim"]:
        """All fields from the features."""
        fields: Any = self.fields
        if hasattr(fields, "head"):
            return fields.head(features)
        return jnp.stack([self.channel(i, features) for i in range(self.number)])


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

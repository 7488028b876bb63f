"""Drift and diffusion of a stochastic equation as driving fields."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float, PyTree

from .._values import shown
from ..geometry import AbstractGeometry
from ..lifts import takes_time


class Equation(eqx.Module):
    """The fields `(V_0, V_1, .., V_d)` for the driver `(t, W_1, .., W_d)`.

    - `drift`, `diffusion`: the user's callables.
    - `timed`: whether each has the form `(t, y, args)`.
    - `geometry`: where the state lives.
    - `noise`: number `d` of Brownian motions.
    - `diagonal`: whether the diffusion is given by its diagonal.
    - `corrected`: whether the drift is that of the Stratonovich equation with the same
        solution, $V_0 - \\frac12 \\sum_i \\nabla_{V_i} V_i$.
    """

    drift: Callable
    diffusion: Callable
    timed: tuple[bool, bool] = eqx.field(static=True)
    geometry: AbstractGeometry = eqx.field(static=True)
    noise: int = eqx.field(static=True)
    diagonal: bool = eqx.field(static=True)
    corrected: bool = eqx.field(static=True)

    def __call__(
        self, t: Array, y: PyTree[Array], args: PyTree
    ) -> Float[Array, "fields dim"]:
        dtype = jtu.tree_leaves(y)[0].dtype

        def columns(z) -> Float[Array, "noise dim"]:
            value = jnp.asarray(call(self.diffusion, self.timed[1], t, z, args), dtype)
            return jnp.diag(value) if self.diagonal else value.T

        v = columns(y)
        drift = jnp.asarray(call(self.drift, self.timed[0], t, y, args), dtype)
        drift = jnp.broadcast_to(drift, v.shape[1:])
        if self.corrected:
            for i in range(self.noise):
                along = lambda z, i=i: columns(z)[i]  # noqa: E731
                drift = drift - self.geometry.covariant_derivative(along, y, v[i]) / 2
        return jnp.concatenate([drift[None], v])


def call(function: Callable, timed: bool, t, y, args) -> Any:
    """The value of `function(t, y, args)` or `function(y)`."""
    return function(t, y, args) if timed else function(y)


def read_equation(
    drift: Any,
    diffusion: Any,
    geometry: AbstractGeometry,
    t: Array,
    y: PyTree[Array],
    args: PyTree,
    corrected: bool,
) -> Equation:
    """The equation, if both parts are callables that return the right shapes."""
    for name, given in (("drift", drift), ("diffusion", diffusion)):
        if not callable(given):
            raise TypeError(
                f"`{name}` must be a callable `{name}(t, y, args)` or `{name}(y)`, got "
                f"{shown(given)}."
            )
    timed = takes_time(drift, "drift"), takes_time(diffusion, "diffusion")
    if args is not None and not any(timed):
        raise TypeError(
            "`args` was given, but `drift(y)` and `diffusion(y)` cannot see it. Write "
            "them as `drift(t, y, args)`."
        )
    dim = geometry.dim
    shapes = []
    for name, function, with_time in zip(
        ("drift", "diffusion"), (drift, diffusion), timed
    ):
        value = jax.eval_shape(lambda f=function, w=with_time: call(f, w, t, y, args))
        if not hasattr(value, "shape"):
            raise TypeError(
                f"`{name}` must return one array, got {shown(value)}. Stack lists by "
                "`jnp.stack`."
            )
        if jnp.issubdtype(value.dtype, jnp.complexfloating):
            raise TypeError(f"`{name}` must return real numbers, got {value.dtype}.")
        shapes.append(value.shape)
    if shapes[0] not in ((dim,), ()):
        raise ValueError(
            f"`drift` must return shape ({dim},), the frame coordinates on {geometry}, "
            f"or one number for all; got {shapes[0]}."
        )
    if shapes[1] == ():
        raise ValueError(
            f"`diffusion` returns a number. Write `jnp.full({dim}, g)` for one "
            f"Brownian motion per coordinate, `jnp.full(({dim}, 1), g)` for one in all."
        )
    diagonal = shapes[1] == (dim,)
    if not diagonal and (
        len(shapes[1]) != 2 or shapes[1][0] != dim or not shapes[1][1]
    ):
        raise ValueError(
            f"`diffusion` must return ({dim}, d), one column per Brownian motion, or "
            f"({dim},), a diagonal with one Brownian motion per coordinate; got "
            f"{shapes[1]}. For one Brownian motion in all write `g[:, None]`."
        )
    noise = dim if diagonal else shapes[1][1]
    return Equation(drift, diffusion, timed, geometry, noise, diagonal, corrected)

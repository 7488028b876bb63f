"""Shapes and dtypes of arguments, refused before JAX meets them."""

import functools as ft
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.tree_util as jtu

from .._inputs import as_key
from .._values import shown


# The kinds of arguments of each method of a geometry, in order.
METHODS = {
    "frame": ("point", "coordinates"),
    "coordinates": ("point", "tangent"),
    "generator": ("point", "coordinates"),
    "act": ("generator", "point"),
    "fundamental": ("generator", "point"),
    "lie_bracket": ("generator", "generator"),
    "exp": ("point", "coordinates"),
    "log": ("point", "point"),
    "distance": ("point", "point"),
    "christoffel": ("point", "coordinates", "coordinates"),
    "christoffel_sum": ("point", "matrix"),
    "turning": ("point", "matrix"),
    "bracket": ("point", "coordinates", "coordinates"),
    "belongs": ("point",),
    "random_point": ("key",),
}


def check_methods(cls: type) -> None:
    """Make the methods of a geometry refuse arguments of the wrong shape."""
    for name, kinds in METHODS.items():
        method = cls.__dict__.get(name)
        abstract = getattr(method, "__isabstractmethod__", False)
        if inspect.isfunction(method) and not abstract:
            setattr(cls, name, _checked(method, kinds))


def _checked(method: Callable, kinds: tuple[str, ...]) -> Callable:
    names = list(inspect.signature(method).parameters)[1:]
    kind_of = dict(zip(names, kinds))

    @ft.wraps(method)
    def checked(self, *args, **kwargs):
        for name, value in [*zip(names, args), *kwargs.items()]:
            if name in kind_of:
                _check_argument(self, name, kind_of[name], value)
        return method(self, *args, **kwargs)

    return checked


def _check_argument(geometry: Any, name: str, kind: str, value: Any) -> None:
    if kind == "key":
        as_key(value)
    elif kind in ("point", "tangent"):
        what = f"a {kind} of {named(geometry)}"
        check_arrays(name, value, geometry.point_shape, what)
    elif kind == "generator":
        what = f"a generator of {named(geometry)}"
        check_arrays(name, value, _generator_shape(geometry), what)
    else:
        shape = (geometry.dim,) * (2 if kind == "matrix" else 1)
        check_arrays(name, value, shape, f"frame coordinates of {named(geometry)}")


def named(geometry: Any) -> str:
    """The geometry in an error message: products print at length."""
    text = " ".join(str(geometry).split())
    return text if len(text) <= 80 else f"this {type(geometry).__name__}"


def check_arrays(name: str, value: Any, shape: Any, what: str) -> None:
    """Refuse what is not a floating-point array of this shape, or a tuple of them."""
    # Compared as trees of shapes, so the usual case costs little.
    leaves = jtu.tree_leaves(value, is_leaf=lambda x: x is None)
    for leaf in leaves:
        if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
            raise TypeError(
                f"`{name}` must be {what}, of shape {shown(shape)}; got "
                f"{shown(value)}. Convert it by `jnp.asarray`."
            )
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            raise TypeError(
                f"`{name}` must be floating point, got {leaf.dtype}. Cast it first, "
                f"for instance by `{name}.astype(float)`."
            )
    got = jtu.tree_map(lambda leaf: tuple(leaf.shape), value)
    if got != shape:
        shape, got = shown(shape), shown(got)
        raise ValueError(
            f"`{name}`: {what} has shape {shape}, got {got}. For a batch use "
            "`jax.vmap`."
        )


@ft.lru_cache(maxsize=256)
def _generator_shape(geometry: Any) -> Any:
    """Shapes of the arrays of an algebra element, from those of a point."""
    is_shape = lambda x: all(isinstance(n, int) for n in x)  # noqa: E731
    array = lambda x: jax.ShapeDtypeStruct(x, jnp.float32)  # noqa: E731
    point = jtu.tree_map(array, geometry.point_shape, is_leaf=is_shape)
    out = jax.eval_shape(geometry.generator, point, array((geometry.dim,)))
    return jtu.tree_map(lambda leaf: tuple(leaf.shape), out)

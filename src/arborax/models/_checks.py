"""Checks of the options of models and of their paths."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._inputs import as_count, as_floating, as_key, as_real_dtype
from .._values import is_concrete, shown
from ..geometry import AbstractGeometry, Euclidean
from ..paths import SampledPath


def as_sizes(**sizes: Any) -> tuple[int, ...]:
    """Sizes as Python integers, in their order: a model holds them as static fields.
    Depths may be zero, other sizes are at least one."""
    return tuple(
        as_count(name, size, 0 if name.endswith("depth") else 1)
        for name, size in sizes.items()
    )


def check_options(key: Any, dtype: Any, *activations: Any) -> None:
    """Refuse a key, a dtype or activations that cannot build a model."""
    as_key(key)
    if dtype is not None:
        as_real_dtype(dtype)
    for function in activations:
        _check_activation(function)


def _check_activation(function: Any) -> None:
    """An activation is a function of one number with one real number as its value."""
    try:
        number = jax.ShapeDtypeStruct((), jnp.zeros(()).dtype)
        out = jax.eval_shape(function, number)
        fits = out.shape == () and jnp.issubdtype(out.dtype, jnp.floating)
    except (TypeError, ValueError, IndexError, AttributeError):
        fits = False
    if not fits:
        raise TypeError(
            "an activation must be a function of one real number that gives one real "
            f"number, such as `jax.nn.softplus`, got {shown(function)}."
        )


def as_output(output: Any, name: str = "output") -> AbstractGeometry:
    """The manifold of the outputs; a number stands for Euclidean space."""
    if isinstance(output, AbstractGeometry):
        return output
    if isinstance(output, bool) or not isinstance(output, int | np.integer):
        raise TypeError(
            f"`{name}` must be a geometry such as `SO(3)` or a number of outputs, got "
            f"{shown(output)}."
        )
    return Euclidean(as_count(name, output))


def check_path(path: Any, channels: int | None) -> SampledPath:
    """The path without gaps, if it is one path with this number of channels."""
    check_channels(path, channels)
    if path.batch_shape:
        raise ValueError(
            f"a model takes one path, got batch shape {path.batch_shape}. Use "
            "`model.predict(paths)`, or `jax.vmap`."
        )
    return path.filled()


def check_channels(path: Any, channels: int | None) -> None:
    """Refuse all but paths and batches of paths with this number of channels."""
    if not isinstance(path, SampledPath):
        raise TypeError(
            f"a model takes an `arborax.SampledPath`, got {type(path).__name__}."
        )
    if channels not in (None, path.dim):
        raise ValueError(
            f"the model was built for {channels} channels, time included, but the path "
            f"has {path.dim}. Is `arborax.add_time` missing?"
        )


def as_sample(name: str, x: Any, shape: tuple[int, ...], model: Any) -> Array:
    """One sample or bracket of a stream, in the wider dtype of it and the weights."""
    x = as_floating(name, x)
    if x.shape != shape:
        raise ValueError(
            f"`{name}` must have shape {shape}, got {x.shape}. Streams take one sample "
            "at a time; use `jax.vmap` for batches."
        )
    if is_concrete(x) and not np.all(np.isfinite(x)):
        raise ValueError(
            f"`{name}` holds NaN or infinity. Carry the last value forward instead."
        )
    return x.astype(_wide(x.dtype, model))


def promoted(path: SampledPath, model: Any) -> SampledPath:
    """The path in the wider dtype of it and the weights."""
    dtype = _wide(path.xs.dtype, model)
    if dtype == path.xs.dtype:
        return path
    xs, brackets, ticks = (
        None if values is None else values.astype(dtype)
        for values in (path.xs, path.brackets, path.ticks)
    )
    return dataclasses.replace(path, xs=xs, brackets=brackets, ticks=ticks, check=False)


def _wide(dtype: Any, model: Any) -> Any:
    leaves = jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))
    return jnp.result_type(dtype, *{leaf.dtype for leaf in leaves})


def finite(outputs: Any) -> Any:
    """`outputs`, if they are finite or not known yet."""
    if is_concrete(outputs):
        leaves = jax.tree.leaves(outputs)
        if not all(np.all(np.isfinite(leaf)) for leaf in leaves):
            raise ValueError(
                "the outputs of the model are not finite: the weights are not, or the "
                "values of the path are too large for its dtype. Scale the path."
            )
    return outputs

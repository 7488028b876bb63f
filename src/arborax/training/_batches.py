"""Where batches come from: arrays in memory, shuffled by epoch, or a function."""

import functools as ft
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np


def is_array(x: Any) -> bool:
    """Whether `x` is an array, of NumPy or JAX."""
    return eqx.is_array(x) or isinstance(x, np.ndarray)


def _is_list_of_numbers(x: Any) -> bool:
    return isinstance(x, list) and bool(x) and isinstance(x[0], int | float)


def leading_size(data: Any, name: str = "data") -> int:
    """The common length of the leading axis of all arrays of a pytree."""
    lists = jax.tree.leaves(data, is_leaf=_is_list_of_numbers)
    if any(_is_list_of_numbers(x) for x in lists):
        raise ValueError(f"{name} holds a list of numbers; give `np.asarray` of it.")
    for path, x in jax.tree_util.tree_leaves_with_path(data):
        if isinstance(x, np.ndarray) and x.dtype.kind in "OSUmM":
            raise ValueError(
                f"{name}{jax.tree_util.keystr(path)} has dtype {x.dtype}; give numbers."
            )
    sizes = {
        jax.tree_util.keystr(path): np.shape(x)[:1]
        for path, x in jax.tree_util.tree_leaves_with_path(data)
        if is_array(x)
    }
    if not sizes:
        raise ValueError(
            f"{name} holds no arrays; give a pytree of NumPy or JAX arrays."
        )
    if len(set(sizes.values())) != 1 or () in sizes.values():
        raise ValueError(
            f"all arrays of {name} must share the length of their leading axis, got "
            f"{ {k: v[0] if v else 'a scalar' for k, v in sizes.items()} }."
        )
    (size,) = next(iter(sizes.values()))
    if size == 0:
        raise ValueError(f"{name} is empty: the leading axis has length 0.")
    return size


_fold = jax.jit(jr.fold_in)


@ft.partial(jax.jit, static_argnums=2)
def _order(key: Any, epoch: Any, samples: int) -> Any:
    return jr.permutation(jr.fold_in(key, epoch), samples)


@jax.jit
def _take(x: Any, rows: Any) -> Any:
    return jax.tree.map(lambda a: jnp.take(a, rows, axis=0), x)


def take_rows(data: Any, rows: np.ndarray | slice) -> Any:
    """Rows of every array of a pytree; NumPy arrays stay on the host."""
    arrays, rest = eqx.partition(data, is_array)
    if isinstance(rows, slice):
        picked = jax.tree.map(lambda x: x[rows], arrays)
    else:
        host = jax.tree.map(
            lambda x: x[rows] if isinstance(x, np.ndarray) else None, arrays
        )
        device, _ = eqx.partition(arrays, lambda x: not isinstance(x, np.ndarray))
        picked = eqx.combine(host, _take(device, rows))
    return eqx.combine(picked, rest)


class InMemory:
    """Shuffled batches of arrays held in memory; the last partial batch is dropped.

    The order of epoch `e` is `jr.permutation(fold_in(key, e), samples)`: a function of
    the key and the step alone, so that a resumed run sees the same batches.
    """

    def __init__(self, data: Any, batch_size: int | None, key: jax.Array):
        self.data = data
        self.samples = leading_size(data)
        self.batch_size = self.samples if batch_size is None else batch_size
        if not 1 <= self.batch_size <= self.samples:
            raise ValueError(
                f"batch_size must be between 1 and the number of samples "
                f"{self.samples}, got {self.batch_size}."
            )
        self.steps_per_epoch = self.samples // self.batch_size
        self._key = key
        self._cache: tuple[int, np.ndarray] | None = None

    def __call__(self, step: int) -> Any:
        epoch, position = divmod(step, self.steps_per_epoch)
        if self._cache is None or self._cache[0] != epoch:
            self._cache = (epoch, np.asarray(_order(self._key, epoch, self.samples)))
        first = position * self.batch_size
        rows = self._cache[1][first : first + self.batch_size]
        return take_rows(self.data, rows)


class Stream:
    """Batches made by a function `data(key, step)` of the key of the step."""

    samples = None
    steps_per_epoch = None

    def __init__(self, data: Callable[[Any, int], Any], key: jax.Array):
        self._data = data
        self._key = key

    def __call__(self, step: int) -> Any:
        return self._data(_fold(self._key, step), step)


def make_source(data: Any, batch_size: int | None, key: jax.Array) -> Any:
    """`Stream` for a function, `InMemory` for a pytree of arrays."""
    if callable(data) and not isinstance(data, eqx.Module):
        if batch_size is not None:
            raise ValueError(
                "batch_size is for arrays in memory; a function `data(key, step)` "
                "decides the size of its batches. Leave it out."
            )
        return Stream(data, key)
    return InMemory(data, batch_size, key)

"""`save` and `load`: a model in one file, refused if it is not exactly that model."""

import dataclasses
import importlib.metadata
import inspect
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from .._values import shown
from ._container import (
    check_names,
    decode,
    decode_header,
    encode,
    FileFormatError,
    named_leaves,
    write_atomically,
)
from ._distributed import is_key


_SCALARS = (bool, int, float, complex)
_ARRAYS = (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct)


def _stable(value: Any) -> Any:
    """A JSON-able description of a static field, `None` if there is no stable one."""
    if value is None or isinstance(value, bool | int | float | str):
        return [type(value).__name__, value]
    if isinstance(value, tuple | list):
        return [type(value).__name__, [_stable(v) for v in value]]
    if isinstance(value, np.dtype) or (isinstance(value, type)):
        return ["type", getattr(value, "__name__", str(value))]
    if inspect.isroutine(value) or hasattr(value, "__qualname__"):
        return ["function", getattr(value, "__name__", "")]
    text = repr(value)
    if re.search(r"0x[0-9a-fA-F]+", text) or len(text) > 1000:
        return ["object", type(value).__name__]
    return ["object", type(value).__name__, text]


def describe(tree: Any) -> dict[str, Any]:
    """Describes what a pytree holds besides arrays: module classes and static fields.

    Equal arrays in a model of another algebra, depth or activation are another model;
    `load` compares these descriptions so that such a file is refused.

    **Returns:**

    A JSON-able dictionary from the path of each `eqx.Module` (and of each leaf that is
    neither an array nor a number) to its class and static fields.
    """
    found: dict[str, Any] = {}

    def visit(node: Any, path: str) -> None:
        if isinstance(node, eqx.Module):
            record = {"class": type(node).__name__}
            for field in dataclasses.fields(node):
                value = getattr(node, field.name, None)
                if field.metadata.get("static", False):
                    record[field.name] = _stable(value)
                else:
                    visit(value, f"{path}.{field.name}")
            found[path] = record
        elif isinstance(node, tuple | list):
            for i, item in enumerate(node):
                visit(item, f"{path}[{i}]")
        elif isinstance(node, dict):
            for name, item in node.items():
                visit(item, f"{path}[{name!r}]")
        elif callable(node):
            found[path] = {"leaf": _stable(node)}

    visit(tree, "")
    return found


def _pack(value: Any, where: str) -> Any:
    """Hyperparameters to JSON; tuples are marked so that they come back as tuples."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_pack(v, where) for v in value]
    if isinstance(value, tuple):
        return {"__tuple__": [_pack(v, where) for v in value]}
    if isinstance(value, Mapping) and all(isinstance(k, str) for k in value):
        return {k: _pack(v, f"{where}[{k!r}]") for k, v in value.items()}
    raise TypeError(
        f"{where} is a {type(value).__name__}, which JSON cannot hold. Save plain "
        "numbers, strings, lists, tuples and dictionaries, and build objects from them "
        "in the make-function given to `load`."
    )


def _unpack(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpack(v) for v in value]
    if isinstance(value, dict):
        if set(value) == {"__tuple__"}:
            return tuple(_unpack(v) for v in value["__tuple__"])
        return {k: _unpack(v) for k, v in value.items()}
    return value


def _partition(model: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """Array leaves, Python-number leaves and the implementations of typed keys."""
    arrays, numbers, keys = {}, {}, {}
    for name, leaf in named_leaves(model).items():
        if is_key(leaf):
            keys[name] = str(jr.key_impl(leaf))
            arrays[name] = jr.key_data(leaf)
        elif isinstance(leaf, _ARRAYS):
            arrays[name] = leaf
        elif isinstance(leaf, complex):
            numbers[name] = ["complex", [leaf.real, leaf.imag]]
        elif isinstance(leaf, _SCALARS):
            numbers[name] = [type(leaf).__name__, leaf]
    return arrays, numbers, keys


def save(
    path: str | os.PathLike,
    model: Any,
    hyperparameters: Mapping[str, Any] | None = None,
) -> None:
    """Saves a model in one file: JSON header, then the raw bytes of its arrays.

    The file appears whole or not at all (written beside, flushed, renamed). Nothing is
    pickled: functions and static fields are described, not stored, and are rebuilt by
    whoever loads.

    **Arguments:**

    - `path`: the file to write; an existing one is replaced.
    - `model`: any pytree, normally an `eqx.Module`. Arrays keep their dtype bit by bit.
    - `hyperparameters`: what is needed to build the model again: numbers, strings,
        lists, tuples, dictionaries.

    !!! example

        ```python
        abx.save("model.abx", model, dict(width=32, depth=2))
        model = abx.load("model.abx", make)      # make(width=32, depth=2) -> model
        ```
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"`path` must be the path of a file, got {shown(path)}.")
    if not isinstance(hyperparameters, Mapping | None):
        raise TypeError(
            f"`hyperparameters` must be a dictionary, got {shown(hyperparameters)}."
        )
    arrays, numbers, keys = _partition(model)
    meta = {
        "kind": "model",
        "arborax": importlib.metadata.version("arborax"),
        "class": type(model).__name__,
        "numbers": numbers,
        "keys": keys,
        "structure": describe(model),
        "hyperparameters": _pack(dict(hyperparameters or {}), "hyperparameters"),
    }
    write_atomically(path, encode(arrays, meta))


def read_header(path: str | os.PathLike) -> dict[str, Any]:
    """Reads what a file says of itself, without building a model.

    **Returns:**

    A dictionary with `class`, `hyperparameters`, `arborax` (the version that wrote it)
    and `arrays` (name to `(shape, dtype)`).
    """
    with open(path, "rb") as file:
        header, _ = decode_header(file.read(), str(path))
    meta = header["meta"]
    return {
        "class": meta.get("class"),
        "hyperparameters": _unpack(meta.get("hyperparameters", {})),
        "arborax": meta.get("arborax"),
        "arrays": {
            e["name"]: (tuple(e["shape"]), e["dtype"]) for e in header["arrays"]
        },
    }


def _build(like: Any, registry: Any, meta: dict, source: str) -> Any:
    hyperparameters = _unpack(meta["hyperparameters"])
    if like is None and registry is not None:
        like = registry.get(meta["class"])
        if like is None:
            raise ValueError(
                f"{source} holds a {meta['class']!r}; the registry knows only "
                f"{sorted(registry)}."
            )
    if like is None:
        raise ValueError(
            f"{source} holds a {meta['class']!r} with hyperparameters "
            f"{hyperparameters}: pass `like`, a model of the same structure or a "
            "function that builds one from the hyperparameters, or a `registry`."
        )
    if isinstance(like, eqx.Module) or not callable(like):
        return like
    parameters = inspect.signature(like).parameters
    if "key" in parameters and "key" not in hyperparameters:
        hyperparameters["key"] = jr.PRNGKey(0)
    try:
        return like(**hyperparameters)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`like` builds no model from the hyperparameters of {source}, "
            f"{shown(hyperparameters)}: see the error above. Pass the function or "
            "class that the file was made with."
        ) from error


def _check_structure(saved: dict, ours: dict, source: str) -> None:
    check_names(ours, saved, source)
    for path, record in saved.items():
        # A field the class gained since the file was written is not compared.
        differing = [
            f"{name}: file {value}, model {ours[path].get(name)}"
            for name, value in record.items()
            if value != ours[path].get(name)
        ]
        if differing:
            told = "; ".join(differing)[:120]
            raise FileFormatError(
                f"{source} does not fit the model at {path or 'the root'}: {told}. "
                "Build the model with the hyperparameters it was saved with."
            )


def _fill(like: Any, arrays: dict, meta: dict, source: str) -> Any:
    own_arrays, own_numbers, own_keys = _partition(like)
    check_names(own_arrays, arrays, source)
    check_names(own_numbers, meta["numbers"], source)
    _check_structure(meta["structure"], describe(like), source)
    values: dict[str, Any] = {}
    for name, x in arrays.items():
        own = own_arrays[name]
        if tuple(own.shape) != x.shape or own.dtype != x.dtype:
            raise FileFormatError(
                f"{source} does not fit the model: {name} is {x.dtype}{list(x.shape)} "
                f"in the file and {own.dtype}{list(own.shape)} in the model. "
                "Build the model with the same sizes and dtype (64-bit arrays need "
                "`jax_enable_x64`)."
            )
        if meta["keys"].get(name) != own_keys.get(name):
            raise FileFormatError(
                f"{source} does not fit the model: {name} is a key of "
                f"{meta['keys'].get(name)} in the file, {own_keys.get(name)} in the "
                "model."
            )
        if name in own_keys:
            values[name] = jr.wrap_key_data(jnp.asarray(x), impl=own_keys[name])
        elif isinstance(own, np.ndarray):
            values[name] = x.copy()
        elif isinstance(own, np.generic):
            values[name] = x[()]
        else:
            values[name] = jnp.array(x)
    for name, (kind, value) in meta["numbers"].items():
        if kind != own_numbers[name][0]:
            raise FileFormatError(
                f"{source} does not fit the model: {name} is a {kind} in the file and "
                f"a {own_numbers[name][0]} in the model."
            )
        values[name] = complex(*value) if kind == "complex" else value
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: values.get(jax.tree_util.keystr(path), leaf), like
    )


def load(
    path: str | os.PathLike,
    like: Any = None,
    *,
    registry: Mapping[str, Callable[..., Any]] | None = None,
) -> Any:
    """Loads a model saved by `abx.save`.

    **Arguments:**

    - `path`: the file.
    - `like`: a model of the same structure, whose arrays are replaced (it may come from
        `eqx.filter_eval_shape`); or a function (or class) called with the saved
        hyperparameters to build one. If it has an argument `key` that was not saved,
        it gets an arbitrary one: all arrays are replaced.
    - `registry`: instead of `like`, a mapping from class names to such functions.

    **Returns:**

    The model. Raises `FileFormatError` (a `ValueError`) if the file is foreign,
    damaged, truncated or of a newer format, or if leaves, shapes, dtypes, module
    classes or static fields differ from the model that was saved.
    """
    source = str(path)
    with open(path, "rb") as file:
        arrays, meta = decode(file.read(), source)
    if not isinstance(meta, dict) or meta.get("kind") != "model":
        raise FileFormatError(
            f"{source} is an arborax file but holds no model (a training checkpoint "
            "is read by `abx.fit(..., checkpoint=folder)`)."
        )
    return _fill(_build(like, registry, meta, source), arrays, meta, source)

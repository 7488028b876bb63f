"""A model as JSON and named arrays, and back: classes and functions by their names."""

import dataclasses
import functools as ft
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from .._values import shown
from ._container import FileFormatError
from ._distributed import is_key
from ._registry import known


class Writer:
    """`describe` turns a value into JSON and collects its `arrays` by their paths.

    `None`, booleans, integers, finite floats, strings and lists stand for themselves;
    other values are a dictionary with one entry, the tag and its content:

    | tag | content |
    |---|---|
    | `tuple` | items |
    | `dict` | pairs of key and value |
    | `class` | name, fields |
    | `name` | of a class or function |
    | `partial` | function, positional arguments, keyword arguments |
    | `array`, `numpy`, `scalar` | path of an array of JAX or NumPy, or of a number |
    | `key` | path of the data of a typed key, implementation |
    | `float`, `complex`, `dtype` | their text |
    """

    def __init__(self):
        self.arrays: dict[str, Any] = {}
        self._names: dict[Any, str] = {x: name for name, x in known().items()}

    def describe(self, value: Any, path: str = "") -> Any:
        """The JSON of a value; `path` names it in messages and among the arrays."""
        if isinstance(value, jax.Array | np.ndarray | np.generic):
            return self._describe_array(value, path)
        if type(value) in (list, tuple):
            items = [self.describe(v, f"{path}[{i}]") for i, v in enumerate(value)]
            return items if type(value) is list else {"tuple": items}
        if type(value) is float and not math.isfinite(value):
            return {"float": str(value)}
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) is dict:
            where = [f"{path}[{key!r}]" for key in value]
            pairs = zip(where, value.items())
            return {"dict": [[self.describe(x, w) for x in pair] for w, pair in pairs]}
        if type(value) is complex:
            return {"complex": str(value)}
        if isinstance(value, np.dtype):
            return {"dtype": value.name}
        if isinstance(value, ft.partial):
            parts = [value.func, value.args, value.keywords]
            return {"partial": [self.describe(part, path) for part in parts]}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._describe_fields(value, path)
        if callable(value) and (name := self._names.get(value)) is not None:
            return {"name": name}
        raise TypeError(
            f"{path or 'the model'} is {shown(value)}, which a file cannot name. "
            "Register it by `abx.register`, or use a function of `jax.nn`."
        )

    def _describe_array(self, value: Any, path: str) -> Any:
        if is_key(value):
            self.arrays[path] = jr.key_data(value)
            return {"key": [path, str(jr.key_impl(value))]}
        self.arrays[path] = value
        if isinstance(value, jax.Array):
            return {"array": path}
        return {"numpy" if isinstance(value, np.ndarray) else "scalar": path}

    def _describe_fields(self, value: Any, path: str) -> Any:
        name = self._names.get(type(value))
        if name is None:
            kind = type(value).__qualname__
            raise TypeError(
                f"{path or 'the model'} is a {kind}, a class that files do not know. "
                f"Register it where it is defined: `@abx.register`, `class {kind}`."
            )
        fields = {
            field.name: self.describe(
                getattr(value, field.name), f"{path}.{field.name}"
            )
            for field in dataclasses.fields(value)
        }
        return {"class": [name, fields]}


class Reader:
    """`build` is the inverse of `Writer.describe`."""

    def __init__(self, arrays: dict[str, np.ndarray], source: str):
        self._arrays, self._source, self._known = arrays, source, known()

    def build(self, spec: Any) -> Any:
        """The value that was described."""
        if isinstance(spec, list):
            return [self.build(item) for item in spec]
        if not isinstance(spec, dict):
            return spec
        ((tag, content),) = spec.items()
        match tag:
            case "tuple":
                return tuple(self.build(content))
            case "dict":
                return {self.build(key): self.build(value) for key, value in content}
            case "class":
                return self._build_object(*content)
            case "name":
                return self._look_up(content)
            case "partial":
                function, args, keywords = self.build(content)
                return ft.partial(function, *args, **keywords)
            case "array":
                return self._as_jax(content)
            case "numpy":
                return self._arrays[content].copy()
            case "scalar":
                return self._arrays[content][()]
            case "key":
                return jr.wrap_key_data(self._as_jax(content[0]), impl=content[1])
            case "float" | "complex":
                return {"float": float, "complex": complex}[tag](content)
            case "dtype":
                return jnp.dtype(content)
        raise FileFormatError(f"{self._source} has an unknown tag, {shown(tag)}.")

    def _look_up(self, name: str) -> Any:
        if name not in self._known:
            raise FileFormatError(
                f"{self._source} needs {name!r}, which is not known here. Import the "
                "package that defines it, and register it by `abx.register`."
            )
        return self._known[name]

    def _as_jax(self, path: str) -> jax.Array:
        stored = self._arrays[path]
        array = jnp.array(stored)
        if array.dtype != stored.dtype:
            raise FileFormatError(
                f"{self._source} holds {stored.dtype} in {path}, which needs "
                "`jax.config.update('jax_enable_x64', True)`."
            )
        return array

    def _build_object(self, name: str, described: dict[str, Any]) -> Any:
        kind = self._look_up(name)
        fields = {f.name: f for f in dataclasses.fields(kind)}
        values = {field: self.build(spec) for field, spec in described.items()}
        for field in fields.values():
            if field.name not in values and field.default is not dataclasses.MISSING:
                values[field.name] = field.default
        if values.keys() != fields.keys():
            lacking = sorted(fields.keys() - values.keys())
            extra = sorted(values.keys() - fields.keys())
            raise FileFormatError(
                f"{self._source} holds another version of {name}: it lacks the fields "
                f"{shown(lacking)} and has {shown(extra)}."
            )
        if not issubclass(kind, eqx.Module):
            return kind(**values)
        # As Equinox itself rebuilds a module: its constructor takes other arguments.
        built = object.__new__(kind)
        for field, value in values.items():
            object.__setattr__(built, field, value)
        return built

"""Classes and functions that files may name, since a file holds no code."""

import dataclasses
import inspect
import sys
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .. import models
from .._values import shown


_packages = {"arborax"}
_registered: dict[str, Any] = {}
_OF_NUMPY = ("abs", "arctan", "cos", "exp", "expm1", "log1p", "sin", "square", "tanh")


def register(target: Any, name: str | None = None) -> Any:
    """Makes your own class or function known to [`arborax.save`][] and
    [`arborax.load`][], which rebuild a model from the names in its file.

    All classes of arborax, those of `equinox.nn`, and the functions of `jax.nn` are
    known. Register before loading, where the class is defined: as a decorator, or by a
    call.

    **Arguments:**

    - `target`: an Equinox module class (or another dataclass), a function, or the name
        of a package: its Equinox modules and frozen dataclasses become known as they
        are imported.
    - `name`: under which files know it; by default its module and name. Give one to
        a class that may move to another module.

    **Returns:**

    The target.

    !!! example

        ```python
        @abx.register
        class Damped(eqx.Module):
            rate: jax.Array
        ```
    """
    if isinstance(target, str):
        _packages.add(target)
        return target
    if not (callable(target) and hasattr(target, "__qualname__")):
        raise TypeError(
            "register a class, a function or the name of a package, got "
            f"{shown(target)}."
        )
    if isinstance(target, type) and not dataclasses.is_dataclass(target):
        raise TypeError(
            f"{target.__name__} has no fields to save: make it an `eqx.Module`."
        )
    name = _public_name(target) if name is None else name
    other = known().get(name, target)
    if other is not target and _public_name(other) != _public_name(target):
        raise ValueError(f"{name!r} is registered already, for {shown(other)}.")
    _registered[name] = target
    return target


def known() -> dict[str, Any]:
    """All names that files may use, with the classes and functions they stand for."""
    names = {f"equinox.nn.{n}": x for n, x in vars(eqx.nn).items() if _is_module(x)}
    identity = inspect.signature(eqx.nn.MLP.__init__).parameters["final_activation"]
    names["equinox.nn.identity"] = identity.default
    names |= {f"jax.nn.{n}": f for n, f in vars(jax.nn).items() if callable(f)}
    names |= {f"jax.numpy.{n}": getattr(jnp, n) for n in _OF_NUMPY}
    names["arborax.models.lipswish"] = models.lipswish
    for place, module in list(sys.modules.items()):
        if place.partition(".")[0] in _packages:
            own = [x for x in vars(module).values() if _is_module(x)]
            names |= {_public_name(x): x for x in own if x.__module__ == place}
    return names | _registered


def _is_module(x: Any) -> bool:
    """Whether it is the class of an Equinox module or of another frozen dataclass."""
    if not isinstance(x, type) or not dataclasses.is_dataclass(x):
        return False
    return issubclass(x, eqx.Module) or x.__dataclass_params__.frozen  # pyright: ignore


def _public_name(x: Any) -> str:
    """Where it is defined, without private modules: those may be renamed."""
    parts = [part for part in x.__module__.split(".") if not part.startswith("_")]
    return ".".join([*parts, x.__qualname__])

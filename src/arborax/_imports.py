"""Imports that wait: optional packages, and rooms that are imported when they are first
used (PEP 562)."""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any


def require(module: str, extra: str | None, purpose: str) -> ModuleType:
    """Imports an optional package for a `purpose`, or an `ImportError` that names the
    `extra` of arborax that brings it (`None`: the package is installed on its own)."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        target = package if extra is None else f'"arborax[{extra}]"'
        raise ImportError(
            f"{purpose} needs the optional package `{package}`, which could not be "
            f"imported ({error}). Install it with `pip install {target}`."
        ) from error


def lazy_names(
    package: str, rooms: Sequence[str], names: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package.

    **Arguments:**

    - `package`: its name.
    - `rooms`: sub-packages that are attributes of it.
    - `names`: for some of them, what the package offers as its own.
    """
    homes = {name: room for room, names in names.items() for name in names}

    def getattribute(name: str) -> Any:
        if name in rooms:
            return importlib.import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        room = importlib.import_module(f"{package}.{homes[name]}")
        value = getattr(room, name)
        setattr(sys.modules[package], name, value)
        return value

    def names_of_package() -> list[str]:
        return sorted({*vars(sys.modules[package]), *rooms, *homes})

    return getattribute, names_of_package

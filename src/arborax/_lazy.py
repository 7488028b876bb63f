"""Rooms of the package that are imported when they are first used (PEP 562)."""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any


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

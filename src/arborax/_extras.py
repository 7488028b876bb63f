"""Imports of optional packages, with a message that says what to install."""

import importlib
from types import ModuleType


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

"""Imports of optional packages, with a message that says what to install."""

import importlib
from types import ModuleType


def require(module: str, extra: str | None, purpose: str) -> ModuleType:
    """Imports an optional package, or says which extra of arborax brings it.

    **Arguments:**

    - `module`: the name to import, for example `"optax"`.
    - `extra`: the extra of the `arborax` distribution that installs it; `None` if the
        package is installed on its own.
    - `purpose`: what needs it; the subject of the error message.

    **Returns:**

    The module. Raises `ImportError` if it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        target = package if extra is None else f'"arborax[{extra}]"'
        raise ImportError(
            f"{purpose} needs the optional package `{package}`, which could not be "
            f"imported ({error}). Install it with `pip install {target}`."
        ) from error

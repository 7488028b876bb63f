"""`save` and `load`: a model in one file, rebuilt without a template."""

import importlib.metadata
import os
from typing import Any

from .._inputs import as_kind
from ._container import decode, encode, FileFormatError, write_atomically
from ._structure import Reader, Writer


def save(path: str | os.PathLike, model: Any) -> None:
    """Saves a model in one file: a JSON header, then the raw bytes of its arrays.

    The header describes the model completely and names its classes and functions: no
    code, no pickle. Register your own classes and functions first
    ([`arborax.register`][]). The file is written atomically.

    **Arguments:**

    - `path`: the file to write; an existing one is replaced.
    - `model`: an `eqx.Module`, or lists, tuples and dictionaries of modules, arrays,
        numbers and strings. Arrays are stored exactly.

    !!! example

        ```python
        abx.save("model.abx", model)
        model = abx.load("model.abx")
        ```
    """
    as_kind("path", path, str | os.PathLike, "be the path of a file")
    writer = Writer()
    meta = {
        "kind": "model",
        "arborax": importlib.metadata.version("arborax"),
        "class": type(model).__name__,
        "tree": writer.describe(model),
    }
    write_atomically(path, encode(writer.arrays, meta))


def load(path: str | os.PathLike) -> Any:
    """Loads a model written by [`arborax.save`][], identical bit for bit.

    **Returns:**

    The model. Raises `FileFormatError` (a `ValueError`) if the file was not written by
    `save`, is damaged or truncated, has a newer format, or names a class that is not
    registered in this process.
    """
    found = load_content(path)
    if isinstance(found, dict) and {"estimator", "parameters"} <= found.keys():
        raise FileFormatError(
            f"{path} holds the estimator {found['estimator']}; read it by "
            "`abx.estimators.load_estimator`."
        )
    return found


def load_content(path: str | os.PathLike) -> Any:
    """What `save` was given, also where another function puts it together."""
    source = str(path)
    with open(path, "rb") as file:
        arrays, meta = decode(file.read(), source)
    if not isinstance(meta, dict) or meta.get("kind") != "model":
        raise FileFormatError(
            f"{source} is an arborax file but holds no model (a training checkpoint "
            "is read by `abx.fit(..., checkpoint=folder)`)."
        )
    if "tree" not in meta:
        raise FileFormatError(
            f"{source} is of format 1, which does not describe its "
            f"{meta.get('class')}; load it with the arborax that wrote it."
        )
    try:
        return Reader(arrays, source).build(meta["tree"])
    except FileFormatError:
        raise
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        raise FileFormatError(f"{source} describes no model: {error}.") from error

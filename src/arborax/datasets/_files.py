"""Files that users name."""

import os
import pathlib
from typing import Any

from .._values import shown


def existing_file(file: Any) -> pathlib.Path:
    """`file` as a path, if there is such a file."""
    if not isinstance(file, str | os.PathLike):
        raise TypeError(f"expected the path of a file, got {shown(file)}.")
    path = pathlib.Path(file)
    if not path.is_file():
        raise FileNotFoundError(f"no file {shown(str(path))}.")
    return path

"""What a call of `fit` may be given, checked before anything is compiled."""

import inspect
import os
from collections.abc import Sequence
from typing import Any

from .._arguments import check_key, whole
from ._checkpoints import Checkpoints
from .trackers import Tracker


def check_request(
    model: Any,
    data: Any,
    objective: Any,
    key: Any,
    checkpoint: Any,
    hooks: Any,
    trackers: Any,
    **numbers: Any,
) -> None:
    """Raises a `TypeError` for arguments of the wrong kind.

    **Arguments:** those of `fit`; `numbers` are the ones that count something or are
    `None`.
    """
    if isinstance(model, type):
        raise TypeError(
            f"`model` is the class {model.__name__}: build one, for instance "
            f"`{model.__name__}(..., key=key)`."
        )
    _check_function("objective", objective, ("model", "batch", "key"))
    if inspect.isfunction(data) or inspect.ismethod(data):
        _check_function("data", data, ("key", "step"))
    check_key(key)
    for name, value in numbers.items():
        if value is not None:
            whole(name, value)
    if not isinstance(checkpoint, str | os.PathLike | Checkpoints | None):
        raise TypeError(
            "`checkpoint` must be a folder or an object with `save`, `restore` and "
            f"`clear`, got {checkpoint!r:.40}."
        )
    if not isinstance(hooks, Sequence) or not all(callable(h) for h in hooks):
        raise TypeError(f"`hooks` must be a list of functions, got {hooks!r:.60}.")
    if not isinstance(trackers, Sequence) or not all(
        isinstance(t, Tracker) for t in trackers
    ):
        raise TypeError(
            "`trackers` must be a list of objects with `log` and `close`, got "
            f"{trackers!r:.60}."
        )


def _check_function(name: str, value: Any, wanted: tuple[str, ...]) -> None:
    call = f"{name}({', '.join(wanted)})"
    if not callable(value):
        raise TypeError(f"`{name}` must be a function `{call}`, got {value!r:.40}.")
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return  # a function that does not say what it takes
    try:
        signature.bind(*wanted)
    except TypeError as error:
        raise TypeError(
            f"`{name}` is called as `{call}`, but takes `{signature}`: {error}."
        ) from None

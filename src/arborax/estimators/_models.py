"""Models by name, with sizes that suit the data."""

import functools as ft
from collections.abc import Callable, Mapping
from typing import Any

import jax
from jaxtyping import Array, PRNGKeyArray, PyTree

from .. import models
from .._inputs import as_choice
from .._values import shown
from ..geometry import AbstractGeometry
from ..models import AbstractModel
from ._features import make_algebra


MODELS: dict[str, Callable] = {
    "bnrde": models.BNRDE,
    "linear-bnrde": models.LinearBNRDE,
    "log-ncde": models.LogNCDE,
    "nrde": models.NRDE,
    "ncde": models.NCDE,
    "ncde++": models.NCDEpp,
    "gru": models.GRU,
    "xlstm": models.XLSTM,
    "stacked-xlstm": ft.partial(models.XLSTM, layers=4),
}
OF_ALGEBRA = ("bnrde", "linear-bnrde")
WINDOWED = (*OF_ALGEBRA, "log-ncde", "nrde")
WINDOWS = 16  # of a path, unless the options say how long one is


def make_model(
    model: Any,
    channels: int,
    output: int | AbstractGeometry | None,
    *,
    times: int,
    options: Any,
    dtype: Any,
    key: PRNGKeyArray,
) -> Any:
    """A model by name, by a function that builds one, or one that is built already.

    **Arguments:**

    - `model`: one of `MODELS`; a function `(channels, output, *, key, **options)`; or
        a model, whose weights training starts from.
    - `channels`, `output`: of the model.
    - `times`: points of the longest path.
    - `options`: a dictionary for the function. `"bnrde"` and `"linear-bnrde"` also take
        `alg` (a name, a class or an algebra, default `"ito"`) and `log_depth` (2), and
        have realised brackets.
    - `dtype`: of the weights of a model by name, that of the paths.
    """
    if isinstance(model, AbstractModel):
        if model.channels not in (None, channels):
            raise ValueError(
                f"`model` was built for {model.channels} channels, but the paths have "
                f"{channels}, with time if it is added."
            )
        return model
    if not isinstance(options, Mapping | None):
        raise TypeError(f"`options` must be a dictionary, got {shown(options)}.")
    options = dict(options or {})
    if isinstance(model, str):
        as_choice("model", model, tuple(MODELS))
        options.setdefault("dtype", dtype)
        if model in WINDOWED:
            options.setdefault("window", max(1, times // WINDOWS))
        if model in OF_ALGEBRA:
            depth = options.pop("log_depth", 2)
            alg = make_algebra(options.pop("alg", "ito"), channels, depth)
            if alg.calculus != "stratonovich":
                options.setdefault("brackets", "realised")
            return MODELS[model](alg, output, key=key, **options)
        model = MODELS[model]
    if not callable(model):
        raise TypeError(
            f"`model` must be one of {tuple(MODELS)}, a function or a model, got "
            f"{shown(model)}."
        )
    return model(channels, output, key=key, **options)


def prepare(model: Any, path: Any) -> Any:
    """What of a path does not depend on the weights: the control of a window model,
    otherwise the path itself."""
    return model.prepare(path) if hasattr(model, "prepare") else path.filled()


def last_output(model: Any, item: Any, length: Array) -> PyTree[Array]:
    """The output after the last valid sample.

    A window model stands still on padding, so its last knot is meant; it needs no
    interpolation within windows.
    """
    if hasattr(model, "at_knots"):
        return jax.tree.map(lambda leaf: leaf[-1], model.at_knots(item))
    return jax.tree.map(lambda leaf: leaf[length - 1], model(item))

"""The models that B-NRDE is compared with, by the names of the tables."""

import functools as ft
from typing import Any

from jaxtyping import PRNGKeyArray

from arborax import models
from arborax.geometry import AbstractGeometry


LABELS = {
    "bnrde": "B-NRDE",
    "bnrde-bk": "B-NRDE, tuned with brackets",
    "log-ncde": "log-NCDE",
    "nrde": "NRDE",
    "ncde": "NCDE",
    "ncde++": "NCDE++",
    "gru": "GRU",
    "xlstm": "xLSTM",
    "stacked-xlstm": "stacked xLSTM",
}
# As printed in arXiv:2606.05272, which names two of them by their objectives.
PRINTED = {**LABELS, "bnrde": "B-NRDE (GK)", "bnrde-bk": "B-NRDE (BK)"}
WINDOWED = ("hidden", "width", "depth", "window", "interpolation")
FIELD = ("vector_field", "geometry", "final_activation", "log_depth")
BASELINES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "log-ncde": (models.LogNCDE, (*WINDOWED, *FIELD)),
    "nrde": (models.NRDE, (*WINDOWED, *FIELD)),
    "ncde": (models.NCDE, ("hidden", "width", "depth", "vector_field")),
    "ncde++": (models.NCDEpp, ("hidden", "width", "depth", "vector_field")),
    "gru": (models.GRU, ("hidden", "width")),
    "xlstm": (models.XLSTM, ()),
    "stacked-xlstm": (ft.partial(models.XLSTM, layers=4), ()),
}


def baseline(
    name: str,
    channels: int,
    output: int | AbstractGeometry | None,
    config: Any,
    *,
    dtype: Any,
    key: PRNGKeyArray,
    **options: Any,
) -> models.AbstractCausalModel:
    """A baseline with fresh weights.

    **Arguments:**

    - `name`: a key of `BASELINES`.
    - `channels`, `output`: of the driver with time, and outputs or their manifold.
    - `config`: sizes of the model; those the model has no use for are not read, and
        `None` stands for the default of the model.
    - `dtype`, `key`: of the weights.
    - `options`: sizes that replace those of `config`, and what models with fields take.
    """
    kind, names = BASELINES[name]
    sizes = {size: options.get(size, getattr(config, size, None)) for size in names}
    sizes = {size: value for size, value in sizes.items() if value is not None}
    return kind(channels, output, **sizes, dtype=dtype, key=key)

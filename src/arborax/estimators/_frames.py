"""Features of one part of a table, for tools that map a function over parts."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from .._imports import require
from .._values import shown
from ..paths import SampledPath
from ._features import SignatureFeatures


def features_of_frame(
    df: Any,
    features: SignatureFeatures,
    *,
    group: str,
    time: str | None = None,
    channels: Sequence[str] | None = None,
    unit: Literal["ms", "s", "min", "h", "D"] = "s",
) -> Any:
    """Signature features of the paths in a data frame, one row per group.

    A plain function of a partition, which Dask, Ray Data and Spark can map: groups do
    not depend on each other. No partition may hold only a part of a group.

    **Arguments:**

    - `df`: a data frame of pandas, polars or pyarrow with one row per time, or an empty
        one.
    - `features`: fitted, for example on a sample of the groups.
    - `group`, `time`, `channels`, `unit`: as in
        [`arborax.SampledPath.from_dataframe`][].

    **Returns:**

    A frame of the same kind: the labels of the groups, then the features by name.
    """
    nw = require("narwhals", "sklearn", "features_of_frame")
    frame = nw.from_native(df, eager_only=True)
    if group not in frame.columns:
        raise ValueError(
            f"unknown column {group!r}; the frame has {shown(frame.columns)}."
        )
    if channels is None:
        channels = [name for name in frame.columns if name not in (time, group)]
    names = features.get_feature_names_out(channels)
    if len(frame):
        paths = SampledPath.from_dataframe(
            df, time=time, group=group, channels=channels, unit=unit
        )
        values = features.transform(paths)
    else:
        values = np.zeros((0, len(names)), features.scaling_.dtype)
    labels = frame[group].unique(maintain_order=True)
    data = {str(name): column for name, column in zip(names, values.T)}
    made = nw.from_dict(data, backend=nw.get_native_namespace(frame))
    return nw.concat([labels.to_frame(), made], how="horizontal").to_native()

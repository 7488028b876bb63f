"""Simulated once: data sets in files named by their parameters."""

import dataclasses
import hashlib
import json
import os
import pathlib
import sys
from typing import Any

import jax.random as jr
import numpy as np

from .._inputs import as_count, as_kind
from ..training import FileFormatError, load, save
from ._law import AbstractLaw, as_float_dtype, PathData


_VERSION = 2  # of the simulators: raise it when a law's numbers change


def cache_folder() -> pathlib.Path:
    """Where data sets are kept: `ARBORAX_CACHE`, or the platform's cache folder."""
    if given := os.environ.get("ARBORAX_CACHE"):
        return pathlib.Path(given)
    home = pathlib.Path.home()
    if sys.platform == "darwin":
        base = home / "Library" / "Caches"
    elif os.name == "nt":
        base = pathlib.Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    else:
        base = pathlib.Path(os.environ.get("XDG_CACHE_HOME", home / ".cache"))
    return base / "arborax"


def dataset(
    law: AbstractLaw,
    paths: int,
    *,
    seed: int = 42,
    dtype: Any = np.float32,
    folder: str | os.PathLike | None = None,
) -> PathData:
    """Paths of a law, from the cache if they have been simulated before.

    The file is named by a hash of all parameters, written beside and renamed, and every
    byte of it is checksummed: a damaged, truncated or foreign file is replaced.

    **Arguments:**

    - `law`: for instance `RoughBergomi(hurst=0.1)`.
    - `paths`: number of paths.
    - `seed`: of the JAX key.
    - `dtype`: float32 or float64.
    - `folder`: of the cache; default `cache_folder()`.

    **Returns:**

    A `PathData`.
    """
    as_kind("law", law, AbstractLaw, "be a law such as `RoughBergomi(hurst=0.1)`")
    paths, seed = as_count("paths", paths), as_count("seed", seed, 0)
    dtype = as_float_dtype(dtype)
    law.check()
    facts = {
        "law": type(law).__name__,
        **dataclasses.asdict(law),
        "paths": paths,
        "seed": seed,
        "dtype": dtype.name,
        "version": _VERSION,
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    folder = cache_folder() if folder is None else pathlib.Path(folder)
    file = folder / f"{type(law).__name__}-{digest[:16]}.abx"
    if file.exists():
        try:
            values, brackets = load(file)
            return PathData(law.times(dtype), values, brackets)
        except (FileFormatError, TypeError, ValueError):
            pass  # damaged: simulate again and replace it
    data = law.sample(paths, dtype=dtype, key=jr.PRNGKey(seed))
    folder.mkdir(parents=True, exist_ok=True)
    save(file, (data.values, data.brackets))
    return data

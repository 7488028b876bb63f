"""Training objectives: squared distances of mean features of paths."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from arborax.kernels import embed, mmd
from arborax.training.objectives import squared_distance

from ..generation import no_batch, published_kernel, shuffled_batches
from .config import Config
from .coordinates import log_coordinates
from .data import Parts
from .features import PathFeatures


OBJECTIVES = ("fourier", "fourier-branched", "signature", "branched")


def make_kernel(name: str, config: Config, head: Array, brackets: Any) -> Any:
    """The kernel of an objective; features are standardised by the paths `head`."""
    if name == "signature":
        return published_kernel("geometric", config.signature_depth)
    if name == "branched":
        return published_kernel("branched", config.branched_depth)
    if name in ("fourier", "fourier-branched"):
        # Fixed seed: every model and seed is trained against the same features.
        return PathFeatures(
            head,
            brackets,
            kind="ito" if name == "fourier" else "branched",
            features=config.features,
            scales=config.scales,
            weights=config.weights,
        )
    raise ValueError(f"`objective` must be one of {OBJECTIVES}, got {name!r}.")


def in_coordinates(paths: Any, config: Config) -> Array:
    """Lower triangles of the points, or of their logarithms."""
    paths = jnp.asarray(paths)
    return log_coordinates(paths) if config.coordinates == "log" else paths


def make_objective(
    name: str, config: Config, parts: Parts
) -> tuple[Callable, Callable[..., Any]]:
    """The objective of a run and the `data` argument of [`arborax.fit`][].

    Generated paths carry realised brackets on the grid of the objective; the data those
    of the law, summed over the same steps.

    **Returns:**

    A tuple of `objective(generator, batch, key)` and `data(key, step)`.
    """
    train = parts.train
    bracketed = name in ("branched", "fourier-branched")
    stride = config.window if name == "branched" else config.stride
    generated_brackets = "realised" if bracketed else None
    ts = jnp.asarray(parts.ts)
    whole = config.target == "all"
    count = min(config.target_paths, len(train)) if whole else len(train)
    values = train[:count, ::stride]
    # Real data have no law that knows their brackets, and get squared steps.
    brackets: Any = generated_brackets
    if bracketed and parts.law is not None:
        chart: Any = {"coordinates": config.coordinates, "stride": stride}
        brackets = parts.law.brackets(train[:count], **chart)

    known = isinstance(brackets, np.ndarray)  # otherwise none, or realised

    def given(rows: slice) -> Any:
        return jnp.asarray(brackets[rows]) if known else brackets

    head = slice(0, 2048)
    start = in_coordinates(values[head], config)
    kernel = make_kernel(name, config, start, given(head))

    def distance(generator, key, target, part):
        """Distance from a batch of data, or from a summary of all data."""
        paths = generator.sample(ts, config.batch, stride, config.mirrored, key=key)
        paths = in_coordinates(paths, config)
        if isinstance(kernel, PathFeatures):
            features = kernel(paths, generated_brackets)
            if config.mirrored:  # pairs are independent of each other
                features = jnp.mean(features.reshape(2, -1, features.shape[1]), axis=0)
            target = target if target.ndim == 1 else kernel.mean(target, part)
            return squared_distance(features - target[None])
        given = {"brackets_x": generated_brackets, "brackets_y": part}
        return mmd(paths, target, kernel, **given)

    if whole:
        paths, part = in_coordinates(values, config), given(slice(None))
        summary: Any
        if isinstance(kernel, PathFeatures):
            summary = kernel.mean(paths, part)
        else:
            summary = embed(paths, kernel, brackets=part, batch=1024)

        def against_all(generator, batch, key):
            return distance(generator, key, summary, None)

        return against_all, no_batch

    def against_batch(generator, batch, key):
        target, part = batch
        part = part if known else brackets
        return distance(generator, key, in_coordinates(target, config), part)

    def take(rows):
        return values[rows], brackets[rows] if known else None

    batches = shuffled_batches(len(train), config.batch, config.data_seed, take)
    return against_batch, batches

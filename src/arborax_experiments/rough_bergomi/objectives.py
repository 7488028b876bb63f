"""Training objectives: squared distances of mean features of paths."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from arborax.datasets import PathData
from arborax.kernels import embed, mmd, RandomFourierSignature
from arborax.training.objectives import PathFeatures

from ..generation import no_batch, published_kernel, shuffled_batches
from .config import Config
from .features import LocalFeatures, RobustSignature


PATHWISE = {
    "fourier-path": "path",
    "fourier-branched": "branched",
    "fourier-local": "path",
}
# What the features of each see. Realised brackets are squared steps of a path.
OBJECTIVES = {
    "fourier": "Itô features",
    "fourier-path": "Itô features, realised variance",
    "fourier-branched": "branched features; brackets: data supplied, model realised",
    "fourier-local": "Itô features, realised and local variance",
    "signature": "geometric signature, depth 5",
    "signature-robust": "geometric signature, depth 5, robust",
    "branched": "branched signature; brackets: data supplied, model realised",
}


def thin(data: PathData, stride: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Every `stride`-th sample, and brackets summed over the steps between."""
    values = data.values[:, ::stride]
    if data.brackets is None:
        return values, None
    steps = values.shape[1] - 1
    brackets = data.brackets[:, : steps * stride]
    return values, brackets.reshape(len(data), steps, stride, 1, 1).sum(axis=2)


def make_kernel(name: str, config: Config, dtype: Any) -> Any:
    """The kernel of an objective, before it has seen data."""
    if name == "signature":
        return published_kernel("geometric", 5)
    if name == "branched":
        return published_kernel("branched", 3)
    if name == "fourier":
        # Fixed: every model and seed is trained against the same features.
        return RandomFourierSignature(
            1, key=jr.PRNGKey(0), features=config.features, dtype=dtype
        )
    raise ValueError(f"`objective` must be one of {list(OBJECTIVES)}, got {name!r}.")


def make_objective(name: str, config: Config, train: PathData) -> tuple[Callable, Any]:
    """The objective of a run and the `data` argument of [`arborax.fit`][].

    With `"fourier-branched"` and `"branched"`, the data carry the brackets of the
    simulator and generated paths realised ones: those of all steps, and those of the
    grid of windows. With `"fourier-path"` both carry realised ones of all steps, so
    that nothing but paths is needed.

    **Returns:**

    A tuple of `objective(generator, batch, key)` and data.
    """
    if name in PATHWISE or name == "signature-robust":
        return _pathwise(name, config, train)
    kernel = make_kernel(name, config, train.values.dtype)
    bracketed = name == "branched"
    stride = config.window if bracketed else config.stride
    ts = jnp.asarray(train.ts)
    generated_brackets = "realised" if bracketed else None
    whole = config.target == "all"
    known = train[: config.target_paths] if whole else train
    values, brackets = thin(known, stride)
    brackets = brackets if bracketed else None
    if isinstance(kernel, RandomFourierSignature):
        kernel = kernel.fit(jnp.asarray(values[:2048]))

    def distance(generator, key, target, target_brackets, unbiased):
        paths = generator.sample(ts, config.batch, key=key)[:, ::stride]
        given = {"brackets_x": generated_brackets, "brackets_y": target_brackets}
        return mmd(paths, target, kernel, **given, unbiased=unbiased)

    if whole:
        given = None if brackets is None else jnp.asarray(brackets)
        mean = embed(jnp.asarray(values), kernel, brackets=given, batch=1024)
        # Bounded features are compared without bias, so that small batches do not pay
        # for the spread of their mean. The tails of signatures are too heavy for that.
        unbiased = isinstance(kernel, RandomFourierSignature)

        def against_all(generator, batch, key):
            return distance(generator, key, mean, None, unbiased)

        return against_all, no_batch

    def against_batch(generator, batch, key):
        target, target_brackets = batch
        return distance(generator, key, target, target_brackets, False)

    def take(rows):
        return values[rows], None if brackets is None else brackets[rows]

    batches = shuffled_batches(len(train), config.batch, config.data_seed, take)
    return against_batch, batches


def _pathwise(name: str, config: Config, train: PathData) -> tuple[Callable, Any]:
    known, kind = train[: config.target_paths], PATHWISE.get(name)
    sizes: Any = dict(
        features=config.features, cylinders=config.cylinders, stride=config.stride
    )
    features: PathFeatures | RobustSignature | LocalFeatures
    if kind is None:
        features = RobustSignature(known.values, config.stride)
    elif name == "fourier-local":
        features = LocalFeatures(known.values, block=config.block, **sizes)
    else:
        brackets = known.brackets if kind == "branched" else None
        features = PathFeatures(known.values, brackets, kind=kind, **sizes)  # pyright: ignore[reportArgumentType]
    ts = jnp.asarray(train.ts)

    def objective(generator, batch, key):
        return features.distance(generator.sample(ts, config.batch, key=key))

    return objective, no_batch

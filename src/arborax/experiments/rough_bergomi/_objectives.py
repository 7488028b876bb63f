"""Training objectives: squared distances of mean features of paths."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ...datasets import PathData
from ...kernels import embed, mmd, RandomFourierSignature, SignatureKernel
from ._config import Config


OBJECTIVES = ("fourier", "fourier-branched", "signature", "branched")


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
        return SignatureKernel("geometric", 5, add_time=True, add_basepoint=True)
    if name == "branched":
        return SignatureKernel(
            "branched", 3, inner_product="trees", add_time=True, add_basepoint=True
        )
    if name in ("fourier", "fourier-branched"):
        kind = "ito" if name == "fourier" else "branched"
        # Fixed: every model and seed is trained against the same features.
        return RandomFourierSignature(
            1, key=jr.PRNGKey(0), kind=kind, features=config.features, dtype=dtype
        )
    raise ValueError(f"`objective` must be one of {OBJECTIVES}, got {name!r}.")


def make_objective(
    name: str, config: Config, train: PathData, iterations: int
) -> tuple[Callable, Any]:
    """The objective of a run and the `data` argument of [`arborax.fit`][].

    Generated paths carry realised brackets on the grid of the objective; the data
    those of the simulator, summed over the same steps.

    **Returns:**

    A tuple of `objective(generator, batch, key)` and data.
    """
    kernel = make_kernel(name, config, train.values.dtype)
    bracketed = name in ("branched", "fourier-branched")
    stride = config.window if name == "branched" else config.stride
    ts = jnp.asarray(train.ts)
    generated_brackets = "realised" if bracketed else None
    whole = config.target == "all"
    known = train[: config.target_paths] if whole else train
    values, brackets = thin(known, stride)
    brackets = brackets if bracketed else None
    if isinstance(kernel, RandomFourierSignature):
        head = slice(0, 2048)
        head_brackets = None if brackets is None else jnp.asarray(brackets[head])
        kernel = kernel.fit(jnp.asarray(values[head]), brackets=head_brackets)

    def distance(generator, key, target, target_brackets, unbiased):
        paths = generator.sample(key, ts, config.batch)[:, ::stride]
        return mmd(
            paths,
            target,
            kernel,
            brackets_x=generated_brackets,
            brackets_y=target_brackets,
            unbiased=unbiased,
        )

    if whole:
        given = None if brackets is None else jnp.asarray(brackets)
        mean = embed(jnp.asarray(values), kernel, brackets=given, batch=1024)
        nothing = np.zeros((1,), np.float32)

        # Bounded features are compared without bias: else small batches would pay for
        # the spread of their mean. The tails of signatures are too heavy for that.
        unbiased = isinstance(kernel, RandomFourierSignature)

        def against_all(generator, batch, key):
            return distance(generator, key, mean, None, unbiased)

        return against_all, lambda key, step: nothing

    def against_batch(generator, batch, key):
        target, target_brackets = batch
        return distance(generator, key, target, target_brackets, False)

    count = len(train) // config.batch

    def batches(key, step):
        """Batches of an epoch, shuffled anew in each by its number."""
        epoch, place = divmod(step, count)
        order = np.random.default_rng((config.data_seed, epoch)).permutation(len(train))
        rows = order[place * config.batch : (place + 1) * config.batch]
        return values[rows], None if brackets is None else brackets[rows]

    return against_batch, batches

"""Shared pieces of the experiments that generate paths."""

from collections.abc import Callable, Iterator
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from arborax.kernels import SignatureKernel

from .harness import Stage


def generate(
    generator: Any,
    ts: Float[np.ndarray, " times"],
    paths: int,
    *options: Any,
    key: PRNGKeyArray,
    block: int = 1024,
) -> Float[np.ndarray, "paths some channels"]:
    """Many paths, in blocks of one compiled size, as a NumPy array.

    **Arguments:**

    - `generator`: a module with `sample(ts, paths, *options, key=key)`.
    - `ts`, `paths`: times, and how many paths.
    - `key`: a JAX random key; each block gets its own.
    - `block`: paths per block.
    """
    block = min(block, paths)
    parts = [
        _block(generator, jr.fold_in(key, k), jnp.asarray(ts), block, *options)
        for k in range(-(-paths // block))
    ]
    return np.concatenate([np.asarray(part) for part in parts])[:paths]


@eqx.filter_jit
def _block(generator: Any, key: PRNGKeyArray, ts: Array, *rest: Any) -> Array:
    return generator.sample(ts, *rest, key=key)


def batch_mean(distance: Callable, x: np.ndarray, y: np.ndarray, size: int) -> Any:
    """Mean distance of consecutive batches of two samples."""
    starts = range(0, min(len(x), len(y)) - size + 1, size)
    parts = [distance(x[i : i + size], y[i : i + size]) for i in starts]
    return np.mean([np.asarray(part) for part in parts], axis=0)


def numbers(values: Any) -> list[float]:
    """Scores as JSON takes them."""
    return [float(v) for v in np.asarray(values)]


def published_kernel(kind: Literal["geometric", "branched"], depth: int) -> Any:
    """The kernel of the published objectives."""
    inner: Any = "trees" if kind == "branched" else "hopf"
    options: Any = dict(add_time=True, add_basepoint=True)
    return SignatureKernel(kind, depth, inner_product=inner, **options)


def no_batch(key: PRNGKeyArray, step: int) -> np.ndarray:
    """The batch of an objective that compares with all data: a stand-in."""
    return np.zeros((1,), np.float32)


def shuffled_batches(count: int, batch: int, seed: int, take: Callable) -> Callable:
    """`data(key, step)` for `fit`: `take(rows)` of batches of an epoch, which is
    shuffled by its number."""
    size = min(batch, count)
    per_epoch = count // size

    def data(key: PRNGKeyArray, step: int) -> Any:
        epoch, place = divmod(step, per_epoch)
        order = np.random.default_rng((seed, epoch)).permutation(count)
        return take(order[place * size : (place + 1) * size])

    return data


def generator_stages(
    config: Any, make_objective: Callable[[str], tuple[Callable, Any]], **options: Any
) -> Iterator[Stage]:
    """The stage of a configuration; `bnrde-bk`, which begins as `bnrde`, is then
    fine-tuned with another objective.

    **Arguments:**

    - `config`: with `objective`, `learning_rate` and `iterations`, and these three
        after `finetune_`.
    - `make_objective`: from the name of an objective to the objective and its data.
    - `options`: further fields of the stages.
    """
    fields = ("objective", "learning_rate", "iterations")
    tuned = config.model == "bnrde-bk"
    unread = tuple(f"finetune_{field}" for field in fields)
    first = dict(same_as="bnrde", unread=unread) if tuned else {}
    second = dict(folder="checkpoints-bk")
    for prefix, own in [("", first), ("finetune_", second)][: 2 if tuned else 1]:
        name, peak, steps = (getattr(config, prefix + field) for field in fields)
        objective, data = make_objective(name)
        yield Stage(
            name,
            objective,
            data,
            steps=steps,
            learning_rate=peak,
            **own,  # pyright: ignore[reportArgumentType]
            **options,
        )

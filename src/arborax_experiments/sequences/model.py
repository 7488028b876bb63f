"""Trained sequence models with one readout, the same for all."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from arborax import models
from arborax.algebra import Ito, Shuffle
from arborax.paths import add_time, SampledPath

from .config import Config


class Classifier(eqx.Module):
    """Logits from the last of the outputs of a sequence model and, if `pooled`, their
    mean."""

    core: Any
    readout: eqx.nn.Linear
    pooled: bool = eqx.field(static=True, default=True)

    def __call__(self, item: Any, weights: Float[Array, " points"]) -> Array:
        """Logits of one series.

        **Arguments:**

        - `item`, `weights`: one of `inputs`: what the core reads, and the share of each
            point in the mean; points after the end of a series have none.
        """
        at_knots = hasattr(self.core, "at_knots")
        states = self.core.at_knots(item) if at_knots else self.core(item)
        last = states[jnp.argmax(jnp.where(weights > 0, jnp.arange(len(weights)), -1))]
        if not self.pooled:
            return self.readout(last)
        mean = jnp.sum(weights[:, None] * states, axis=0)
        return self.readout(jnp.concatenate([mean, last]))


def make_classifier(
    config: Config, channels: int, classes: int, times: int, *, key: PRNGKeyArray
) -> Classifier:
    """The model of a configuration with its first weights."""
    first, second = jr.split(key)
    core = make_core(config, channels, max(1, -(-times // config.windows)), key=first)
    size = config.features if config.plain else 2 * config.features
    readout = eqx.nn.Linear(size, classes, dtype=jnp.float32, key=second)
    return Classifier(core, readout, not config.plain)


def make_core(config: Config, channels: int, window: int, *, key: PRNGKeyArray) -> Any:
    """A sequence model with `config.features` outputs."""
    name, out = config.model, config.features
    sizes: dict[str, Any] = dict(hidden=config.hidden, dtype=jnp.float32, key=key)
    if name.startswith("linear"):
        alg = Shuffle if name.endswith("stratonovich") else Ito
        return models.LinearBNRDE(
            alg(channels, 2),
            out,
            structure="diagonal" if "diagonal" in name else "block",
            block=config.block,
            layers=config.layers,
            damped=config.damped,
            contractive=config.contractive,
            normalise=not config.plain,
            gated=not config.plain,
            window=window,
            brackets=None if alg is Shuffle else "realised",
            **sizes,
        )
    if name == "xlstm":
        return models.XLSTM(channels, out, dtype=jnp.float32, key=key)
    sizes["width"] = config.width
    if name == "gru":
        return models.GRU(channels, out, **sizes)
    sizes |= dict(depth=config.depth, window=window)
    if name == "log-ncde":
        return models.LogNCDE(channels, out, **sizes)
    return models.BNRDE(Ito(channels, 2), out, brackets="realised", **sizes)


def inputs(model: Classifier, path: SampledPath) -> tuple[Any, np.ndarray]:
    """What the core reads of a batch of paths, with time as first channel, and the
    shares of its outputs in their mean. Controls do not depend on weights and are
    prepared once."""
    core: Any = model.core
    lengths, full = np.asarray(path.lengths), add_time(path).broadcast()
    if not hasattr(core, "at_knots"):
        shares = np.arange(path.num_times) < lengths[:, None]
        items = full.filled()
    else:
        items = jax.jit(jax.vmap(core.prepare))(full)
        knots = items.log_signatures.shape[1] + 1
        points = lengths + int(core.basepoint)
        # A knot counts if its window begins before the end.
        shares = (np.arange(knots) - 1) * core.window < points[:, None] - 1
    shares = shares / shares.sum(axis=1, keepdims=True)
    return jax.tree.map(np.asarray, items), shares.astype(np.float32)


def cross_entropy(model: Classifier, batch: Any, key: Any = None) -> Array:
    """Mean over a batch of inputs, weights and classes."""
    items, weights, labels = batch
    logits = jax.vmap(model)(items, weights)
    rows = jax.nn.log_softmax(logits, axis=-1)
    return -jnp.mean(jnp.take_along_axis(rows, labels[:, None], axis=-1))


@eqx.filter_jit
def _logits(model: Classifier, items: Any, weights: Any) -> Array:
    return jax.vmap(model)(items, weights)


def logits_of(model: Classifier, items: Any, weights: np.ndarray) -> np.ndarray:
    """Logits of prepared series, a block of one size at a time."""
    count, size = len(weights), min(256, len(weights))
    found = []
    for at in range(0, count, size):
        rows = np.minimum(np.arange(at, at + size), count - 1)
        some = jax.tree.map(lambda leaf: leaf[rows], (items, weights))  # noqa: B023
        found.append(np.asarray(_logits(model, *some)))
    return np.concatenate(found)[:count]

"""Generators: a model driven by noise, and the scale of its paths."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ... import models
from ...algebra import GrossmanLarson
from ._config import Config


class Generator(eqx.Module):
    """Paths of a model from time and Brownian motion, in the units of the data."""

    model: models.AbstractCausalModel
    scale: float = eqx.field(static=True)
    anchor: bool = eqx.field(static=True)

    def sample(
        self, key: PRNGKeyArray, ts: Float[Array, " times"], paths: int
    ) -> Float[Array, "paths times 1"]:
        """Generated paths."""
        out = self.model.sample(key, ts, paths) * self.scale
        return out - out[:, :1] if self.anchor else out


def _bnrde(config: Config, **common: Any) -> models.AbstractCausalModel:
    return models.BNRDE(
        GrossmanLarson(1 + config.noise, 2),
        1,
        depth=config.depth,
        window=config.window,
        calculus=config.calculus,
        interpolation=config.interpolation,
        basepoint=config.basepoint,
        **common,
    )


def _windowed(kind: Callable) -> Callable:
    def make(config: Config, **common: Any) -> models.AbstractCausalModel:
        return kind(
            1 + config.noise,
            1,
            depth=config.depth,
            window=config.window,
            interpolation=config.interpolation,
            **common,
        )

    return make


def _plain(kind: Callable, *names: str) -> Callable:
    def make(config: Config, **common: Any) -> models.AbstractCausalModel:
        options = {name: getattr(config, name) for name in names}
        return kind(1 + config.noise, 1, **options, **common)

    return make


def _xlstm(kind: Callable) -> Callable:
    def make(config: Config, **common: Any) -> models.AbstractCausalModel:
        return kind(1 + config.noise, 1, key=common["key"], dtype=common["dtype"])

    return make


MODELS: dict[str, Callable[..., models.AbstractCausalModel]] = {
    "bnrde": _bnrde,
    "bnrde-bk": _bnrde,
    "log-ncde": _windowed(models.LogNCDE),
    "nrde": _windowed(models.NRDE),
    "ncde": _plain(models.NCDE, "depth"),
    "ncde++": _plain(models.NCDEpp, "depth"),
    "gru": _plain(models.GRU),
    "xlstm": _xlstm(models.XLSTM),
    "stacked-xlstm": _xlstm(models.StackedXLSTM),
}


def make_generator(
    config: Config, data: Float[np.ndarray, "paths times 1"], key: PRNGKeyArray
) -> Generator:
    """A generator with fresh weights.

    **Arguments:**

    - `config`: names the model and its sizes.
    - `data`: training paths; with `config.anchor` they give the scale.
    - `key`: a JAX random key.
    """
    if config.model not in MODELS:
        raise ValueError(
            f"`model` must be one of {list(MODELS)}, got {config.model!r}."
        )
    scale = float(data[:, -1].std()) if config.anchor else 1.0
    common = dict(hidden=config.hidden, width=config.width)
    model = MODELS[config.model](config, **common, dtype=data.dtype, key=key)
    return Generator(model, scale, config.anchor)


def generate(
    generator: Generator,
    key: PRNGKeyArray,
    ts: Float[np.ndarray, " times"],
    paths: int,
    block: int = 1024,
) -> Float[np.ndarray, "paths times 1"]:
    """Many paths, in blocks of one compiled size, as a NumPy array."""
    block = min(block, paths)
    parts = []
    for k in range(-(-paths // block)):
        part = _block(generator, jr.fold_in(key, k), jnp.asarray(ts), block)
        parts.append(np.asarray(part))
    return np.concatenate(parts)[:paths]


@eqx.filter_jit
def _block(generator: Generator, key: PRNGKeyArray, ts: Array, paths: int) -> Array:
    return generator.sample(key, ts, paths)


def parameter_count(generator: Generator) -> int:
    """Numbers that are trained."""
    arrays = eqx.filter(generator, lambda x: hasattr(x, "shape"))
    leaves = jax.tree.leaves(arrays)
    return sum(leaf.size for leaf in leaves)

"""Generators: a model driven by noise, and the scale of its paths."""

from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from arborax import models
from arborax.algebra import GrossmanLarson

from ..baselines import baseline, WINDOWED
from .config import Config


class Generator(eqx.Module):
    """Paths of a model from time and Brownian motion, in the units of the data."""

    model: models.AbstractCausalModel
    scale: float = eqx.field(static=True)
    anchor: bool = eqx.field(static=True)

    def sample(
        self, ts: Float[Array, " times"], paths: int, *, key: PRNGKeyArray
    ) -> Float[Array, "paths times 1"]:
        """Generated paths."""
        out = self.model.sample(ts, paths, key=key) * self.scale
        return out - out[:, :1] if self.anchor else out


def make_generator(
    config: Config, data: Float[np.ndarray, "paths times 1"], *, key: PRNGKeyArray
) -> Generator:
    """A generator with fresh weights.

    **Arguments:**

    - `config`: names the model and its sizes.
    - `data`: training paths; with `config.anchor` they give the scale.
    - `key`: a JAX random key.
    """
    channels, dtype = 1 + config.noise, data.dtype
    if config.model in ("bnrde", "bnrde-bk"):
        names = (*WINDOWED, "calculus", "basepoint")
        options: Any = {name: getattr(config, name) for name in names}
        alg = GrossmanLarson(channels, 2)
        model = models.BNRDE(alg, 1, **options, dtype=dtype, key=key)
    else:
        model = baseline(config.model, channels, 1, config, dtype=dtype, key=key)
    scale = float(data[:, -1].std()) if config.anchor else 1.0
    return Generator(model, scale, config.anchor)

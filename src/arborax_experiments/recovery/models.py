"""The two models, which are one."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from arborax import models
from arborax.algebra import Shuffle
from arborax.models import AbstractModel

from .config import Config


LABELS = {"bnrde": "B-NRDE (shuffle)", "log-ncde": "log-NCDE"}


def make_model(
    config: Config, channels: int, outputs: int, key: PRNGKeyArray
) -> AbstractModel:
    """The model of a configuration; equal keys give both models equal weights."""
    options: dict[str, Any] = dict(
        hidden=config.hidden,
        width=config.width,
        depth=config.depth,
        window=config.window,
        dtype=jnp.float64 if config.double else jnp.float32,
        key=key,
    )
    if config.model == "log-ncde":
        return models.LogNCDE(channels, outputs, **options)
    # The shuffle algebra, a state without geometry, softplus, no basepoint.
    return models.BNRDE(
        Shuffle(channels, 2),
        outputs,
        activation=jax.nn.softplus,
        basepoint=False,
        **options,
    )

"""The two models, which are one."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from ... import models
from ...algebra import Shuffle
from ...models import AbstractModel
from ._config import Config


def _log_ncde(channels: int, outputs: int, **options: Any) -> AbstractModel:
    return models.LogNCDE(channels, outputs, **options)


def _bnrde(channels: int, outputs: int, **options: Any) -> AbstractModel:
    """The shuffle algebra, a state without geometry, softplus, no basepoint."""
    return models.BNRDE(
        Shuffle(channels, 2),
        outputs,
        activation=jax.nn.softplus,
        basepoint=False,
        **options,
    )


MODELS = {"bnrde": _bnrde, "log-ncde": _log_ncde}


def make_model(
    config: Config, channels: int, outputs: int, key: PRNGKeyArray
) -> AbstractModel:
    """The model of a configuration; equal keys give both models equal weights."""
    if config.model not in MODELS:
        raise ValueError(
            f"`model` must be one of {list(MODELS)}, got {config.model!r}."
        )
    return MODELS[config.model](
        channels,
        outputs,
        hidden=config.hidden,
        width=config.width,
        depth=config.depth,
        window=config.window,
        dtype=jnp.float64 if config.double else jnp.float32,
        key=key,
    )

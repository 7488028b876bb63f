"""The models of the table, and what continues their observations."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
from jaxtyping import PRNGKeyArray

from ... import models
from ...algebra import Shuffle
from ...geometry import SO
from ...models import AbstractExtrapolator
from ._config import Config


EXTRAPOLATORS: dict[str, Callable[..., AbstractExtrapolator]] = {
    "hold": lambda config, key: models.Hold(),
    "constant-velocity": lambda config, key: models.ConstantVelocity(),
    "linear": lambda config, key: models.Linear(),
    "hermite": lambda config, key: models.Hermite(relative=config.relative),
    "sg": lambda config, key: models.SavitzkyGolay(
        2, knots=config.observed, dtype=np.float32, key=key
    ),
    "sg1": lambda config, key: models.SavitzkyGolay(1),
    "sg2": lambda config, key: models.SavitzkyGolay(2),
    "sg3": lambda config, key: models.SavitzkyGolay(3),
    "mlp": lambda config, key: models.MLPExtrapolator(
        config.observed, seconds=config.seconds, dtype=np.float32, key=key
    ),
}

REFERENCES: dict[str, AbstractExtrapolator] = {
    "hold": models.Hold(),
    "constant velocity": models.ConstantVelocity(),
    "linear": models.Linear(),
    "Hermite (absolute chart)": models.Hermite(relative=False),
    "Savitzky-Golay 1": models.SavitzkyGolay(1),
    "Savitzky-Golay 2": models.SavitzkyGolay(2),
    "Savitzky-Golay 3": models.SavitzkyGolay(3),
}

FLOAT = np.dtype(np.float32)


def _front(config: Config, default: str, key: PRNGKeyArray) -> AbstractExtrapolator:
    name = default if config.extrapolator == "default" else config.extrapolator
    if name not in EXTRAPOLATORS:
        raise ValueError(
            f"`extrapolator` must be 'default' or one of {list(EXTRAPOLATORS)}, got "
            f"{name!r}."
        )
    return EXTRAPOLATORS[name](config, key)


def _sequence(default: str, build: Callable) -> Callable:
    """A sequence model behind a front."""

    def make(config: Config, key: PRNGKeyArray) -> AbstractExtrapolator:
        first, second = jr.split(key)
        channels = 4 if config.driver == "chart" else 10
        return models.RotationForecaster(
            _front(config, default, first),
            build(config, channels, second),
            driver=config.driver,
            relative=config.relative,
            seconds=config.seconds,
        )

    return make


def _mnode(config: Config, key: PRNGKeyArray) -> AbstractExtrapolator:
    model = models.MNODE(
        width=config.width,
        depth=config.depth,
        substeps=config.substeps,
        dtype=FLOAT,
        key=key,
    )
    # The model sees one orientation; relative to a later one it would see velocity.
    return models.RotationForecaster(
        _front(config, "hold", key),
        model,
        driver="matrix",
        relative=False,
        seconds=config.seconds,
    )


def _sg_ncde(config: Config, key: PRNGKeyArray) -> AbstractExtrapolator:
    first, second = jr.split(key)
    front = _front(config, "sg3", first)
    options = dict(_sizes(config), key=second)
    seen = dict(relative=config.relative, seconds=config.seconds)
    if isinstance(front, models.SavitzkyGolay):
        return models.SavitzkyGolayNCDE(front, **seen, **options)
    model = models.NCDE(10, SO(3), **options)
    return models.RotationForecaster(front, model, driver="matrix", **seen)


def _sizes(config: Config) -> dict[str, Any]:
    return dict(
        hidden=config.hidden, width=config.width, depth=config.depth, dtype=FLOAT
    )


def _bnrde(window: int | None) -> Callable:
    """On SO(3), driven by the bank of extrapolators or by the one asked for."""

    def make(config: Config, key: PRNGKeyArray) -> AbstractExtrapolator:
        first, second = jr.split(key)
        return models.RotationBNRDE(
            _drivers(config, first),
            window=window or config.window,
            width=config.width,
            inertia=config.inertia,
            seconds=config.seconds,
            dtype=FLOAT,
            key=second,
        )

    return make


def _mixture(config: Config, key: PRNGKeyArray) -> AbstractExtrapolator:
    drivers = _drivers(config, key)
    return models.RotationMixture(
        drivers, width=config.width, seconds=config.seconds, dtype=FLOAT, key=key
    )


def _drivers(config: Config, key: PRNGKeyArray) -> Any:
    """The bank of laws of motion, or the extrapolator asked for alone."""
    if config.extrapolator != "default":
        return [_front(config, "", key)]
    return models.MotionBank() if config.bodies else models.MotionBank(bodies=())


MODELS: dict[str, Callable[[Config, PRNGKeyArray], AbstractExtrapolator]] = {
    "bnrde": _bnrde(None),
    "bnrde-4": _bnrde(4),
    "mixture": _mixture,
    "bnrde-euclidean": _sequence(
        "mlp",
        lambda config, channels, key: models.BNRDE(
            Shuffle(channels, 2), SO(3), window=4, **_sizes(config), key=key
        ),
    ),
    "sg-ncde": _sg_ncde,
    "stacked-xlstm": _sequence(
        "hermite",
        lambda config, channels, key: models.StackedXLSTM(
            channels, SO(3), dtype=FLOAT, key=key
        ),
    ),
    "nrde": _sequence(
        "hermite",
        lambda config, channels, key: models.NRDE(
            channels, SO(3), window=config.window, **_sizes(config), key=key
        ),
    ),
    "xlstm": _sequence(
        "hermite",
        lambda config, channels, key: models.XLSTM(
            channels, SO(3), dtype=FLOAT, key=key
        ),
    ),
    "gru": _sequence(
        "hermite",
        lambda config, channels, key: models.GRU(
            channels,
            SO(3),
            hidden=config.hidden,
            width=config.width,
            dtype=FLOAT,
            key=key,
        ),
    ),
    "ncde": _sequence(
        "hermite",
        lambda config, channels, key: models.NCDEpp(
            channels, SO(3), **_sizes(config), key=key
        ),
    ),
    "mnode": _mnode,
}


def make_model(config: Config, key: PRNGKeyArray) -> AbstractExtrapolator:
    """The model of a configuration with fresh weights, in single precision."""
    if config.model not in MODELS:
        raise ValueError(
            f"`model` must be one of {list(MODELS)}, got {config.model!r}."
        )
    return MODELS[config.model](config, key)


def parameter_count(model: AbstractExtrapolator) -> int:
    """Numbers that are trained."""
    leaves = jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))
    return sum(leaf.size for leaf in leaves)


def forecast(model: AbstractExtrapolator, arrays: Sequence[Any]) -> Any:
    """Rotations `(windows, points, 3, 3)` of a batch of windows, from times, rotations
    and mask of their observations and the times of all points."""
    ts, rotations, mask, times = arrays
    return jax.vmap(model)(ts, rotations, times, mask)

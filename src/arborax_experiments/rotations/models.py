"""The models of the table and their front ends."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.random as jr
import numpy as np
from jaxtyping import PRNGKeyArray

from arborax import models
from arborax.algebra import Shuffle
from arborax.geometry import SO

from ..baselines import baseline
from .config import Config
from .equation import RotationBNRDE
from .extrapolators import AbstractExtrapolator, ConstantVelocity, Hermite, Hold, Linear
from .forecaster import RotationForecaster, SavitzkyGolayNCDE
from .learned_extrapolators import MLPExtrapolator, SavitzkyGolay
from .mixture import RotationMixture
from .motion_bank import MotionBank


FLOAT = np.dtype(np.float32)
EXTRAPOLATORS: dict[str, Callable[..., AbstractExtrapolator]] = {
    "hold": lambda config, key: Hold(),
    "constant-velocity": lambda config, key: ConstantVelocity(),
    "linear": lambda config, key: Linear(),
    "hermite": lambda config, key: Hermite(relative=config.relative),
    "sg": lambda config, key: SavitzkyGolay(
        2, knots=config.observed, dtype=FLOAT, key=key
    ),
    **{f"sg{n}": lambda config, key, n=n: SavitzkyGolay(n) for n in (1, 2, 3)},
    "mlp": lambda config, key: MLPExtrapolator(
        config.observed, seconds=config.seconds, dtype=FLOAT, key=key
    ),
}
REFERENCES: dict[str, AbstractExtrapolator] = {
    "hold": Hold(),
    "constant velocity": ConstantVelocity(),
    "linear": Linear(),
    "Hermite (absolute chart)": Hermite(relative=False),
    **{f"Savitzky-Golay {order}": SavitzkyGolay(order) for order in (1, 2, 3)},
}
# Default front ends; models without one here have a bank of laws of motion.
FRONTS = {
    "bnrde-euclidean": "mlp",
    "sg-ncde": "sg3",
    **dict.fromkeys(("stacked-xlstm", "nrde", "xlstm", "gru", "ncde"), "hermite"),
    "mnode": "hold",
}


def make_model(config: Config, *, key: PRNGKeyArray) -> AbstractExtrapolator:
    """The model of a configuration with fresh weights, in single precision."""
    name = config.model
    if name == "mixture":
        return RotationMixture(
            _drivers(config, key),
            width=config.width,
            seconds=config.seconds,
            dtype=FLOAT,
            key=key,
        )
    if name == "mnode":
        # It sees one orientation; relative to a later one it would see the velocity.
        model = models.MNODE(
            width=config.width,
            depth=config.depth,
            substeps=config.substeps,
            dtype=FLOAT,
            key=key,
        )
        front = _front(config, key)
        options: Any = dict(driver="matrix", relative=False, seconds=config.seconds)
        return RotationForecaster(front, model, **options)
    first, second = jr.split(key)
    if name in ("bnrde", "bnrde-4"):
        return RotationBNRDE(
            _drivers(config, first),
            window=4 if name == "bnrde-4" else config.window,
            width=config.width,
            inertia=config.inertia,
            seconds=config.seconds,
            dtype=FLOAT,
            key=second,
        )
    return _sequence(config, _front(config, first), second)


def _sequence(
    config: Config, front: AbstractExtrapolator, key: PRNGKeyArray
) -> AbstractExtrapolator:
    """A sequence model with outputs in SO(3) behind a front."""
    name, driver = config.model, config.driver
    seen: Any = dict(relative=config.relative, seconds=config.seconds)
    sizes: Any = dict(hidden=config.hidden, width=config.width, depth=config.depth)
    if name == "sg-ncde":
        if isinstance(front, SavitzkyGolay):
            return SavitzkyGolayNCDE(front, **seen, **sizes, dtype=FLOAT, key=key)
        driver = "matrix"
    channels = 4 if driver == "chart" else 10
    if name == "bnrde-euclidean":
        algebra = Shuffle(channels, 2)
        model = models.BNRDE(algebra, SO(3), window=4, **sizes, dtype=FLOAT, key=key)
    else:
        kind = {"sg-ncde": "ncde", "ncde": "ncde++"}.get(name, name)
        options: Any = dict(dtype=FLOAT, interpolation=None, key=key)
        model = baseline(kind, channels, SO(3), config, **options)
    return RotationForecaster(front, model, driver=driver, **seen)


def _front(config: Config, key: PRNGKeyArray) -> AbstractExtrapolator:
    name = config.extrapolator
    name = FRONTS.get(config.model, name) if name == "default" else name
    if name not in EXTRAPOLATORS:
        raise ValueError(
            f"`extrapolator` must be 'default' or one of {list(EXTRAPOLATORS)}, got "
            f"{name!r}."
        )
    return EXTRAPOLATORS[name](config, key)


def _drivers(config: Config, key: PRNGKeyArray) -> Any:
    """The bank of laws of motion, or only the extrapolator asked for."""
    if config.extrapolator != "default":
        return [_front(config, key)]
    return MotionBank() if config.bodies else MotionBank(bodies=())


def forecast(model: AbstractExtrapolator, arrays: Sequence[Any]) -> Any:
    """Rotations `(windows, points, 3, 3)` of a batch of windows, from times, rotations
    and mask of their observations and the times of all points."""
    ts, rotations, mask, times = arrays
    return jax.vmap(model)(ts, rotations, times, mask)

"""The models of the table, and what continues their observations."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import PRNGKeyArray

from arborax import models
from arborax.algebra import Shuffle
from arborax.geometry import Euclidean, Product, SO

from ..baselines import baseline
from .config import Config
from .extrapolators import AbstractExtrapolator, ConstantVelocity, Hermite, Hold, Linear
from .filter_bank import BODIES, FilterBank
from .forecaster import CHANNELS, RotationForecaster, SavitzkyGolayNCDE
from .learned_extrapolators import MLPExtrapolator, SavitzkyGolay


FLOAT = np.dtype(np.float32)
# What continues the observations in front of a model; all but `hold` are trained with
# it. The last three are those of the published rows.
FRONTS: dict[str, Callable[[Config, PRNGKeyArray], AbstractExtrapolator]] = {
    "hold": lambda config, key: Hold(),
    "sg": lambda config, key: SavitzkyGolay(
        2, knots=config.observed, dtype=FLOAT, key=key
    ),
    "mlp": lambda config, key: MLPExtrapolator(
        config.observed, seconds=config.seconds, dtype=FLOAT, key=key
    ),
    "bank": lambda config, key: FilterBank(
        learned=True, seconds=config.seconds, dtype=FLOAT
    ),
    "sg3": lambda config, key: SavitzkyGolay(3),
    "hermite": lambda config, key: Hermite(relative=config.relative),
}
PUBLISHED_FRONTS = {
    "bnrde-euclidean": "mlp",
    "sg-ncde": "sg3",
    **dict.fromkeys(("stacked-xlstm", "nrde", "xlstm", "gru", "ncde"), "hermite"),
}
REFERENCES: dict[str, AbstractExtrapolator] = {
    "hold": Hold(),
    "constant velocity": ConstantVelocity(),
    "linear": Linear(),
    "Hermite (absolute chart)": Hermite(relative=False),
    **{f"Savitzky-Golay {order}": SavitzkyGolay(order) for order in (1, 2, 3)},
    "filter bank, 60 laws": FilterBank(),
    "filter bank, 84 laws": FilterBank(bodies=BODIES),
}


def front_of(config: Config) -> str:
    """The name of the front of a model. M-NODE has none: it sees one orientation. The
    SG-NCDE is driven by the derivative of a Savitzky-Golay polynomial."""
    name, model = config.front, config.model
    if model == "mnode":
        return "hold"
    if name == "published":
        name = PUBLISHED_FRONTS.get(model, "hold")
    if name not in FRONTS:
        raise ValueError(
            f"`front` must be 'published' or one of {list(FRONTS)}, got {name!r}."
        )
    return "sg" if model == "sg-ncde" and not name.startswith("sg") else name


def make_model(config: Config, *, key: PRNGKeyArray) -> AbstractExtrapolator:
    """The model of a configuration with fresh weights, in single precision."""
    name, driver = config.model, config.driver
    first, second = jr.split(key)
    front = FRONTS[front_of(config)](config, first)
    if name == "front":
        return front
    sizes: Any = dict(hidden=config.hidden, width=config.width, depth=config.depth)
    seen: Any = dict(relative=config.relative, seconds=config.seconds)
    seen["correct"] = config.correct
    options: Any = dict(dtype=FLOAT, key=second)
    if name == "mnode":
        # Relative to a later orientation it would see velocity.
        sizes = dict(width=config.width, depth=config.depth, substeps=config.substeps)
        model = models.MNODE(**sizes, dtype=FLOAT, key=key)
        seen.update(relative=False, correct=False)
        return RotationForecaster(front, model, driver="matrix", **seen)
    if name == "sg-ncde":
        assert isinstance(front, SavitzkyGolay)
        return SavitzkyGolayNCDE(front, **seen, **sizes, **options)
    channels, output = CHANNELS[driver], 3 if config.correct else SO(3)
    if name == "bnrde":
        model = _on_rotations(config, channels, second)
    elif name == "bnrde-euclidean":
        algebra, window = Shuffle(channels, 2), config.window
        model = models.BNRDE(algebra, output, window=window, **sizes, **options)
    else:
        kind = {"ncde": "ncde++"}.get(name, name)
        model = baseline(kind, channels, output, config, interpolation=None, **options)
    return RotationForecaster(front, model, driver=driver, **seen)


def _on_rotations(config: Config, channels: int, key: PRNGKeyArray) -> models.BNRDE:
    """A B-NRDE with states in SO(3), beside a memory of `hidden` numbers, that begins
    near the identity and moves a tenth as fast as its weights say."""
    memory = config.hidden
    geometry = Product(SO(3), Euclidean(memory)) if memory else SO(3)
    model = models.BNRDE(
        Shuffle(channels, 2),
        geometry=geometry,
        window=config.window,
        width=config.width,
        depth=config.depth,
        dtype=FLOAT,
        key=key,
    )

    def ends(m: Any) -> list[Any]:
        layers = m.vector_field.mlp.layers[-1], m.initial.layers[-1]
        return [part for layer in layers for part in (layer.weight, layer.bias)]

    slow = np.tile([0.1] * 3 + [1.0] * memory, channels).astype(FLOAT)
    near = np.array([0.1] * 6 + [1.0] * memory, FLOAT)
    eye = jnp.zeros(near.shape, FLOAT).at[jnp.array([0, 4])].set(1)
    weight, bias, first, level = ends(model)
    changed = slow[:, None] * weight, slow * bias, near[:, None] * first
    return eqx.tree_at(ends, model, [*changed, near * level + eye])


def forecast(model: AbstractExtrapolator, arrays: Sequence[Any]) -> Any:
    """Rotations `(windows, points, 3, 3)` of a batch of windows, from times, rotations
    and mask of their observations and the times of all points."""
    ts, rotations, mask, times = arrays
    return jax.vmap(model)(ts, rotations, times, mask)

"""Sequence models as forecasters of rotations."""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from arborax.geometry import SO
from arborax.models import AbstractModel, NCDE
from arborax.paths import SampledPath

from .extrapolators import AbstractExtrapolator
from .learned_extrapolators import SavitzkyGolay
from .savitzky_golay import RotationChart


class RotationForecaster(AbstractExtrapolator):
    r"""A model with outputs in $SO(3)$ along an extrapolated path.

    The `front` continues the observations to all times; with `relative` everything is
    turned so that the middle observation is the identity, which makes any model commute
    with rotations of space. The driver is time and the rotation vector,
    `driver="chart"`, or the nine entries, `"matrix"`. Time runs from 0 to 1, or with
    `seconds` in its own unit up to zero at the last sample, so that its first value
    shows the rate.
    """

    front: AbstractExtrapolator
    model: AbstractModel
    driver: str = eqx.field(static=True)
    relative: bool = eqx.field(static=True)
    seconds: bool = eqx.field(static=True)

    def __init__(
        self,
        front: AbstractExtrapolator,
        model: AbstractModel,
        *,
        driver: Literal["chart", "matrix"] = "chart",
        relative: bool = True,
        seconds: bool = False,
    ):
        """**Arguments:**

        - `front`: continues the observations.
        - `model`: with 4 channels (`"chart"`) or 10 (`"matrix"`) and outputs in SO(3).
        - `driver`, `relative`, `seconds`: see above.
        """
        channels = {"chart": 4, "matrix": 10}
        if driver not in channels:
            raise ValueError(f"`driver` is 'chart' or 'matrix', got {driver!r}.")
        if model.channels != channels[driver]:
            raise ValueError(
                f"driver={driver!r} has {channels[driver]} channels, time included, "
                f"but the model was built for {model.channels}."
            )
        self.front, self.model = front, model
        self.driver, self.relative, self.seconds = driver, relative, seconds

    def __call__(self, ts, rotations, times, mask=None):
        centre = _centre(ts, rotations, mask, self.relative)
        path = jnp.matmul(centre.T[None], self.front(ts, rotations, times, mask))
        if self.driver == "chart":
            eye = jnp.eye(3, dtype=path.dtype)
            values = jax.vmap(lambda r: SO(3).log(eye, r))(path)
        else:
            values = path.reshape(-1, 9)
        clock = _clock(times, ts, times, self.seconds).astype(values.dtype)
        xs = jnp.concatenate([clock[:, None], values], axis=1)
        out = self.model(SampledPath(times, xs, check=False))
        return jnp.matmul(centre[None], out)


class SavitzkyGolayNCDE(AbstractExtrapolator):
    """The neural controlled differential equation along a Savitzky-Golay path, driven
    by time and the exact derivative of the path."""

    front: SavitzkyGolay
    model: NCDE
    relative: bool = eqx.field(static=True)
    seconds: bool = eqx.field(static=True)

    def __init__(
        self,
        front: SavitzkyGolay | None = None,
        *,
        relative: bool = True,
        seconds: bool = False,
        hidden: int = 16,
        width: int = 32,
        depth: int = 3,
        **kwargs: Any,
    ):
        """**Arguments:**

        - `front`: default order 3, equal weights.
        - `relative`, `seconds`: as `RotationForecaster`.
        - `hidden`, `width`, `depth` and further arguments: as
            [`arborax.models.NCDE`][].
        """
        self.front = SavitzkyGolay(3) if front is None else front
        options = dict(hidden=hidden, width=width, depth=depth)
        self.model = NCDE(10, SO(3), **options, **kwargs)
        self.relative, self.seconds = relative, seconds

    def __call__(self, ts, rotations, times, mask=None):
        centre = _centre(ts, rotations, mask, self.relative)
        turned = jnp.matmul(centre.T[None], rotations)
        # The fit runs in the clock of the driver.
        seen, clock = (_clock(t, ts, times, self.seconds) for t in (ts, times))
        fit = self.front.fit(seen, turned, mask)

        def velocity(s, piece):
            t, dt = piece
            turn = fit.derivative(t + s * dt).reshape(-1)
            return dt * jnp.concatenate([jnp.ones((1,), turn.dtype), turn])

        start = fit.evaluate(clock[0]).reshape(-1)
        x0 = jnp.concatenate([clock[:1].astype(start.dtype), start])
        pieces = (clock[:-1], jnp.diff(clock))
        return jnp.matmul(centre[None], self.model.along(x0, pieces, velocity))


def _clock(t: Array, ts: Array, times: Array, seconds: bool) -> Float[Array, " _"]:
    """The time channel at `t`: see `RotationForecaster`."""
    return t - ts[-1] if seconds else (t - times[0]) / (times[-1] - times[0])


def _centre(ts, rotations, mask, relative: bool) -> Float[Array, "3 3"]:
    if not relative:
        return jnp.eye(3, dtype=rotations.dtype)
    return RotationChart(ts, rotations, mask).centre

"""Sequence models as forecasters of rotations."""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from arborax.geometry import SO
from arborax.models import AbstractModel, NCDE
from arborax.paths import SampledPath

from .extrapolators import AbstractExtrapolator, Hold, Rotations
from .learned_extrapolators import SavitzkyGolay
from .savitzky_golay import RotationChart


CHANNELS = {"chart": 7, "matrix": 10}


class RotationForecaster(AbstractExtrapolator):
    r"""A model along an extrapolated path of rotations.

    The `front` continues the observations to all times; everything is turned so that
    the middle observation is the identity, which makes any model commute with rotations
    of space. The driver is time and

    * `"chart"`: the rotation vector of the front's path, and ten times that from the
      front to what was observed, zero beyond the observations: the noise;
    * `"matrix"`: the nine entries of the front's path, as published.

    Time runs from 0 to 1, or with `seconds` as it is, zero at the last sample: its
    first value then tells the rate. A model with three outputs or with states in SO(3)
    (the first factor, if there are several) corrects the front, $R = F\,Z$ with $F$
    the front's path and $Z$ the state or the exponential of a tenth of the output.
    With `correct=False` the output is a rotation and the forecast.
    """

    front: AbstractExtrapolator
    model: AbstractModel
    driver: str = eqx.field(static=True)
    relative: bool = eqx.field(static=True)
    seconds: bool = eqx.field(static=True)
    correct: bool = eqx.field(static=True)

    def __init__(
        self,
        front: AbstractExtrapolator,
        model: AbstractModel,
        *,
        driver: Literal["chart", "matrix"] = "chart",
        relative: bool = True,
        seconds: bool = False,
        correct: bool = True,
    ):
        """**Arguments:**

        - `front`: continues the observations.
        - `model`: with 7 channels (`"chart"`) or 10 (`"matrix"`).
        - `relative`: whether the middle observation becomes the identity.
        - `driver`, `seconds`, `correct`: see above.
        """
        if driver not in CHANNELS:
            raise ValueError(f"`driver` is 'chart' or 'matrix', got {driver!r}.")
        if model.channels != CHANNELS[driver]:
            raise ValueError(
                f"driver={driver!r} has {CHANNELS[driver]} channels, time included, "
                f"but the model was built for {model.channels}."
            )
        self.front, self.model, self.driver = front, model, driver
        self.relative, self.seconds, self.correct = relative, seconds, correct

    def __call__(self, ts, rotations, times, mask=None):
        centre = _centre(ts, rotations, mask, self.relative)
        front = self.front(ts, rotations, times, mask)
        path = jnp.matmul(centre.T[None], front)
        clock = _clock(times, ts, times, self.seconds).astype(path.dtype)
        if self.driver == "chart":
            seen = Hold()(ts, rotations, times, mask)
            eye = jnp.broadcast_to(jnp.eye(3, dtype=path.dtype), path.shape)
            chart = jax.vmap(SO(3).log)(eye, path)
            noise = jnp.where((times <= ts[-1])[:, None, None], seen, front)
            noise = 10 * jax.vmap(SO(3).log)(front, noise)
            values = jnp.concatenate([chart, noise], axis=1)
        else:
            values = path.reshape(-1, 9)
        xs = jnp.concatenate([clock[:, None], values], axis=1)
        out = jax.tree.leaves(self.model(SampledPath(times, xs, check=False)))[0]
        return corrected(front, out) if self.correct else jnp.matmul(centre[None], out)


def corrected(front: Rotations, out: Array) -> Rotations:
    """The front's path times the correction; see `RotationForecaster`."""
    if out.ndim == 3:
        return jnp.matmul(front, out)
    return jax.vmap(lambda r, v: SO(3).exp(r, 0.1 * v))(front, out)


class SavitzkyGolayNCDE(AbstractExtrapolator):
    """The neural controlled differential equation along a Savitzky-Golay path, driven
    by time and the exact derivative of the path."""

    front: SavitzkyGolay
    model: NCDE
    relative: bool = eqx.field(static=True)
    seconds: bool = eqx.field(static=True)
    correct: bool = eqx.field(static=True)

    def __init__(
        self,
        front: SavitzkyGolay | None = None,
        *,
        relative: bool = True,
        seconds: bool = False,
        correct: bool = True,
        hidden: int = 16,
        width: int = 32,
        depth: int = 3,
        **kwargs: Any,
    ):
        """**Arguments:**

        - `front`: default order 3, equal weights.
        - `relative`, `seconds`, `correct`: as `RotationForecaster`.
        - `hidden`, `width`, `depth` and further arguments: as
            [`arborax.models.NCDE`][].
        """
        self.front = SavitzkyGolay(3) if front is None else front
        options = dict(hidden=hidden, width=width, depth=depth)
        self.model = NCDE(10, 3 if correct else SO(3), **options, **kwargs)
        self.relative, self.seconds, self.correct = relative, seconds, correct

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
        out = self.model.along(x0, pieces, velocity)
        if not self.correct:
            return jnp.matmul(centre[None], out)
        path = jnp.matmul(centre[None], jax.vmap(fit.evaluate)(clock))
        return corrected(path, out)


def _clock(t: Array, ts: Array, times: Array, seconds: bool) -> Float[Array, " _"]:
    """The time channel at `t`: see `RotationForecaster`."""
    return t - ts[-1] if seconds else (t - times[0]) / (times[-1] - times[0])


def _centre(ts, rotations, mask, relative: bool) -> Float[Array, "3 3"]:
    if not relative:
        return jnp.eye(3, dtype=rotations.dtype)
    return RotationChart(ts, rotations, mask).centre

"""Neural controlled differential equation along a smoothed rotation path."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from ..geometry import AbstractGeometry, SO
from ..paths import SampledPath
from ._base import AbstractModel, check_path
from ._ncde import Core, solve_pieces
from ._savitzky_golay import SavitzkyGolayRotation


class SGNCDE(AbstractModel):
    """A neural CDE driven by time and a Savitzky-Golay path through rotations.

    The first `observed` samples are fitted by [`SavitzkyGolayRotation`][]; the fit
    drives the equation over all times of the path, so that outputs after the observed
    part are forecasts. Values after it are ignored. Within the observed part the fit is
    not causal.
    """

    core: Core
    raw_weights: Float[Array, " observed"] | None
    observed: int = eqx.field(static=True)
    order: int = eqx.field(static=True)

    def __init__(
        self,
        output: int | AbstractGeometry | None = None,
        *,
        observed: int = 12,
        order: int = 3,
        learn_weights: bool = False,
        hidden: int = 16,
        width: int = 32,
        depth: int = 3,
        key: PRNGKeyArray,
        **kwargs,
    ):
        """**Arguments:**

        - `output`: number of outputs, or their manifold; default `SO(3)`.
        - `observed`: number of samples of the path that are seen.
        - `order`: of the polynomial.
        - `learn_weights`: learn a positive weight for each observed sample.
        - `hidden`, `width`, `depth` and further arguments: as
            [`arborax.models.NCDE`][].
        - `key`: a JAX random key.
        """
        first, second = jr.split(key)
        output = SO(3) if output is None else output
        self.core = Core(
            10, output, hidden=hidden, width=width, depth=depth, key=first, **kwargs
        )
        self.raw_weights = None
        if learn_weights:
            dtype = kwargs.get("dtype") or jnp.result_type(float)
            self.raw_weights = 0.1 * jr.normal(second, (observed,), dtype)
        self.observed, self.order = observed, order

    @property
    def channels(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Time and the nine entries of a rotation."""
        return 10

    @property
    def calculus(self) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Brackets are ignored."""
        return None

    def smooth(self, path: SampledPath) -> SavitzkyGolayRotation:
        """The fit to the observed part of a path."""
        count = self.observed
        if path.num_times < count:
            raise ValueError(
                f"the model sees the first {count} samples, but the path has "
                f"{path.num_times}."
            )
        weights = self.raw_weights
        if weights is not None:
            weights = jax.nn.softplus(weights)
        rotations = path.xs[:count, 1:].reshape(count, 3, 3)
        return SavitzkyGolayRotation(
            path.xs[:count, 0], rotations, order=self.order, weights=weights
        )

    def __call__(self, path: SampledPath) -> PyTree[Array]:
        """Outputs at all times of one path with channels time and rotation, row by
        row."""
        path = check_path(path, self.channels)
        fit = self.smooth(path)
        clock = path.xs[:, 0]

        def velocity(s, piece):
            t, dt = piece
            turn = fit.derivative(t + s * dt).reshape(-1)
            return dt * jnp.concatenate([jnp.ones((1,), turn.dtype), turn])

        x0 = jnp.concatenate([clock[:1], fit.evaluate(clock[0]).reshape(-1)])
        return solve_pieces(self.core, x0, (clock[:-1], jnp.diff(clock)), velocity)

"""The signature of scaled paths, made robust: an objective of its own."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from arborax.kernels import SignatureKernel
from arborax.training.objectives import squared_distance


class RobustSignature(eqx.Module):
    """The signature of $(t, x)$ to depth 5, $x$ over its final standard deviation,
    each path dilated until its norm is bounded ([`arborax.robust_normalisation`][]);
    coordinates less their means under the data, and over their standard deviations."""

    stride: int = eqx.field(static=True)
    scale: float = eqx.field(static=True)
    mean: np.ndarray
    deviation: np.ndarray

    def __init__(self, values: Float[np.ndarray, "paths times 1"], stride: int = 8):
        self.stride = stride
        self.scale = float(values[:, -1].std())
        blocks = range(0, len(values), 1024)
        raw = eqx.filter_jit(lambda x: self._raw(x))
        parts = [np.asarray(raw(jnp.asarray(values[i : i + 1024]))) for i in blocks]
        found = np.concatenate(parts)
        self.mean = found.mean(axis=0)
        # The time alone is the same in every path.
        self.deviation = np.maximum(found.std(axis=0), 1e-3 * found.std())

    def _raw(self, values: Array) -> Array:
        x = values[:, :: self.stride] / self.scale
        return SignatureKernel("geometric", 5, add_time=True).features(x, robust=True)

    def distance(self, values: Float[Array, "paths times 1"]) -> Float[Array, ""]:
        """As that of `PathFeatures`."""
        features = (self._raw(values) - self.mean[None]) / self.deviation[None]
        return squared_distance(features)

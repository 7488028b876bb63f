"""Features of objectives of its own: robust signatures, local realised variance."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from arborax.kernels import cosine, SignatureKernel
from arborax.training.objectives import PathFeatures, squared_distance


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


class LocalFeatures(eqx.Module):
    r"""`PathFeatures` and one more group: cosines of logarithms of local realised
    variances and their changes.

    $L_j$ is the standardised logarithm of the sum of squared steps over block $j$, and
    $R_j$ the return of the block over its spread. A function is the cosine of a random
    combination of $L_j$, of the standardised change $L_{j+k} - L_j$ at a lag $k$ of 1,
    2, 4, 8 or 16 blocks, and of $R_j$; a third of the functions see the change only, a
    third $L_j$ only. All groups have total variance one under the data.
    """

    path: PathFeatures
    block: int = eqx.field(static=True)
    small: float = eqx.field(static=True)
    places: np.ndarray
    lags: np.ndarray
    weights: np.ndarray
    phases: np.ndarray
    middle: np.ndarray
    width: np.ndarray
    change: np.ndarray
    spread: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray

    def __init__(
        self,
        values: Float[np.ndarray, "paths times 1"],
        *,
        block: int,
        count: int = 768,
        seed: int = 1,
        **options: Any,
    ):
        """**Arguments:**

        - `values`: data whose mean features are the target.
        - `block`: steps per block; it divides the steps of the paths.
        - `count`: number of functions.
        - `seed`: fixes frequencies, phases, places and lags.
        - `options`: of `PathFeatures`.
        """
        self.path = PathFeatures(values, **options)
        self.block = block
        rng, dtype = np.random.default_rng(seed), values.dtype
        blocks = (values.shape[1] - 1) // block
        energy = np.square(np.diff(values[..., 0], axis=1))
        energy = energy.reshape(len(values), blocks, block).sum(axis=2)
        self.small = float(1e-3 * np.median(energy))
        lags = [lag for lag in (1, 2, 4, 8, 16) if lag < blocks]
        self.lags = rng.choice(lags, count)
        self.places = rng.integers(0, blocks - self.lags)
        weights = rng.standard_normal((3, count)) * rng.choice([1.0, 2.0], count)
        third = count // 3
        weights[[0, 2], :third] = 0
        weights[1:, third : 2 * third] = 0
        self.weights = (weights / (2 * np.pi)).astype(dtype)
        self.phases = rng.uniform(size=count).astype(dtype)
        logs = np.log(energy + self.small)
        self.middle, self.width = logs.mean(axis=0), logs.std(axis=0)
        changes = logs[:, self.places + self.lags] - logs[:, self.places]
        self.change = changes.std(axis=0)
        self.spread = np.diff(values[:, ::block, 0], axis=1).std(axis=0)
        self.mean, self.deviation = np.zeros(count, dtype), np.ones(count, dtype)
        local = eqx.filter_jit(lambda me, x: me._local(x))
        parts = [
            np.asarray(local(self, jnp.asarray(values[i : i + 1024])))
            for i in range(0, len(values), 1024)
        ]
        raw = np.concatenate(parts)
        self.mean = raw.mean(axis=0)
        self.deviation = np.maximum(raw.std(axis=0), 0.1) * np.sqrt(count, dtype=dtype)

    def _local(self, values: Array) -> Array:
        x = values[..., 0]
        energy = jnp.square(jnp.diff(x, axis=1))
        energy = energy.reshape(len(x), -1, self.block).sum(axis=2)
        logs = jnp.log(energy + self.small)
        level = (logs - self.middle[None]) / self.width[None]
        change = logs[:, self.places + self.lags] - logs[:, self.places]
        back = jnp.diff(x[:, :: self.block], axis=1) / self.spread[None]
        seen = (level[:, self.places], change / self.change[None], back[:, self.places])
        angle = sum(w[None] * part for w, part in zip(self.weights, seen))
        found = cosine(angle + self.phases[None]) - self.mean[None]
        return found / self.deviation[None]

    def distance(self, values: Float[Array, "paths times 1"]) -> Float[Array, ""]:
        """As that of `PathFeatures`."""
        features = jnp.concatenate([self.path(values), self._local(values)], axis=1)
        return squared_distance(features)

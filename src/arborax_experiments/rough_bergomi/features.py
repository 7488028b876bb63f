"""Bounded features of paths that see levels, brackets and their order in time."""

import math
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from arborax.kernels import cosine, RandomFourierSignature, SignatureKernel

from ..generation import squared_distance


SMALL = 1e-6  # of a realised variance, about that of a quiet step


class PathFeatures(eqx.Module):
    r"""Random Fourier features of paths and their brackets, standardised by data.

    Three groups, each of total variance one under the data, minus their means:

    * signature features of the thinned path $(t, x)$: left-point sums along words
      (`kind="path"`), or along trees and with the bracket (`kind="branched"`);
    * cosines of $x_t / s_t$ at random times, $s_t$ the spread of the data at that time.
      Signature features of first order see the end of the path only, and those of
      higher order the scale of all of it; these see early times as well as late ones;
    * cosines of $x_t / s_t$ and $\ell_t$ together, the standardised logarithm of the
      bracket up to $t$: the law of realised variance, and of prices given it.

    Brackets are those given, otherwise sums of squared steps of the whole path.

    Cost: that of [`arborax.RandomFourierSignature`][] and one cosine per path and
    cylinder.
    """

    signature: RandomFourierSignature
    kind: Literal["path", "branched"] = eqx.field(static=True)
    stride: int = eqx.field(static=True)
    places: np.ndarray
    weights: np.ndarray
    phases: np.ndarray
    spread: np.ndarray
    middle: np.ndarray
    width: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    centre: np.ndarray

    def __init__(
        self,
        values: Float[np.ndarray, "paths times 1"],
        brackets: Float[np.ndarray, "paths steps 1 1"] | None = None,
        *,
        kind: Literal["path", "branched"] = "path",
        features: int = 96,
        cylinders: int = 768,
        stride: int = 8,
        seed: int = 0,
    ):
        """**Arguments:**

        - `values`, `brackets`: data whose mean features are the target.
        - `kind`: see above.
        - `features`: signature features for each level.
        - `cylinders`: number of cosines at single times; a third see the level only.
        - `stride`: the features look at every `stride`-th sample.
        - `seed`: fixes frequencies, phases and times.
        """
        dtype = values.dtype
        self.kind, self.stride = kind, stride
        blocks = range(0, len(values), 1024)
        parts = [
            self._thin(
                jnp.asarray(values[i : i + 1024]),
                None if brackets is None else jnp.asarray(brackets[i : i + 1024]),
            )
            for i in blocks
        ]
        points, energy = (np.concatenate(p) for p in zip(*parts))
        rng = np.random.default_rng(seed)
        self.places = rng.integers(0, energy.shape[1], cylinders)
        scale = rng.choice([1.0, 3.0], (1, cylinders)) / (2 * math.pi)
        weights = scale * rng.standard_normal((2, cylinders))
        alone = np.arange(cylinders) < cylinders // 3
        self.weights = np.where([[False], [True]] & alone, 0, weights).astype(dtype)
        self.phases = rng.uniform(size=cylinders).astype(dtype)
        low, high = np.quantile(points[:, 1:], [0.16, 0.84], axis=0)
        self.spread = ((high - low) / 2).astype(dtype)
        logs = np.log(energy + SMALL)
        self.middle, self.width = logs.mean(axis=0), logs.std(axis=0)
        raw = np.asarray(self._cylinders(jnp.asarray(points), jnp.asarray(energy)))
        self.mean = raw.mean(axis=0)
        sizes = np.where(alone, alone.sum(), (~alone).sum())
        self.deviation = np.maximum(raw.std(axis=0), 0.1) * np.sqrt(sizes, dtype=dtype)
        self.signature = RandomFourierSignature(
            1,
            key=jr.PRNGKey(seed),
            kind="ito" if kind == "path" else "branched",
            features=features,
            dtype=dtype,
        )
        head, steps = self._control(
            jnp.asarray(points[:2048]), jnp.asarray(energy[:2048])
        )
        self.signature = self.signature.fit(head, brackets=steps)
        self.centre = np.zeros(self.signature.size, dtype)
        signature = eqx.filter_jit(lambda me, *a: me._signature(*a))
        sums = [signature(self, *map(jnp.asarray, part)).sum(axis=0) for part in parts]
        self.centre = np.asarray(sum(sums) / len(values))

    def _thin(
        self, values: Array, brackets: Array | None
    ) -> tuple[Float[Array, "paths points"], Float[Array, "paths steps"]]:
        """Thinned values and the bracket up to each thinned time but the first."""
        x = values[..., 0]
        steps = jnp.square(jnp.diff(x, axis=1))
        if brackets is not None:
            steps = brackets[..., 0, 0]
        blocks = steps.reshape(x.shape[0], -1, self.stride).sum(axis=-1)
        return x[:, :: self.stride], jnp.cumsum(blocks, axis=1)

    def _cylinders(self, points: Array, energy: Array) -> Array:
        level = points[:, 1:] / self.spread[None]
        logs = (jnp.log(energy + SMALL) - self.middle[None]) / self.width[None]
        first, second = self.weights[:, None]
        angle = level[:, self.places] * first + logs[:, self.places] * second
        return cosine(angle + self.phases[None])

    def _control(self, points: Array, energy: Array) -> tuple[Array, Array | None]:
        """The path whose signature is taken, and its brackets."""
        if self.kind == "path":
            return points[..., None], None
        before = jnp.pad(energy, [(0, 0), (1, 0)])
        return points[..., None], jnp.diff(before, axis=1)[..., None, None]

    def _signature(self, points: Array, energy: Array) -> Array:
        path, brackets = self._control(points, energy)
        return self.signature.features(path, brackets=brackets) - self.centre[None]

    def __call__(
        self,
        values: Float[Array, "paths times 1"],
        brackets: Float[Array, "paths steps 1 1"] | None = None,
    ) -> Float[Array, "paths features"]:
        """Features less their means under the data."""
        points, energy = self._thin(values, brackets)
        cylinders = self._cylinders(points, energy) - self.mean[None]
        cylinders = cylinders / self.deviation[None]
        return jnp.concatenate([self._signature(points, energy), cylinders], axis=1)

    def distance(
        self,
        values: Float[Array, "paths times 1"],
        brackets: Float[Array, "paths steps 1 1"] | None = None,
    ) -> Float[Array, ""]:
        """Squared distance of the law of `values` from the data, without bias."""
        return squared_distance(self(values, brackets))


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

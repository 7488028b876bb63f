"""Objectives of generators: how far the law of generated paths is from data.

Bounded features of paths that see levels, brackets and their order in time, and the
squared distance of their means, without bias.
"""

import math
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from ..kernels import cosine, RandomFourierSignature


SMALL = 1e-6  # of a realised variance, about that of a quiet step


def squared_distance(features: Float[Array, "paths features"]) -> Float[Array, ""]:
    """Squared norm of the mean of centred features, without the bias of small batches.
    May be negative."""
    count = features.shape[0]
    total = jnp.sum(jnp.square(jnp.sum(features, axis=0)))
    return (total - jnp.sum(jnp.square(features))) / (count * (count - 1))


class PathFeatures(eqx.Module):
    r"""Random Fourier features of paths and their brackets, standardised by data.

    Three groups, each of total variance one under the data, minus their means:

    * signature features of the thinned path $(t, x)$: left-point sums along words
      (`kind="path"`), or along trees and with the bracket (`kind="branched"`);
    * cosines of $x_t / s_t$ at random times, $s_t$ the spread of the data at that time.
      Signature features of first order see the end of the path only, and those of
      higher order the scale of all of it; these see early times as well as late ones;
    * cosines of $x_t / s_t$ and $\ell_t$ together, the standardised logarithms of the
      brackets up to $t$: the law of realised variance, and of levels given it.

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
        values: Float[np.ndarray, "paths times channels"],
        brackets: Float[np.ndarray, "paths steps channels channels"] | None = None,
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
        - `stride`: the features look at every `stride`-th sample; it divides the
            number of steps.
        - `seed`: fixes frequencies, phases and times.
        """
        dtype, channels = values.dtype, values.shape[-1]
        self.kind, self.stride = kind, stride
        if (values.shape[1] - 1) % stride:
            raise ValueError(
                f"`stride` {stride} must divide the {values.shape[1] - 1} steps of the "
                "paths."
            )
        blocks = range(0, len(values), 1024)
        parts = [
            self._thin(
                jnp.asarray(values[i : i + 1024]),
                None if brackets is None else jnp.asarray(brackets[i : i + 1024]),
            )
            for i in blocks
        ]
        points, steps = (np.concatenate(p) for p in zip(*parts))
        energy = np.asarray(_energy(jnp.asarray(steps)))
        rng = np.random.default_rng(seed)
        self.places = rng.integers(0, energy.shape[1], cylinders)
        scale = rng.choice([1.0, 3.0], (1, cylinders)) / (2 * math.pi * channels**0.5)
        weights = scale * rng.standard_normal((2, channels, cylinders))
        alone = np.arange(cylinders) < cylinders // 3
        hidden = [[[False]], [[True]]] & alone
        self.weights = np.where(hidden, 0, weights).astype(dtype)
        self.phases = rng.uniform(size=cylinders).astype(dtype)
        low, high = np.quantile(points[:, 1:], [0.16, 0.84], axis=0)
        self.spread = _positive((high - low) / 2).astype(dtype)
        logs = np.log(energy + SMALL)
        self.middle, self.width = logs.mean(axis=0), _positive(logs.std(axis=0))
        raw = np.asarray(self._cylinders(jnp.asarray(points), jnp.asarray(steps)))
        self.mean = raw.mean(axis=0)
        sizes = np.where(alone, alone.sum(), (~alone).sum())
        self.deviation = np.maximum(raw.std(axis=0), 0.1) * np.sqrt(sizes, dtype=dtype)
        self.signature = RandomFourierSignature(
            channels,
            key=jr.PRNGKey(seed),
            kind="ito" if kind == "path" else "branched",
            features=features,
            dtype=dtype,
        )
        head, given = self._control(
            jnp.asarray(points[:2048]), jnp.asarray(steps[:2048])
        )
        self.signature = self.signature.fit(head, brackets=given)
        self.centre = np.zeros(self.signature.size, dtype)
        signature = eqx.filter_jit(lambda me, *a: me._signature(*a))
        sums = [signature(self, *map(jnp.asarray, part)).sum(axis=0) for part in parts]
        self.centre = np.asarray(sum(sums) / len(values))

    def _thin(self, values: Array, brackets: Array | None) -> tuple[Array, Array]:
        """Thinned values, and the brackets of the thinned steps: matrices, or only
        their diagonals if the features need no more."""
        moves = jnp.diff(values, axis=1)
        if self.kind == "path":
            steps = jnp.square(moves)
            if brackets is not None:
                steps = jnp.diagonal(brackets, axis1=-2, axis2=-1)
        else:
            steps = moves[..., :, None] * moves[..., None, :]
            steps = steps if brackets is None else brackets
        shape = (steps.shape[0], -1, self.stride, *steps.shape[2:])
        return values[:, :: self.stride], steps.reshape(shape).sum(axis=2)

    def _cylinders(self, points: Array, steps: Array) -> Array:
        level = points[:, 1:] / self.spread[None]
        logs = jnp.log(_energy(steps) + SMALL) - self.middle[None]
        logs = logs / self.width[None]
        first, second = (weights.T[None] for weights in self.weights)
        angle = level[:, self.places] * first + logs[:, self.places] * second
        return cosine(jnp.sum(angle, axis=-1) + self.phases[None])

    def _control(self, points: Array, steps: Array) -> tuple[Array, Array | None]:
        """The path whose signature is taken, and its brackets."""
        return points, None if self.kind == "path" else steps

    def _signature(self, points: Array, steps: Array) -> Array:
        path, brackets = self._control(points, steps)
        return self.signature.features(path, brackets=brackets) - self.centre[None]

    def __call__(
        self,
        values: Float[Array, "paths times channels"],
        brackets: Float[Array, "paths steps channels channels"] | None = None,
    ) -> Float[Array, "paths features"]:
        """Features less their means under the data."""
        points, steps = self._thin(values, brackets)
        cylinders = self._cylinders(points, steps) - self.mean[None]
        cylinders = cylinders / self.deviation[None]
        return jnp.concatenate([self._signature(points, steps), cylinders], axis=1)

    def distance(
        self,
        values: Float[Array, "paths times channels"],
        brackets: Float[Array, "paths steps channels channels"] | None = None,
    ) -> Float[Array, ""]:
        """Squared distance of the law of `values` from the data, without bias."""
        return squared_distance(self(values, brackets))


def _energy(steps: Array) -> Float[Array, "paths steps channels"]:
    """Brackets of each channel from the start, from matrices or diagonals by step."""
    if steps.ndim == 4:
        steps = jnp.diagonal(steps, axis1=-2, axis2=-1)
    return jnp.cumsum(steps, axis=1)


def _positive(values: np.ndarray) -> np.ndarray:
    """Ones in place of zeros, for what does not vary."""
    return np.where(values > 0, values, 1).astype(values.dtype)

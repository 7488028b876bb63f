"""Bounded features of paths: iterated sums, values at single times, and steps."""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from arborax.kernels import cosine, RandomFourierSignature


class PathFeatures(eqx.Module):
    r"""Random Fourier features of paths in several coordinates, standardised by data.

    Three groups, each of total variance one under the data, times its weight:

    * signature features of the path ([`arborax.RandomFourierSignature`][], left-point
      sums or trees with brackets);
    * cylinders $\cos(a \cdot x_t / s_t + \varphi)$ at random times, with the spread
      $s_t$ of the data at that time: early times count as much as late ones, where
      signature features measure all of the path by one scale;
    * steps: the mean over the path of
      $\cos(a \cdot x_t / s + b \cdot \Delta x_t / \delta_t + c t + \varphi)$: the law
      of the next step given where the path is, hence drift and bracket.

    Cost: one cosine per path, time and feature for each group but the second.
    """

    signature: RandomFourierSignature
    places: np.ndarray
    directions: np.ndarray
    phases: np.ndarray
    spread: np.ndarray
    level: np.ndarray
    move: np.ndarray
    clock: np.ndarray
    step_phases: np.ndarray
    overall: np.ndarray
    delta: np.ndarray
    deviation: np.ndarray

    def __init__(
        self,
        paths: Float[Array, "paths times channels"],
        brackets: Any = None,
        *,
        kind: str = "ito",
        features: int = 192,
        scales: tuple[float, ...] = (0.3, 1.0, 2.0),
        weights: tuple[float, ...] = (1.0, 3.0),
        seed: int = 0,
    ):
        """**Arguments:**

        - `paths`, `brackets`: the data that set all scales.
        - `kind`: `"ito"` or `"branched"`, of the signature features.
        - `features`: of each level of the signature; there are twice as many cylinders
            and four times as many steps: fewer than the ways in which the law of a step
            can depend on the point would leave some of these unseen.
        - `scales`: frequencies of the signature features.
        - `weights`: of the second and the third group in squared distances; the first
            has weight one.
        - `seed`: fixes frequencies, phases and times.
        """
        channels, dtype = paths.shape[-1], paths.dtype
        values = np.asarray(paths)
        self.signature = RandomFourierSignature(
            channels,
            key=jr.PRNGKey(seed),
            kind=kind,  # pyright: ignore
            features=features,
            scales=scales,
            dtype=dtype,
        ).fit(paths, brackets=brackets)
        rng = np.random.default_rng(seed)
        count = values.shape[1] - 1

        def directions(size: int) -> np.ndarray:
            """Random unit vectors times the frequencies in turn."""
            vectors = rng.standard_normal((channels, size))
            vectors /= np.linalg.norm(vectors, axis=0)
            return vectors * rng.choice([0.7, 1.5, 3.0], size) / (2 * math.pi)

        # Half of the times lie near the start, where the law changes fastest.
        single, local = 2 * features, 4 * features
        power = np.where(np.arange(single) % 2 == 0, 1.0, 2.0)
        places = (count * rng.uniform(size=single) ** power).astype(int)
        self.places = 1 + np.minimum(places, count - 1)
        self.directions = directions(single).astype(dtype)
        self.phases = rng.uniform(size=single).astype(dtype)
        self.spread = values.std(axis=0)[self.places].T
        self.move = directions(local).astype(dtype)
        # A quarter see the step alone, the others also its place and time.
        seen = np.arange(local) % 4 > 0
        self.level = (seen * directions(local)).astype(dtype)
        self.clock = (seen * rng.standard_normal(local) / 2).astype(dtype)
        self.step_phases = rng.uniform(size=local).astype(dtype)
        self.overall = values.std(axis=(0, 1))
        self.delta = np.diff(values, axis=1).std(axis=0)
        self.deviation = np.ones((single + local,), dtype)
        raw = np.asarray(eqx.filter_jit(self._others.__func__)(self, paths))
        deviation = np.maximum(raw.std(axis=0), 0.05 * raw.std(axis=0).max())
        sizes = np.asarray([single, local])
        share = np.repeat(np.sqrt(np.maximum(weights, 1e-12) / sizes), sizes)
        self.deviation = (deviation / share).astype(dtype)

    def _others(self, paths: Array) -> Float[Array, "paths _"]:
        # Frequencies in the units of the data, so that no array is divided.
        single = jnp.take(paths, jnp.asarray(self.places), axis=1)
        weights = jnp.asarray(self.directions / self.spread)
        angle = jnp.einsum("bfc,cf->bf", single, weights)
        cylinders = cosine(angle + self.phases[None])
        level = jnp.asarray(self.level / self.overall[:, None])
        moves = jnp.diff(paths, axis=1) / self.delta[None]
        turns = jnp.einsum("btc,cf->btf", paths[:, :-1], level)
        turns = turns + jnp.einsum("btc,cf->btf", moves, jnp.asarray(self.move))
        times = np.linspace(0, 1, moves.shape[1], dtype=self.clock.dtype)
        offset = times[:, None] * self.clock[None] + self.step_phases[None]
        steps = jnp.mean(cosine(turns + offset[None]), axis=1)
        return jnp.concatenate([cylinders, steps], axis=1) / self.deviation[None]

    def __call__(
        self, paths: Float[Array, "paths times channels"], brackets: Any = None
    ) -> Float[Array, "paths features"]:
        """Features of paths on the grid of the data."""
        first = self.signature.features(paths, brackets=brackets)
        return jnp.concatenate([first, self._others(paths)], axis=1)

    def mean(
        self, paths: Float[Array, "paths times channels"], brackets: Any = None
    ) -> Float[Array, " features"]:
        """Mean features of many paths, in blocks."""
        total: Any = 0
        evaluate = eqx.filter_jit(lambda me, x, b: jnp.sum(me(x, b), axis=0))
        for first in range(0, paths.shape[0], 1024):
            part: Any = brackets
            if part is not None and not isinstance(part, str):
                part = part[first : first + 1024]
            total = total + evaluate(self, paths[first : first + 1024], part)
        return total / paths.shape[0]

"""Candidate continuations of a few observed rotations, with initial weights."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from arborax.geometry import SO

from .extrapolators import AbstractExtrapolator


class Bundle(eqx.Module):
    r"""Candidate paths of one window in $\mathbb{R}^3$.

    A path $x$ stands for the rotation that starts at `anchor` and turns with the
    angular velocity $\dot x$ in the body frame: its development, $dR = R\,\hat{dx}$.

    - `anchor`: the observation that $x = 0$ stands for, the one in the middle.
    - `origin`: its time.
    - `paths`: `(paths, times, 3)`; the last one stays at the last observation.
    - `logits`: logarithms of the initial weights.
    - `features`: the motion summed up by the weights, numbers of order one.
    """

    anchor: Float[Array, "3 3"]
    origin: Float[Array, ""]
    paths: Float[Array, "paths times 3"]
    logits: Float[Array, " paths"]
    features: Float[Array, " features"]

    def rotations(
        self, path: Float[Array, "times 3"], times: Float[Array, " times"]
    ) -> Float[Array, "times 3 3"]:
        """The development of a path, step by step from the time nearest the origin."""
        eye = jnp.eye(3, dtype=path.dtype)
        turns = jax.vmap(lambda u: SO(3).exp(eye, u))(jnp.diff(path, axis=0))
        found = [eye]
        for k in range(path.shape[0] - 1):
            found.append(found[-1] @ turns[k])
        all_of_them = jnp.stack(found)
        near = jnp.argmin(jnp.abs(times - self.origin))
        start = SO(3).exp(self.anchor, path[near]) @ all_of_them[near].T
        return jnp.matmul(start[None], all_of_them)


class Developed(eqx.Module):
    """Observations as sums of their increments in the body frame, about the middle one.

    - `values`: `(samples, 3)`, zero where nothing was observed.
    """

    anchor: Float[Array, "3 3"]
    origin: Float[Array, ""]
    mask: Bool[Array, " samples"]
    values: Float[Array, "samples 3"]

    def __init__(self, ts, rotations, mask):
        count = rotations.shape[0]
        if count < 2:
            raise ValueError(f"an extrapolator needs two observations, got {count}.")
        index = jnp.arange(count)
        self.mask = jnp.ones((count,), bool) if mask is None else mask
        middle = jnp.argmin(jnp.where(self.mask, jnp.abs(index - count // 2), count))
        self.anchor, self.origin = rotations[middle], ts[middle]
        present = self.mask[:, None, None]
        rotations = jnp.where(present, rotations, self.anchor[None])
        last = jax.lax.cummax(jnp.where(self.mask, index, 0))
        before = rotations[jnp.concatenate([last[:1], last[:-1]])]
        steps = jax.vmap(SO(3).log)(before, rotations)
        moving = self.mask & (index > jnp.argmax(self.mask))
        total = jnp.cumsum(jnp.where(moving[:, None], steps, 0), axis=0)
        self.values = jnp.where(self.mask[:, None], total - total[middle][None], 0)

    @property
    def last(self) -> Float[Array, " 3"]:
        """The value at the last observation."""
        index = jnp.arange(self.mask.shape[0])
        return self.values[jnp.max(jnp.where(self.mask, index, 0))]


class ExtrapolatorBank(eqx.Module):
    """Paths of any extrapolators."""

    extrapolators: tuple[AbstractExtrapolator, ...]

    @property
    def count(self) -> int:
        """Number of paths."""
        return len(self.extrapolators) + 1

    @property
    def num_features(self) -> int:
        """Length of the features."""
        return 0

    def __call__(self, ts, rotations, times, mask=None) -> Bundle:
        seen = Developed(ts, rotations, mask)
        near = jnp.argmin(jnp.abs(times - seen.origin))

        def develop(path):
            steps = jax.vmap(SO(3).log)(path[:-1], path[1:])
            total = jnp.pad(jnp.cumsum(steps, axis=0), [(1, 0), (0, 0)])
            start = SO(3).log(seen.anchor, path[near])
            return total + (start - total[near])[None]

        paths = [develop(e(ts, rotations, times, mask)) for e in self.extrapolators]
        still = jnp.broadcast_to(seen.last, (times.shape[0], 3))
        logits = jnp.zeros((self.count,), still.dtype).at[-1].set(-2)
        paths = jnp.stack([*paths, still])
        return Bundle(
            seen.anchor, seen.origin, paths, logits, jnp.zeros((0,), still.dtype)
        )

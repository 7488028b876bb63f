"""The law, and the generator that every objective trains."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from arborax.algebra import GrossmanLarson
from arborax.geometry import Euclidean
from arborax.models import BNRDE, brownian_driver, MLP
from arborax.paths import SampledPath


NOISE = 2  # Brownian channels: as many random numbers at the start


def simulate(
    paths: int, times: int, kappa: float, spread: float, seed: int
) -> Float[np.ndarray, "paths times 2"]:
    r"""Values and brackets since the start of $dx = -\kappa x\,dt + \sigma\,dW$ on
    `linspace(0, 1, times)`, exact. The stationary variance $\sigma^2 / 2\kappa$ of a
    path is log-normal of mean one, `spread` the deviation of its logarithm."""
    rng = np.random.default_rng(seed)
    dt = 1 / (times - 1)
    variance = np.exp(spread * rng.standard_normal(paths) - spread**2 / 2)
    decay = np.exp(-kappa * dt)
    kicks = rng.standard_normal((paths, times)) * np.sqrt(variance)[:, None]
    kicks[:, 1:] *= np.sqrt(1 - decay**2)
    for k in range(1, times):
        kicks[:, k] += decay * kicks[:, k - 1]
    brackets = 2 * kappa * variance[:, None] * np.linspace(0, 1, times)
    return np.stack([kicks, brackets], axis=-1).astype(np.float32)


class Field(eqx.Module):
    r"""Fields of a state of several fast numbers and one that stays as it began:
    $r(-y + f(y))$ along time and $\sqrt r g(y)$ along the noise, with MLPs $f, g$ and
    a learned rate $r$."""

    mlp: MLP
    log_rate: Float[Array, ""]

    def __call__(self, y: Float[Array, " hidden"]) -> Float[Array, "channels hidden"]:
        out = self.mlp(y).reshape(1 + NOISE, -1)
        rate = jnp.exp(self.log_rate)
        drift = rate * (0.5 * jnp.tanh(out[:1]) - y[None, :-1])
        moving = jnp.concatenate([drift, jnp.sqrt(rate) * out[1:]])
        return jnp.pad(moving, [(0, 0), (0, 1)])


class Generator(eqx.Module):
    """A B-NRDE in Itô's sense driven by time and Brownian motion from a random start,
    read out linearly; its bracket is known in closed form."""

    model: BNRDE
    readout: Float[Array, " fast"]

    def __init__(
        self, config: Any, rate: float, *, dtype: Any = np.float32, key: PRNGKeyArray
    ):
        """**Arguments:**

        - `config`: `hidden`, `width`, `depth`, `window` and `substeps`.
        - `rate`: $r$ before training.
        - `dtype`, `key`: of the weights.
        """
        fields, start, last = jr.split(key, 3)
        sizes: Any = dict(width=config.width, depth=config.depth, dtype=dtype)
        moving = config.hidden - 1
        output = (1 + NOISE) * moving
        field = MLP(config.hidden, output, activation=jax.nn.silu, **sizes, key=fields)
        self.model = BNRDE(
            GrossmanLarson(1 + NOISE, 2),
            geometry=Euclidean(config.hidden),
            vector_field=Field(field, jnp.asarray(np.log(rate), dtype)),
            initial=MLP(
                1 + NOISE, config.hidden, activation=jax.nn.silu, **sizes, key=start
            ),
            window=config.window,
            substeps=config.substeps,
            basepoint=False,
            dtype=dtype,
        )
        self.readout = jr.normal(last, (moving,), dtype)

    def sample(
        self, ts: Float[Array, " times"], paths: int, *, key: PRNGKeyArray
    ) -> Float[Array, "paths times 2"]:
        r"""Values, and brackets since the start: left-point sums of
        $\sum_i (\ell \cdot V_i)^2 dt$ over the noise channels."""
        first, second = jr.split(key)
        driver = brownian_driver(ts, NOISE, (paths,), key=first, brackets=True)
        start = jr.normal(second, (paths, 1, NOISE), driver.xs.dtype)
        xs = driver.xs + jnp.pad(start, [(0, 0), (0, 0), (1, 0)])
        moved = SampledPath(
            driver.ts, xs, brackets=driver.brackets, finite_variation=(0,), check=False
        )
        states = self.model.predict(moved)
        fields = jax.vmap(jax.vmap(self.model.vector_field))(states[:, :-1])
        density = jnp.sum(jnp.square(fields[..., 1:, :-1] @ self.readout), axis=-1)
        grown = jnp.cumsum(density * jnp.diff(ts)[None], axis=1)
        brackets = jnp.pad(grown, [(0, 0), (1, 0)])
        return jnp.stack([states[..., :-1] @ self.readout, brackets], axis=-1)

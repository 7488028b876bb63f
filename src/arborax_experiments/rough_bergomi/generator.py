"""Generators: a model driven by noise, and the scale of its paths."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from arborax import models
from arborax.algebra import GrossmanLarson
from arborax.paths import SampledPath

from ..baselines import baseline, WINDOWED
from .config import Config


def with_bank(driver: SampledPath, rates: tuple[float, ...]) -> SampledPath:
    r"""A batch of drivers (time, Brownian motion, ..), one more channel for each rate:
    $dZ = -r Z\,dt + \sqrt{2 r}\,dW$ from zero, $W$ the second channel, by exponential
    Euler steps on an even grid; with the brackets of these channels."""
    dt = driver.ts[1] - driver.ts[0]
    rate = jnp.asarray(rates, driver.xs.dtype)
    decay = jnp.exp(-rate * dt)
    load = jnp.sqrt(2 * rate) * decay
    moves = jnp.moveaxis(jnp.diff(driver.xs[..., 1], axis=-1), -1, 0)

    def step(z, move):
        z = decay[None] * z + load[None] * move[:, None]
        return z, z

    start = jnp.zeros((moves.shape[1], rate.size), rate.dtype)
    bank = jnp.concatenate([start[None], jax.lax.scan(step, start, moves)[1]])
    xs = jnp.concatenate([driver.xs, jnp.moveaxis(bank, 0, -2)], axis=-1)
    brackets = driver.brackets
    if brackets is not None:
        # Row by row: channel k of the bank moves as `load[k]` times channel 1.
        mix = jnp.eye(driver.dim, dtype=rate.dtype)
        extra = load[:, None] * mix[None, 1]
        mix = jnp.concatenate([mix, extra])
        brackets = jnp.einsum("ai,sij,bj->sab", mix, brackets, mix)
    return SampledPath(
        driver.ts, xs, brackets=brackets, finite_variation=(0,), check=False
    )


class Bounded(eqx.Module):
    r"""The activation $a \tanh(u / a)$: the identity for small $u$."""

    bound: float = eqx.field(static=True)

    def __call__(self, u: Array) -> Array:
        return self.bound * jnp.tanh(u / self.bound)


class Generator(eqx.Module):
    """Paths of a model from time and Brownian motion, in the units of the data; with
    `rates`, from a bank of Ornstein-Uhlenbeck processes too."""

    model: models.AbstractCausalModel
    scale: float = eqx.field(static=True)
    anchor: bool = eqx.field(static=True)
    noise: int = eqx.field(static=True)
    rates: tuple[float, ...] = eqx.field(static=True)

    def sample(
        self, ts: Float[Array, " times"], paths: int, *, key: PRNGKeyArray
    ) -> Float[Array, "paths times 1"]:
        """Generated paths."""
        ito = self.model.calculus == "ito"
        driver = models.brownian_driver(ts, self.noise, (paths,), key=key, brackets=ito)
        if self.rates:
            driver = with_bank(driver, self.rates)
        out = self.model.predict(driver) * self.scale
        return out - out[:, :1] if self.anchor else out


def make_generator(
    config: Config, data: Float[np.ndarray, "paths times 1"], *, key: PRNGKeyArray
) -> Generator:
    """A generator with fresh weights.

    **Arguments:**

    - `config`: names the model and its sizes.
    - `data`: training paths; with `config.anchor` they give the scale.
    - `key`: a JAX random key.
    """
    channels, dtype = 1 + config.noise + len(config.rates), data.dtype
    bounded: Any = {}
    if config.bound != 1:
        bounded["final_activation"] = Bounded(config.bound)
    if config.model in ("bnrde", "bnrde-bk"):
        names = (*WINDOWED, "calculus", "basepoint")
        options: Any = {name: getattr(config, name) for name in names}
        alg = GrossmanLarson(channels, 2)
        model = models.BNRDE(alg, 1, **options, **bounded, dtype=dtype, key=key)
    else:
        model = baseline(
            config.model, channels, 1, config, dtype=dtype, key=key, **bounded
        )
    scale = float(data[:, -1].std()) if config.anchor else 1.0
    return Generator(model, scale, config.anchor, config.noise, config.rates)

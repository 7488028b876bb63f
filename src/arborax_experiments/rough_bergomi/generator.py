"""Generators: a model driven by noise, and the scale of its paths."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from arborax import models
from arborax.algebra import GrossmanLarson
from arborax.geometry import Euclidean
from arborax.paths import SampledPath

from ..baselines import baseline, WINDOWED
from .config import Config


def with_bank(
    driver: SampledPath, rates: tuple[float, ...], *, key: PRNGKeyArray
) -> SampledPath:
    r"""A batch of drivers (time, Brownian motion, ..) on an even grid, with one more
    channel for each rate $r$: $dZ = -r Z\,dt + \sqrt{2 r}\,dW$ from zero, $W$ the
    second channel, exact at the samples. What a step of $Z$ has beside its regression
    on the step of $W$ is drawn with `key`: for large $r$ it is most of it."""
    dt = driver.ts[1] - driver.ts[0]
    q = jnp.asarray(rates, driver.xs.dtype) * dt
    load = -jnp.sqrt(2 / (q * dt)) * jnp.expm1(-q)
    both = q[:, None] + q[None]
    cov = -2 * jnp.sqrt(q[:, None] * q[None]) / both * jnp.expm1(-both)
    size, root = jnp.linalg.eigh(cov - dt * load[:, None] * load[None])
    root = root * jnp.sqrt(jnp.maximum(size, 0))[None]
    moves = jnp.moveaxis(jnp.diff(driver.xs[..., 1], axis=-1), -1, 0)
    noise = jr.normal(key, (*moves.shape, q.size), q.dtype) @ root.T
    moves = moves[..., None] * load[None, None] + noise
    decay = jnp.exp(-q)[None]

    def step(z, move):
        z = decay * z + move
        return z, z

    bank = jax.lax.scan(step, jnp.zeros_like(moves[0]), moves)[1]
    bank = jnp.moveaxis(jnp.pad(bank[:-1], [(2, 0), (0, 0), (0, 0)]), 0, -2)
    xs = jnp.concatenate([driver.xs, bank], axis=-1)
    return SampledPath(driver.ts, xs, finite_variation=(0,), check=False)


class Bounded(eqx.Module):
    r"""The activation $a \tanh(u / a)$: the identity for small $u$."""

    bound: float = eqx.field(static=True)

    def __call__(self, u: Array) -> Array:
        return self.bound * jnp.tanh(u / self.bound)


class BankField(eqx.Module):
    """Fields of a state whose first coordinates are the bank: each channel of the bank
    moves its own one as it moves itself, time and Brownian motions move the rest by an
    MLP of the whole state."""

    mlp: models.MLP
    bank: int = eqx.field(static=True)
    own: int = eqx.field(static=True)

    def __call__(self, y: Float[Array, " size"]) -> Float[Array, "channels size"]:
        rest = self.mlp(y).reshape(self.own, -1)
        moves = jnp.pad(rest, [(0, self.bank), (self.bank, 0)])
        return moves + jnp.eye(*moves.shape, k=-self.own, dtype=y.dtype)


class Generator(eqx.Module):
    """Paths of a model from time and Brownian motion, in the units of the data; with
    `rates`, from a bank of Ornstein-Uhlenbeck processes too. The last output of the
    model is the log-price."""

    model: models.AbstractCausalModel
    scale: float = eqx.field(static=True)
    anchor: bool = eqx.field(static=True)
    noise: int = eqx.field(static=True)
    rates: tuple[float, ...] = eqx.field(static=True)

    def sample(
        self, ts: Float[Array, " times"], paths: int, *, key: PRNGKeyArray
    ) -> Float[Array, "paths times 1"]:
        """Generated paths."""
        ito = getattr(self.model, "calculus", "") == "ito" and not self.rates
        driver = models.brownian_driver(ts, self.noise, (paths,), key=key, brackets=ito)
        if self.rates:
            driver = with_bank(driver, self.rates, key=jr.fold_in(key, 1))
        out = self.model.predict(driver)[..., -1:] * self.scale
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
    bank, own, dtype = len(config.rates), 1 + config.noise, data.dtype
    branched = config.model in ("bnrde", "bnrde-bk")
    output: Any = 1
    fields: dict[str, Any] = {}
    if bank and config.model == "nrde":
        fields["final_activation"] = Bounded(config.bound)
    elif bank and (branched or config.model in ("log-ncde", "ncde", "ncde++")):
        # The state is the output: the bank, hidden coordinates, last the log-price.
        key, inner = jr.split(key)
        size = bank + config.hidden
        mlp = models.MLP(
            size,
            own * config.hidden,
            config.width,
            config.depth,
            final_activation=Bounded(config.bound),
            dtype=dtype,
            key=inner,
        )
        fields["vector_field"] = BankField(mlp, bank, own)
        if config.model in ("ncde", "ncde++"):
            output, fields["hidden"] = size, size
        else:
            output, fields["geometry"] = None, Euclidean(size)
    if branched:
        names = (*WINDOWED, "calculus", "basepoint")
        fields |= {name: getattr(config, name) for name in names}
        alg = GrossmanLarson(own + bank, config.lift)
        model = models.BNRDE(
            alg, output, **fields, brackets="realised", dtype=dtype, key=key
        )
    else:
        fields["log_depth"] = config.lift
        model = baseline(
            config.model, own + bank, output, config, dtype=dtype, key=key, **fields
        )
    if bank and isinstance(model, (models.NCDE, models.NCDEpp)):
        model = eqx.tree_at(lambda m: m.readout, model, eqx.nn.Identity())
    scale = float(data[:, -1].std()) if config.anchor else 1.0
    return Generator(model, scale, config.anchor, config.noise, config.rates)

"""Generators: models driven by noise whose outputs are lower triangles."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from arborax import models
from arborax.algebra import Ito, MuntheKaasWright
from arborax.geometry import SPD, spd_from_vech
from arborax.paths import SampledPath

from ..baselines import baseline
from .config import Config
from .coordinates import identity_triangle, size_of, triangles
from .field import LogCholeskyField


ALGEBRAS = {"bnrde": MuntheKaasWright, "bnrde-ito": Ito, "bnrde-bk": MuntheKaasWright}


class Generator(eqx.Module):
    """Paths of a model from time and Brownian motion, as lower triangles."""

    model: models.AbstractCausalModel
    identity: bool = eqx.field(static=True)
    head: str = eqx.field(static=True)

    def sample(
        self,
        ts: Float[Array, " times"],
        paths: int,
        stride: int = 1,
        mirrored: bool = False,
        *,
        key: PRNGKeyArray,
    ) -> Float[Array, "paths some k"]:
        """Generated paths at every `stride`-th time.

        Window models compute only the knots where the stride allows it.
        `mirrored`: the second half of the paths has the noise of the first, negated.
        """
        # A fixed initial state is on the cone: that of zero weights.
        model = self._begun(lambda initial: jax.tree.map(_zero, initial))
        driver = _driver(model, key, ts, paths, mirrored)
        window = getattr(model, "window", 0)
        if window and not getattr(model, "basepoint") and stride % window == 0:
            out = jax.vmap(lambda xs: _knots(model, driver, xs))(driver.xs)
            out = out[:, :: stride // window]
        else:
            out = model.predict(driver)[:, ::stride]
        return self._matrix(out)

    def _begun(self, initial: Any) -> Any:
        """The model, with a constant initial map if its first state is fixed."""
        if not self.identity or not isinstance(self.model, models.BNRDE):
            return self.model
        return eqx.tree_at(lambda m: m.initial, self.model, initial(self.model.initial))

    @property
    def trained(self) -> Any:
        """The model without a fixed initial state."""
        return self._begun(lambda initial: None)

    def _matrix(self, out: Array) -> Array:
        if isinstance(self.model, models.BNRDE):
            return triangles(out)
        if self.head == "log":
            out = out - out[:, :1] if self.identity else out
            return triangles(jax.vmap(jax.vmap(spd_from_vech))(out))
        if not self.identity:
            return out
        base = jnp.asarray(identity_triangle(out.shape[-1]), out.dtype)
        return out - out[:, :1] + base[None, None]


def _zero(leaf: Any) -> Any:
    return jnp.zeros_like(leaf) if eqx.is_array(leaf) else leaf


def _driver(
    model: Any, key: PRNGKeyArray, ts: Array, paths: int, mirrored: bool
) -> SampledPath:
    count = paths // 2 if mirrored else paths
    driver = models.brownian_driver(
        ts, model.channels - 1, (count,), key=key, brackets=model.calculus == "ito"
    )
    if not mirrored:
        return driver
    sign = jnp.ones((model.channels,), driver.xs.dtype).at[1:].set(-1)
    xs = jnp.concatenate([driver.xs, driver.xs * sign[None, None]])
    return SampledPath(driver.ts, xs, brackets=driver.brackets, check=False)


def _knots(model: Any, driver: SampledPath, xs: Array) -> Array:
    path = SampledPath(driver.ts, xs, brackets=driver.brackets, check=False)
    return model.at_knots(path)


def make_generator(
    config: Config, data: Float[np.ndarray, "paths times k"], *, key: PRNGKeyArray
) -> Generator:
    """A generator with fresh weights.

    **Arguments:**

    - `config`: names the model and its sizes.
    - `data`: training paths as lower triangles, for their size and dtype.
    - `key`: a JAX random key.
    """
    channels, dtype, name = data.shape[-1], data.dtype, config.model
    joined = config.interpolation == "joined"
    if name in ALGEBRAS:
        model = _on_the_cone(config, channels, dtype, key)
    else:
        # As published, log-NCDE has one channel of noise for each coordinate.
        noise = channels if name == "log-ncde" else min(config.noise, channels)
        model = baseline(
            name,
            1 + noise,
            channels,
            config,
            interpolation="linear" if joined else config.interpolation,
            dtype=dtype,
            key=key,
        )
    return Generator(model, config.start == "identity", config.head)


def _on_the_cone(
    config: Config, channels: int, dtype: Any, key: PRNGKeyArray
) -> models.BNRDE:
    algebra, field = ALGEBRAS[config.model], None
    joined = config.interpolation == "joined"
    if config.field != "entries":
        field = LogCholeskyField(
            1 + channels,
            channels,
            config.width,
            config.depth,
            amplitude=config.amplitude,
            reach=config.reach,
            dtype=dtype,
            key=key,
        )
    return models.BNRDE(
        algebra(1 + channels, 2),
        geometry=SPD(size_of(channels)),
        vector_field=field,
        width=config.width,
        depth=config.depth,
        window=config.window,
        basepoint=config.basepoint,
        interpolation="geodesic" if joined else config.interpolation,  # pyright: ignore
        calculus=config.calculus if algebra is MuntheKaasWright else None,
        dtype=dtype,
        key=key,
    )

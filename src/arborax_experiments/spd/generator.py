"""Generators: a model driven by noise that gives lower triangles."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ... import models
from ...algebra import Ito, MuntheKaasWright
from ...geometry import SPD, spd_from_vech
from ...paths import SampledPath
from ._config import Config
from ._coordinates import identity_triangle, size_of, triangles
from ._field import LogCholeskyField


class Generator(eqx.Module):
    """Paths of a model from time and Brownian motion, as lower triangles."""

    model: models.AbstractCausalModel
    identity: bool = eqx.field(static=True)
    head: str = eqx.field(static=True)

    def sample(
        self,
        key: PRNGKeyArray,
        ts: Float[Array, " times"],
        paths: int,
        stride: int = 1,
        mirrored: bool = False,
    ) -> Float[Array, "paths some k"]:
        """Generated paths at every `stride`-th time.

        Models that go by windows compute only the knots where the stride allows it.
        `mirrored`: the second half of the paths has the noise of the first, negated.
        """
        model = self._fixed()
        driver = _driver(model, key, ts, paths, mirrored)
        window = getattr(model, "window", 0)
        if window and not getattr(model, "basepoint") and stride % window == 0:
            out = jax.vmap(lambda xs: _knots(model, driver, xs))(driver.xs)
            out = out[:, :: stride // window]
        else:
            out = model.predict(driver)[:, ::stride]
        return self._matrix(out)

    def _fixed(self) -> Any:
        """The model, with an initial state on the cone that is not trained."""
        if not self.identity or not isinstance(self.model, models.BNRDE):
            return self.model
        still = jax.tree.map(
            lambda leaf: jnp.zeros_like(leaf) if eqx.is_array(leaf) else leaf,
            self.model.initial,
        )
        return eqx.tree_at(lambda m: m.initial, self.model, still)

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


def _driver(
    model: Any, key: PRNGKeyArray, ts: Array, paths: int, mirrored: bool
) -> SampledPath:
    count = paths // 2 if mirrored else paths
    driver = models.brownian_driver(
        key, ts, model.channels - 1, (count,), brackets=model.calculus == "ito"
    )
    if not mirrored:
        return driver
    sign = jnp.ones((model.channels,), driver.xs.dtype).at[1:].set(-1)
    xs = jnp.concatenate([driver.xs, driver.xs * sign[None, None]])
    return SampledPath(driver.ts, xs, brackets=driver.brackets, check=False)


def _knots(model: Any, driver: SampledPath, xs: Array) -> Array:
    path = SampledPath(driver.ts, xs, brackets=driver.brackets, check=False)
    states = model.knots(model.prepare(path))
    if model.readout is None:
        return states
    return jax.vmap(lambda h: model.finish(model.readout(h)))(states)


def _joined(config: Config, cone: bool) -> Any:
    if config.interpolation != "joined":
        return config.interpolation
    return "geodesic" if cone else "linear"


def _bnrde(algebra: Callable) -> Callable:
    def make(config: Config, channels: int, **common: Any) -> models.BNRDE:
        common.pop("hidden")
        trees = algebra is MuntheKaasWright
        model = models.BNRDE(
            algebra(1 + channels, 2),
            geometry=SPD(size_of(channels)),
            depth=config.depth,
            window=config.window,
            calculus=config.calculus if trees else None,
            interpolation=_joined(config, True),
            basepoint=config.basepoint,
            **common,
        )
        if config.field == "entries":
            return model
        field = LogCholeskyField(
            1 + channels,
            channels,
            config.width,
            config.depth,
            amplitude=config.amplitude,
            reach=config.reach,
            dtype=common["dtype"],
            key=common["key"],
        )
        return eqx.tree_at(lambda m: m.vector_field, model, field)

    return make


def _windowed(kind: Callable, full: bool) -> Callable:
    def make(config: Config, channels: int, **common: Any):
        noise = channels if full else min(config.noise, channels)
        return kind(
            1 + noise,
            channels,
            depth=config.depth,
            window=config.window,
            interpolation=_joined(config, False),
            **common,
        )

    return make


def _plain(kind: Callable, *names: str) -> Callable:
    def make(config: Config, channels: int, **common: Any):
        options = {name: getattr(config, name) for name in names}
        noise = min(config.noise, channels)
        return kind(1 + noise, channels, **options, **common)

    return make


def _xlstm(kind: Callable) -> Callable:
    def make(config: Config, channels: int, **common: Any):
        noise = min(config.noise, channels)
        options = {name: common[name] for name in ("key", "dtype")}
        return kind(1 + noise, channels, **options)

    return make


MODELS: dict[str, Callable[..., Any]] = {
    "bnrde": _bnrde(MuntheKaasWright),
    "bnrde-ito": _bnrde(Ito),
    "bnrde-bk": _bnrde(MuntheKaasWright),
    "log-ncde": _windowed(models.LogNCDE, True),
    "nrde": _windowed(models.NRDE, False),
    "ncde": _plain(models.NCDE, "depth"),
    "ncde++": _plain(models.NCDEpp, "depth"),
    "gru": _plain(models.GRU),
    "xlstm": _xlstm(models.XLSTM),
    "stacked-xlstm": _xlstm(models.StackedXLSTM),
}


def make_generator(
    config: Config, data: Float[np.ndarray, "paths times k"], key: PRNGKeyArray
) -> Generator:
    """A generator with fresh weights.

    **Arguments:**

    - `config`: names the model and its sizes.
    - `data`: training paths as lower triangles, for their size and dtype.
    - `key`: a JAX random key.
    """
    if config.model not in MODELS:
        raise ValueError(
            f"`model` must be one of {list(MODELS)}, got {config.model!r}."
        )
    common = dict(hidden=config.hidden, width=config.width)
    model = MODELS[config.model](
        config, data.shape[-1], **common, dtype=data.dtype, key=key
    )
    return Generator(model, config.start == "identity", config.head)


def generate(
    generator: Generator,
    key: PRNGKeyArray,
    ts: Float[np.ndarray, " times"],
    paths: int,
    stride: int = 1,
    block: int = 512,
) -> Float[np.ndarray, "paths some k"]:
    """Many paths, in blocks of one compiled size, as a NumPy array."""
    block = min(block, paths)
    parts = []
    for k in range(-(-paths // block)):
        part = _block(generator, jr.fold_in(key, k), jnp.asarray(ts), block, stride)
        parts.append(np.asarray(part))
    return np.concatenate(parts)[:paths]


@eqx.filter_jit
def _block(generator: Generator, key, ts: Array, paths: int, stride: int) -> Array:
    return generator.sample(key, ts, paths, stride)


def parameter_count(generator: Generator) -> int:
    """Numbers that are trained; a fixed initial state has none."""
    model = generator.model
    if generator.identity and isinstance(model, models.BNRDE):
        model = eqx.tree_at(lambda m: m.initial, model, None)
    leaves = jax.tree.leaves(eqx.filter(model, lambda x: hasattr(x, "shape")))
    return sum(leaf.size for leaf in leaves)

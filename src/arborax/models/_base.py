"""The interface of all models, and the driver of generative ones."""

import abc
import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray, PyTree

from .._inputs import as_shape
from ..paths import add_time, brownian, brownian_brackets, SampledPath
from ._checks import check_channels, check_path, finite, promoted


class AbstractModel(eqx.Module):
    """A model turns a sampled path into outputs at the times of its samples.

    `model(path)` takes one [`arborax.SampledPath`][] (time is a channel like any other:
    see [`arborax.add_time`][]) and returns outputs `(times, *point)`, or a tuple of
    them where outputs live in a product. Batch with `jax.vmap`, or with `predict`,
    which takes batches of paths that share their times. Missing values are interpolated
    linearly; for online use carry them forward first, `path.filled("forward")`.

    A subclass defines `__call__`. It may declare two static fields:

    - `channels`: channels of the driver, time included; `None` (default) if any number
        works. `check` refuses other paths, and `sample` needs it.
    - `calculus`: `"ito"` if brackets of the path are used, `"stratonovich"` if a path
        with brackets is refused, `None` (default) if they are ignored.
    """

    # Not annotated, and so not fields unless a subclass makes them fields.
    channels = None
    calculus = None

    @abc.abstractmethod
    def __call__(self, path: Any) -> PyTree[Array]:
        """Outputs at the samples of one path."""

    def check(self, path: Any) -> SampledPath:
        """The path without gaps, in the wider dtype of it and the weights. Refuses
        anything but one path with `channels` channels."""
        return promoted(check_path(path, self.channels), self)

    def predict(self, paths: SampledPath) -> PyTree[Array]:
        """Outputs `(*batch, times, *point)` for any batch of paths.

        **Arguments:**

        - `paths`: a [`arborax.SampledPath`][] with any number of batch axes. Times and
            brackets may be shared by the batch, which saves memory.
        """
        check_channels(paths, self.channels)
        paths = paths.filled()
        lead = paths.batch_shape
        if 0 in lead:
            raise ValueError(f"the batch of paths is empty: its shape is {lead}.")

        if not lead:
            return self(paths)
        parts, axes = {}, {}
        for name, core in (("ts", 1), ("xs", 2), ("brackets", 3), ("ticks", 2)):
            part, axes[name] = getattr(paths, name), None
            if part is not None and part.ndim > core:
                part = jnp.broadcast_to(part, (*lead, *part.shape[-core:]))
                part, axes[name] = part.reshape(-1, *part.shape[-core:]), 0
            parts[name] = part

        def one(parts):
            return self(dataclasses.replace(paths, **parts, check=False))

        out = jax.vmap(one, in_axes=(axes,))(parts)
        out = jax.tree.map(lambda leaf: leaf.reshape(*lead, *leaf.shape[1:]), out)
        return finite(out)

    def forecast(self, path: SampledPath, future: SampledPath) -> PyTree[Array]:
        """Outputs at the times of a continuation of the path.

        **Arguments:**

        - `path`: the observed samples.
        - `future`: later samples, for instance of channels that are known in advance
            (time) with the others held or extrapolated. If the path has brackets they
            need brackets of their own; the step that joins the two has none. Channels
            of finite variation are those of `path`.

        **Returns:**

        Outputs at `future.ts`.
        """
        path = check_path(path, self.channels)
        future = check_path(future, self.channels)
        if path.xs.dtype != future.xs.dtype:
            raise TypeError(
                "`path` and `future` must have the same dtype, got "
                f"{path.xs.dtype} and {future.xs.dtype}. Cast one of them."
            )
        brackets = None
        if (path.brackets is None) != (future.brackets is None):
            raise ValueError(
                "give brackets in both `path` and `future`, or in neither."
            )
        if path.brackets is not None and future.brackets is not None:
            joint = jnp.zeros((1, path.dim, path.dim), path.xs.dtype)
            brackets = jnp.concatenate([path.brackets, joint, future.brackets])
        xs = jnp.concatenate([path.xs, future.xs])
        step = xs[None, path.num_times] - xs[None, path.num_times - 1]
        parts = [path.observed_increments(), step, future.observed_increments()]
        whole = SampledPath(
            jnp.concatenate([path.ts, future.ts]),
            xs,
            brackets=brackets,
            finite_variation=path.finite_variation,
            ticks=jnp.concatenate(parts),
            interpolated=path.interpolated or future.interpolated,
        )
        return jax.tree.map(lambda leaf: leaf[path.num_times :], self(whole))


class AbstractCausalModel(AbstractModel):
    """A model whose output at a time depends on no later sample, so that it can run on
    a stream of samples:

    ```python
    state, y = model.start(t0, x0)
    state, y = model.update(state, t1, x1)
    ```

    The outputs are those of `model(path)`. Both methods may be compiled and scanned.
    """

    @abc.abstractmethod
    def start(
        self, t: ArrayLike, x: Float[Array, " channels"]
    ) -> tuple[PyTree, PyTree[Array]]:
        """The state after the first sample, and the output there."""

    @abc.abstractmethod
    def update(
        self,
        state: PyTree,
        t: ArrayLike,
        x: Float[Array, " channels"],
        bracket: Float[Array, "channels channels"] | None = None,
    ) -> tuple[PyTree, PyTree[Array]]:
        """The state after one more sample, and the output there. `bracket` is the
        bracket of the step, for Itô models."""

    def sample(
        self,
        ts: ArrayLike,
        shape: tuple[int, ...] | int = (),
        *,
        key: PRNGKeyArray,
        dtype: Any = None,
    ) -> PyTree[Array]:
        """Paths generated from time and `channels - 1` fresh Brownian motions.

        **Arguments:**

        - `ts`: `(times,)`, strictly increasing.
        - `shape`: batch shape, or a number of paths.
        - `key`: a JAX random key.
        - `dtype`: of the driver; `None`: that of `ts`.

        **Returns:**

        Outputs `(*shape, times, *point)`. Itô models get the brackets of Brownian
        motion, the time step on its diagonal.
        """
        if self.channels is None:
            raise ValueError(
                f"{type(self).__name__} does not say how many channels its driver has; "
                "declare the static field `channels`."
            )
        shape = as_shape("shape", shape)
        ito = self.calculus == "ito"
        driver = brownian_driver(
            ts, self.channels - 1, shape, key=key, brackets=ito, dtype=dtype
        )
        return self.predict(driver)


def brownian_driver(
    ts: ArrayLike,
    dim: int,
    shape: tuple[int, ...] = (),
    *,
    key: PRNGKeyArray,
    brackets: bool = False,
    dtype: Any = None,
) -> SampledPath:
    """Time and `dim` independent Brownian motions from zero.

    **Arguments:**

    - `ts`: `(times,)`, strictly increasing.
    - `dim`: number of Brownian channels; zero is allowed.
    - `shape`: batch shape.
    - `key`: a JAX random key.
    - `brackets`: whether to supply brackets, the time step on the Brownian diagonal:
        the driver is then an Itô driver.
    - `dtype`: floating dtype of the values. `None`: that of `ts`.

    **Returns:**

    A [`arborax.SampledPath`][] with `1 + dim` channels, time first and marked as of
    finite variation. Times and brackets are shared by the batch.
    """
    noise = brownian(ts, max(dim, 1), shape, key=key, dtype=dtype)
    given = brownian_brackets(ts, max(dim, 1), dtype) if brackets else None
    driver = add_time(SampledPath(ts, noise, brackets=given, check=False))
    if dim:
        return driver
    given = None if driver.brackets is None else driver.brackets[..., :1, :1]
    return SampledPath(
        driver.ts,
        driver.xs[..., :1],
        brackets=given,
        finite_variation=(0,),
        check=False,
    )

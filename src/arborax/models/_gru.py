"""Gated recurrent unit."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray, PyTree

from .._xla import scan
from ..geometry import AbstractGeometry
from ..paths import SampledPath
from ._base import AbstractCausalModel
from ._checks import as_output, as_sample, as_sizes, check_options, finite
from ._mlp import MLP


class GRU(AbstractCausalModel):
    """A gated recurrent unit over the samples.

    The initial state is an MLP of the first sample, the cell runs over the
    others, and every state is read out linearly and projected to the manifold of the
    outputs.
    """

    output: AbstractGeometry = eqx.field(static=True)
    initial: MLP
    cell: eqx.nn.GRUCell
    readout: eqx.nn.Linear
    channels: int = eqx.field(static=True)

    def __init__(
        self,
        channels: int,
        output: int | AbstractGeometry,
        *,
        hidden: int = 32,
        width: int = 32,
        initial_depth: int = 2,
        activation: Callable = jax.nn.softplus,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `channels`: of the driver, time included.
        - `output`: number of outputs, or their manifold.
        - `hidden`: size of the state.
        - `width`, `initial_depth`, `activation`: of the MLP of the initial state.
        - `dtype`: of the weights.
        - `key`: a JAX random key.
        """
        check_options(key, dtype)
        channels, hidden, initial_depth = as_sizes(
            channels=channels, hidden=hidden, initial_depth=initial_depth
        )
        first, second, third = jr.split(key, 3)
        self.output, self.channels = as_output(output), channels
        self.initial = MLP(
            channels,
            hidden,
            width,
            initial_depth,
            activation=activation,
            dtype=dtype,
            key=first,
        )
        self.cell = eqx.nn.GRUCell(channels, hidden, dtype=dtype, key=second)
        size = self.output.vector_size
        self.readout = eqx.nn.Linear(hidden, size, dtype=dtype, key=third)

    def _output(self, h: Float[Array, " hidden"]) -> PyTree[Array]:
        return self.output.project_vector(self.readout(h))

    def __call__(self, path: SampledPath) -> PyTree[Array]:
        path = self.check(path)
        first = self.initial(path.xs[0])

        def body(h, x):
            h = self.cell(x, h)
            return h, h

        _, rest = scan(body, first, path.xs[1:])
        return finite(jax.vmap(self._output)(jnp.concatenate([first[None], rest])))

    def start(self, t: ArrayLike, x: Float[Array, " channels"]):
        h = self.initial(as_sample("x", x, (self.channels,), self))
        return h, self._output(h)

    def update(
        self,
        state: Float[Array, " hidden"],
        t: ArrayLike,
        x: Array,
        bracket: Any = None,
    ):
        h = self.cell(as_sample("x", x, (self.channels,), self), state)
        return h, self._output(h)

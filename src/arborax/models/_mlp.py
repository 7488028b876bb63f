"""Perceptrons, and the vector fields made of them."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
from jaxtyping import Array, Float, PRNGKeyArray, PyTree


def lipswish(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$0.909\, x\, \sigma(x)$: swish with Lipschitz constant one."""
    return 0.909 * jax.nn.silu(x)


def identity(x: Array) -> Array:
    """`x`."""
    return x


class MLP(eqx.Module):
    r"""A perceptron with `depth` hidden layers of size `width` and one output layer.

    Weights and biases are uniform in $\pm 1/\sqrt{\text{fan-in}}$.
    """

    layers: tuple[eqx.nn.Linear, ...]
    activation: Callable = eqx.field(static=True)
    final_activation: Callable = eqx.field(static=True)

    def __init__(
        self,
        in_size: int,
        out_size: int,
        width: int,
        depth: int,
        *,
        activation: Callable = lipswish,
        final_activation: Callable = identity,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        sizes = [in_size, *[width] * depth, out_size]
        keys = jr.split(key, depth + 1)
        self.layers = tuple(
            eqx.nn.Linear(a, b, dtype=dtype, key=k)
            for a, b, k in zip(sizes[:-1], sizes[1:], keys)
        )
        self.activation = activation
        self.final_activation = final_activation

    def trunk(self, x: Float[Array, " in"]) -> Float[Array, " width"]:
        """The last hidden layer."""
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return x

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        return self.final_activation(self.layers[-1](self.trunk(x)))


def flatten(y: PyTree[Array]) -> Float[Array, " size"]:
    """All numbers of a point as one vector."""
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jtu.tree_leaves(y)])


class VectorField(eqx.Module):
    """A perceptron of the flattened state, reshaped to `(channels, dim)`.

    `channel(i, y)` gives row `i` alone: lifts differentiate each channel along its own
    direction, and need only its part of the last layer.
    """

    mlp: MLP
    channels: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)

    def __call__(self, y: PyTree[Array]) -> Float[Array, "channels dim"]:
        return self.mlp(flatten(y)).reshape(self.channels, self.dim)

    def channel(self, i, y: PyTree[Array]) -> Float[Array, " dim"]:
        """Row `i`; the index may be traced."""
        layer = self.mlp.layers[-1]
        assert layer.bias is not None
        weight = layer.weight.reshape(self.channels, self.dim, -1)[i]
        bias = layer.bias.reshape(self.channels, self.dim)[i]
        return self.mlp.final_activation(weight @ self.mlp.trunk(flatten(y)) + bias)

"""Perceptrons, and the vector fields made of them."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from ._rows import activate, affine


def lipswish(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$0.909\, x\, \sigma(x)$: swish with Lipschitz constant one."""
    return 0.909 * jax.nn.silu(x)


def identity(x: Array) -> Array:
    """`x`."""
    return x


class MLP(eqx.Module):
    r"""A perceptron with `depth` hidden layers of size `width` and one output layer.

    Weights and biases are uniform in $\pm 1/\sqrt{\text{fan-in}}$. Activations are
    functions of one number.
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
            assert layer.bias is not None
            x = activate(self.activation, affine(layer.weight, layer.bias, x))
        return x

    def head(self, x: Float[Array, " width"], rows: slice = slice(None)) -> Array:
        """The output, or some rows of it, from the last hidden layer."""
        layer = self.layers[-1]
        assert layer.bias is not None
        x = affine(layer.weight[rows], layer.bias[rows], x)
        return activate(self.final_activation, x)

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        return self.head(self.trunk(x))


def flatten(y: PyTree[Array]) -> Float[Array, " size"]:
    """All numbers of a point as one vector."""
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jtu.tree_leaves(y)])


class VectorField(eqx.Module):
    """A perceptron of the flattened state, reshaped to `(channels, dim)`.

    `channel(i, features)` gives row `i` alone from the last hidden layer: lifts
    differentiate each channel along its own direction, and need only its part.
    """

    many_directions = True

    mlp: MLP
    channels: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)

    def __call__(self, y: PyTree[Array]) -> Float[Array, "channels dim"]:
        return self.mlp(flatten(y)).reshape(self.channels, self.dim)

    def features(self, y: PyTree[Array]) -> Float[Array, " width"]:
        """The last hidden layer."""
        return self.mlp.trunk(flatten(y))

    def head(self, features: Float[Array, " width"]) -> Float[Array, "channels dim"]:
        """All rows, from the last hidden layer."""
        return self.mlp.head(features).reshape(self.channels, self.dim)

    def channel(self, i: int, features: Float[Array, " width"]) -> Float[Array, " dim"]:
        """Row `i`."""
        return self.mlp.head(features, slice(i * self.dim, (i + 1) * self.dim))

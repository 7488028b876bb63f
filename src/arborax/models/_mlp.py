"""Perceptrons, and the vector fields made of them."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from ..lifts import AbstractExpansion
from ._checks import check_options
from ._expansion import PerceptronExpansion
from ._layers import activate, affine, flatten


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
        check_options(
            key,
            dtype,
            (activation, final_activation),
            in_size=in_size,
            out_size=out_size,
            width=width,
            depth=depth,
        )
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

    def preactivation(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        """The output layer before its activation."""
        layer = self.layers[-1]
        assert layer.bias is not None
        return affine(layer.weight, layer.bias, self.trunk(x))

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        return activate(self.final_activation, self.preactivation(x))


class VectorField(eqx.Module):
    """A perceptron of the flattened state, reshaped to `(channels, dim)`.

    Lifts take its derivatives layer by layer, as `expand` gives them.
    """

    mlp: MLP
    channels: int = eqx.field(static=True, converter=int)
    dim: int = eqx.field(static=True, converter=int)

    def __call__(self, y: PyTree[Array]) -> Float[Array, "channels dim"]:
        return self.mlp(flatten(y)).reshape(self.channels, self.dim)

    def expand(
        self, y: PyTree[Array], directions: PyTree[Array] | None = None
    ) -> AbstractExpansion:
        """The fields at `y`, with derivatives; see `AbstractExpansion`."""
        mlp = self.mlp
        f = [mlp.activation] * (len(mlp.layers) - 1) + [mlp.final_activation]
        layers = [(layer.weight, layer.bias, g) for layer, g in zip(mlp.layers, f)]
        return PerceptronExpansion(layers, flatten(y), self.channels, directions)

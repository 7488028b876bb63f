"""MLPs, the vector fields made of them, and the parts of neural equations."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from ..geometry import AbstractGeometry
from ..lifts import AbstractExpansion
from ._checks import as_sizes, check_options
from ._expansion import MLPExpansion
from ._layers import activate, affine, flatten, point_size


def lipswish(x: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$0.909\, x\, \sigma(x)$: swish with Lipschitz constant one."""
    return 0.909 * jax.nn.silu(x)


class MLP(eqx.Module):
    r"""An MLP with `depth` hidden layers of size `width` and one output layer.

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
        final_activation: Callable = jax.nn.identity,
        dtype: Any = None,
        key: PRNGKeyArray,
    ):
        check_options(key, dtype, activation, final_activation)
        in_size, out_size, width, depth = as_sizes(
            in_size=in_size, out_size=out_size, width=width, depth=depth
        )
        sizes = [in_size, *[width] * depth, out_size]
        keys = jr.split(key, depth + 1)
        self.layers = tuple(
            eqx.nn.Linear(a, b, dtype=dtype, key=k)
            for a, b, k in zip(sizes[:-1], sizes[1:], keys)
        )
        self.activation = activation
        self.final_activation = final_activation

    def preactivation(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        """The output layer before its activation."""
        for k, layer in enumerate(self.layers):
            assert layer.bias is not None
            x = activate(self.activation, x) if k else x
            x = affine(layer.weight, layer.bias, x)
        return x

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        return activate(self.final_activation, self.preactivation(x))


class VectorField(eqx.Module):
    """An MLP of the flattened state, reshaped to `(channels, dim)`.

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
        layers = list(zip(mlp.layers, f))
        return MLPExpansion(layers, flatten(y), self.channels, directions)


def make_equation(
    channels: int,
    rows: int,
    geometry: AbstractGeometry,
    output: AbstractGeometry | None,
    *,
    vector_field: Callable | None = None,
    initial: Callable | None = None,
    width: int = 32,
    depth: int = 2,
    initial_width: int | None = None,
    initial_depth: int = 2,
    activation: Callable,
    final_activation: Callable,
    dtype: Any = None,
    key: PRNGKeyArray | None,
) -> tuple[Callable, Callable, eqx.nn.Linear | None]:
    """Initial state, fields with `rows` rows and readout of a neural differential
    equation; those that are not given are built. `output` is the manifold that a linear
    map reads out; `None`: no readout. All others as in [`arborax.models.BNRDE`][]."""
    width, depth, initial_width, initial_depth = as_sizes(
        width=width,
        depth=depth,
        initial_width=width if initial_width is None else initial_width,
        initial_depth=initial_depth,
    )
    keys: Any = (None, None, None)
    if key is not None:
        check_options(key, dtype)
        keys = jr.split(key, 3)
    elif initial is None or vector_field is None or output is not None:
        raise ValueError(
            "give a `key`: initial state, fields or readout have random weights."
        )
    first, second, third = keys
    if initial is None:
        initial = MLP(
            channels,
            geometry.vector_size,
            initial_width,
            initial_depth,
            activation=activation,
            dtype=dtype,
            key=first,
        )
    if vector_field is None:
        mlp = MLP(
            point_size(geometry),
            rows * geometry.dim,
            width,
            depth,
            activation=activation,
            final_activation=final_activation,
            dtype=dtype,
            key=second,
        )
        vector_field = VectorField(mlp, rows, geometry.dim)
    readout = None
    if output is not None:
        sizes = geometry.dim, output.vector_size
        readout = eqx.nn.Linear(*sizes, dtype=dtype, key=third)
    return initial, vector_field, readout

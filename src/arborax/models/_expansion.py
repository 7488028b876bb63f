r"""Derivatives of a perceptron, layer by layer.

Let a layer be $x' = f(a)$ with $a = W x + b$. Along directions $p$ and for second-order
operators $L_k = \sum_{pq} X_k^{pq} D_p D_q + D_{u_k}$

$$D_p x' = f'(a)\, D_p a, \qquad
L_k x' = f'(a)\, L_k a + f''(a) \sum_{pq} X_k^{pq}\, D_p a\, D_q a ,$$

and $D_p a = W D_p x$, $L_k a = W L_k x$: one row for each direction and one for each
operator, not one for each pair of directions. (For one operator this is known as the
forward Laplacian.)
"""

import functools as ft
from collections.abc import Callable

import jax
import jax.lax as lax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..geometry._settle import settle
from ..geometry._small_product import scale, small_product
from ..lifts import AbstractExpansion
from ._rows import activate, affine, Derivative, flatten, rows_product


_LONG_ROW = 16  # of shorter rows one product for all channels is taken


class PerceptronExpansion(AbstractExpansion):
    """A perceptron of `channels * dim` outputs at `x`, the flattened point.

    **Arguments:**

    - `layers`: weight, bias and activation of each layer.
    - `x`: the inputs.
    - `channels`: how many rows the output has.
    - `directions`: those of `along`, if they are known: point and directions then go
        through the layers in one product.
    """

    def __init__(self, layers, x: Float[Array, " in"], channels: int, directions=None):
        self._weights = [weight for weight, _, _ in layers]
        self._directions = directions
        # Of each layer: first and second derivative, where its numbers are shaped as
        # they will be used, and what comes of the directions.
        self._slopes, self._curves, self._seen = [], [], []
        rows = None if directions is None else jax.vmap(flatten)(directions)
        for k, (weight, bias, f) in enumerate(layers):
            if rows is None:
                a = affine(weight, bias, x)
            else:
                both = rows_product(jnp.concatenate([x[None], rows]), weight)
                a, rows = lax.split(both, (1, rows.shape[0]))
                a = a[0] + bias
            last = k == len(layers) - 1
            shape = (channels, -1) if last else a.shape
            x = activate(f, a)
            self._slopes.append(_later(Derivative(f), a, shape))
            self._curves.append(_later(Derivative(Derivative(f)), a, shape))
            if rows is not None:
                rows = self._see(k, rows)
        self.value = x.reshape(channels, -1)
        self._dots = rows

    def _see(self, k: int, rows: Array) -> Array:
        """Derivatives after the activation of layer `k`, from those before it."""
        slope = self._slopes[k]()
        if k == len(self._weights) - 1:
            rows = _shaped(rows, -1, *slope.shape)
        self._seen.append(rows)
        return scale(slope[None], rows)

    def contract(self, tangents: PyTree[Array]) -> Float[Array, " dim"]:
        return self._operate(tangents, None)

    def along(self, directions: PyTree[Array]):
        if directions is self._directions and directions is not None:
            return self._dots, self._bend
        self._directions, self._seen = directions, []
        rows = jax.vmap(flatten)(directions)
        for k, weight in enumerate(self._weights):
            rows = self._see(k, rows_product(rows, weight))
        self._dots = rows
        return self._dots, self._bend

    def _bend(self, pairs: Array, tangents: PyTree[Array]) -> Float[Array, " dim"]:
        return self._operate(tangents, pairs)

    def _operate(self, tangents, pairs) -> Float[Array, " dim"]:
        """The operators of all channels, each on its own row of the output, summed."""
        *inner, last = self._weights
        rows = jax.vmap(flatten)(tangents)
        for k, weight in enumerate(inner):
            rows = scale(self._slopes[k]()[None], rows_product(rows, weight))
            if pairs is not None:
                source = _quadratic(pairs, self._seen[k])
                rows = rows + scale(self._curves[k]()[None], source)
        out = scale(self._slopes[-1](), _own_rows(last, rows))
        if pairs is not None:
            source = _quadratic_by_channel(pairs, self._seen[-1])
            out = out + scale(self._curves[-1](), source)
        return small_product(jnp.ones((1, out.shape[0]), out.dtype), out)[0]


def _later(f: Callable, a: Array, shape: tuple[int, ...]) -> Callable[[], Array]:
    return lambda: activate(f, a).reshape(shape)


def _shaped(x: Array, *shape: int) -> Array:
    """Another shape. Long rows are stored: loops over the old shape, which is that of
    the cotangent, would not run side by side."""
    x = x.reshape(shape)
    return settle(x, store=True) if x.shape[-1] >= _LONG_ROW else x


def _own_rows(
    weight: Float[Array, "outputs width"], rows: Float[Array, "channels width"]
) -> Float[Array, "channels dim"]:
    """Channel `k` of the product of the weight with row `k`."""
    d = rows.shape[0]
    dim = weight.shape[0] // d
    if dim >= _LONG_ROW:
        parts = zip(lax.split(rows, (1,) * d), lax.split(weight, (dim,) * d))
        return jnp.concatenate([rows_product(row, part) for row, part in parts])
    every = rows_product(rows, weight).reshape(d, d, dim)
    own = jnp.eye(d, dtype=every.dtype)[:, None]
    return _batched(own, every)[:, 0]


def _batched(a: Float[Array, "b m k"], b: Float[Array, "b k n"]) -> Array:
    return jax.vmap(small_product)(a, b)


def _quadratic(
    pairs: Float[Array, "p p channels"], a: Float[Array, "p width"]
) -> Float[Array, "channels width"]:
    """The sum over `p` and `q` of `pairs[p, q, k] a[p] a[q]`."""
    m, _, d = pairs.shape
    products = small_product(jnp.swapaxes(pairs, 1, 2).reshape(m * d, m), a)
    parts = zip(lax.split(a, (1,) * m), lax.split(products, (d,) * m))
    return ft.reduce(jnp.add, [scale(one, other) for one, other in parts])


def _quadratic_by_channel(
    pairs: Float[Array, "p p channels"], a: Float[Array, "p channels dim"]
) -> Float[Array, "channels dim"]:
    """The same for channel `k` of `a` with the coefficients `k`."""
    m, d, dim = a.shape
    ones = jnp.ones((1, m), a.dtype)
    products = scale(pairs[..., None], a[None]).reshape(m, m, d * dim)
    inner = jax.vmap(small_product, in_axes=(None, 0))(ones, products)
    terms = scale(a, inner.reshape(a.shape)).reshape(m, d * dim)
    return small_product(ones, terms).reshape(d, dim)

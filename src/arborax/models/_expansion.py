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

import jax
import jax.lax as lax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

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
        self._slopes, self._curves, self._seen = [], [], []
        self._channels, self._directions = channels, directions
        rows = None if directions is None else jax.vmap(flatten)(directions)
        for weight, bias, f in layers:
            if rows is None:
                a = affine(weight, bias, x)
            else:
                m = rows.shape[0]
                both = rows_product(jnp.concatenate([x[None], rows]), weight)
                a, rows = lax.split(both, (1, m))
                a = a[0] + bias
            x = activate(f, a)
            self._slopes.append(ft.partial(activate, Derivative(f), a))
            self._curves.append(ft.partial(activate, Derivative(Derivative(f)), a))
            if rows is not None:
                self._seen.append(rows)
                rows = scale(self._slopes[-1]()[None], rows)
        self.value = x.reshape(channels, -1)
        self._dots = rows

    def contract(self, tangents: PyTree[Array]) -> Float[Array, " dim"]:
        return self._operate(tangents, None, [])

    def along(self, directions: PyTree[Array]):
        if directions is self._directions and directions is not None:
            rows, seen = self._dots, self._seen
        else:
            rows, seen = jax.vmap(flatten)(directions), []
            for weight, slope in zip(self._weights, self._slopes):
                seen.append(rows_product(rows, weight))
                rows = scale(slope()[None], seen[-1])
        dots = rows.reshape(rows.shape[0], self._channels, -1)
        return dots, lambda pairs, tangents: self._operate(tangents, pairs, seen)

    def _operate(self, tangents, pairs, seen) -> Float[Array, " dim"]:
        """The operators of all channels, each on its own row of the output, summed."""
        *inner, last = self._weights
        rows = jax.vmap(flatten)(tangents)
        for k, weight in enumerate(inner):
            rows = scale(self._slopes[k]()[None], rows_product(rows, weight))
            if pairs is not None:
                source = _quadratic(pairs, seen[k])
                rows = rows + scale(self._curves[k]()[None], source)
        d = self._channels
        shape = self.value.shape
        out = scale(self._slopes[-1]().reshape(shape), _own_rows(last, rows))
        if pairs is not None:
            source = _quadratic_by_channel(pairs, seen[-1].reshape(-1, *shape))
            out = out + scale(self._curves[-1]().reshape(shape), source)
        return small_product(jnp.ones((1, d), out.dtype), out)[0]


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

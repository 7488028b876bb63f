r"""Derivatives of an MLP, layer by layer.

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

from .._xla import barrier_back, quadratic, scale, small_product, Tensors
from ..lifts import AbstractExpansion
from ._layers import activate, affine, Derivative, flatten


_OWN_LAYER = 16  # outputs per channel from which each has a last layer of its own


class _Layer:
    """A layer at a point: its weight, the value, and derivatives of the activation when
    they are needed."""

    def __init__(self, weight: Array, f: Callable, before: Array):
        self.weight = weight
        self.value = activate(f, before)
        self.slope = lambda: activate(Derivative(f), before)
        self.curve = lambda: activate(Derivative(Derivative(f)), before)


def _pass(weight, bias, x, rows) -> tuple[Array, Array | None]:
    """A point and derivatives along directions, in one product if there are any."""
    if rows is None:
        return affine(weight, bias, x), None
    both = jnp.concatenate([x[None], rows]) @ weight.T
    a, rows = lax.split(both, (1, rows.shape[0]))
    return a[0] + bias, rows


class MLPExpansion(AbstractExpansion):
    """An MLP of `channels * dim` outputs at `x`, the flattened point.

    If rows are long, each channel has a last layer of its own. If they are short, one
    product for all channels is faster, and what is not needed is thrown away. With
    `directions`, those of `along`, point and directions go through the layers in one
    product.
    """

    def __init__(self, layers, x: Float[Array, " in"], channels: int, directions=None):
        *hidden, (final, f) = layers
        self._channels, self._directions = channels, directions
        rows = None if directions is None else jax.vmap(flatten)(directions)
        seen: list[Array] = []
        self._hidden = []
        for linear, g in hidden:
            a, rows = _pass(linear.weight, linear.bias, x, rows)
            layer = _Layer(linear.weight, g, a)
            self._hidden.append(layer)
            x = layer.value
            if rows is not None:
                seen.append(rows)
                rows = scale(layer.slope()[None], rows)
        count = channels if final.weight.shape[0] >= _OWN_LAYER * channels else 1
        sizes = (final.weight.shape[0] // count,) * count
        self._heads, last = [], []
        parts = (lax.split(x, sizes) for x in (final.weight, final.bias))
        for part, offset in zip(*parts):
            a, own = _pass(part, offset, x, rows)
            self._heads.append(_Layer(part, f, a))
            last.append(own)
        values = [barrier_back(head.value) for head in self._heads]
        self.value = jnp.stack(values).reshape(channels, -1)
        self._known = None if rows is None else self._finish(last), (seen, last)

    def _finish(self, last: list[Array]) -> Float[Array, "directions channels dim"]:
        """Derivatives of all channels, from those before the last activations."""
        pairs = zip(self._heads, last)
        dots = [scale(head.slope()[None], rows) for head, rows in pairs]
        dots = [barrier_back(rows) for rows in dots]
        return jnp.stack(dots, axis=1).reshape(dots[0].shape[0], self._channels, -1)

    def contract(self, tangents: PyTree[Array]) -> Float[Array, " dim"]:
        return self._operate(None, None, tangents)

    def along(self, directions: PyTree[Array]):
        dots, seen = self._known
        if dots is None or directions is not self._directions:
            rows, inner = jax.vmap(flatten)(directions), []
            for layer in self._hidden:
                inner.append(rows @ layer.weight.T)
                rows = scale(layer.slope()[None], inner[-1])
            last = [rows @ head.weight.T for head in self._heads]
            dots, seen = self._finish(last), (inner, last)
        return dots, lambda pairs, tangents: self._operate(pairs, seen, tangents)

    def _operate(self, pairs, seen, tangents) -> Float[Array, " dim"]:
        """The operators of all channels, each on its own row of the output, summed."""
        rows = jax.vmap(flatten)(tangents)
        if pairs is not None:
            pairs = barrier_back(pairs)
        for k, layer in enumerate(self._hidden):
            rows = scale(layer.slope()[None], rows @ layer.weight.T)
            if pairs is not None:
                source = quadratic(pairs, seen[0][k])
                rows = rows + scale(layer.curve()[None], source)
        if len(self._heads) == 1 < self._channels:
            return self._operate_on_all(pairs, seen, rows)
        d = self._channels
        out = []
        for k, row in enumerate(lax.split(rows, (1,) * d)):
            head = self._heads[k]
            out.append(scale(head.slope(), row[0] @ head.weight.T))
            if pairs is not None:
                own = lax.slice_in_dim(pairs, k, k + 1, axis=2)
                source = quadratic(own, seen[1][k])[0]
                out.append(scale(head.curve(), source))
        return ft.reduce(jnp.add, out)

    def _operate_on_all(self, pairs, seen, rows) -> Float[Array, " dim"]:
        """The last layer, if it is one for all channels."""
        (head,), d = self._heads, self._channels
        shape = self.value.shape
        every = (rows @ head.weight.T).reshape(d, d, -1)
        own = jax.vmap(small_product)(jnp.eye(d, dtype=every.dtype)[:, None], every)
        out = scale(head.slope().reshape(shape), own[:, 0])
        if pairs is not None:
            tensors = Tensors(shape[1])
            a = tensors.bring("pkn", seen[1][0].reshape(-1, *shape))
            inner = tensors.einsum("pqk,qkn->pkn", pairs, a)
            source = tensors.einsum("pkn,pkn->kn", a, inner)
            out = out + scale(head.curve().reshape(shape), source)
        return small_product(jnp.ones((1, d), out.dtype), out)[0]

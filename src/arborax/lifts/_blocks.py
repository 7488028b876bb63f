r"""Affine maps of a state that falls into blocks, stored without their zeros.

A state is an array `(size, blocks)`. A linear field on it is an array `(..., size,
columns, blocks)`: one matrix per block and, with offsets, one more column, so that it
stands for a square matrix whose last row is zero. The flow of a field is kept as its
difference from the identity, which is again such an array. Blocks come last: products
of small matrices then run over long rows of numbers.
"""

import dataclasses
import functools as ft
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import Array, Float

from .._xla import Function, Linear, small_einsum


Field = Float[Array, "... size columns blocks"]
State = Float[Array, "... size blocks"]

_RADIUS = 0.75  # norm at which the series has reached rounding
_SQUARINGS = 10  # bound where the number of squarings must be static


@dataclasses.dataclass(frozen=True)
class Blocks:
    r"""What the blocks of a linear field look like.

    - `size`: rows of a block; 1 for real diagonal matrices.
    - `count`: number of blocks.
    - `affine`: whether a column of offsets follows the matrices.
    - `rotation`: blocks of size 2 of the form $\begin{pmatrix} a & -b \\ b & a
        \end{pmatrix}$, complex numbers, of which the first column is stored.
    """

    size: int
    count: int
    affine: bool = False
    rotation: bool = False

    @property
    def width(self) -> int:
        """Stored columns of a matrix."""
        return 1 if self.rotation else self.size

    @property
    def columns(self) -> int:
        """Stored columns, offsets included."""
        return self.width + self.affine

    def matrix(self, x: Field) -> Float[Array, "... size size blocks"]:
        """The matrices, without offsets."""
        first = x[..., : self.width, :]
        if not self.rotation:
            return first
        a, b = first[..., :1, :, :], first[..., 1:, :, :]
        return jnp.concatenate([first, jnp.concatenate([-b, a], axis=-3)], axis=-2)

    def product(self, x: Field, y: Field) -> Field:
        """`x` after `y`, as matrices whose last row is zero."""
        return small_einsum("ijn,jkn->ikn", self.matrix(x), y)

    def compose(self, later: Field, earlier: Field) -> Field:
        """The flow of two windows: `(1 + later)(1 + earlier) - 1`."""
        return later + earlier + self.product(later, earlier)

    def act(self, flow: Field, y: State) -> State:
        """The state that a flow takes `y` to."""
        moved = small_einsum("ijn,jn->in", self.matrix(flow), y)
        return y + moved + flow[..., -1, :] if self.affine else y + moved

    def contract(self, x: Field) -> Field:
        r"""The field less as large a multiple of each block of the state as makes its
        flow a contraction, if it is not: $x - \max(0, \mu)$ with a bound $\mu$ of the
        largest eigenvalue of the symmetric part of a block from its mean and variance,
        exact for rotations and blocks of sizes 1 and 2."""
        matrix, k = self.matrix(x), self.size
        symmetric = (matrix + jnp.swapaxes(matrix, -3, -2)) / 2
        eye = np.eye(k).reshape((1,) * (x.ndim - 3) + (k, k, 1))
        eye = jnp.asarray(eye, x.dtype)
        mean = jnp.einsum("...iin->...n", symmetric)[..., None, None, :] / k
        rest = symmetric - mean * eye
        square = jnp.sum(rest * rest, axis=(-3, -2), keepdims=True) * (k - 1) / k
        positive = square > 0
        root = jnp.sqrt(jnp.where(positive, square, jnp.ones_like(square)))
        excess = mean + jnp.where(positive, root, jnp.zeros_like(root))
        zeros = [(0, 0)] * (x.ndim - 2) + [(0, self.columns - self.width), (0, 0)]
        return x - jax.nn.relu(excess) * jnp.pad(eye[..., : self.width, :], zeros)

    def exponential(self, x: Field) -> Field:
        r"""The flow $e^x - 1$ of a linear field, exact to rounding.

        A Taylor polynomial of degree 16 (9 in single precision) at norm 0.75 and below,
        then squarings, as many as the largest matrix of the batch needs. Derivatives
        are exponentials as well: reverse mode stores `x` alone.
        """
        return _Exponential(self)(x)[0]


def _flow(product: Callable, x: Any, norm: Array, static: bool) -> Any:
    """`e^x - 1` in a ring without one, whose elements are containers of arrays.

    **Arguments:**

    - `product`: of the ring.
    - `norm`: of each matrix, of the shape of a leaf but for axes of size one.
    - `static`: whether the loop of squarings has a fixed length, so that it can be
        differentiated in reverse mode; what would need more is NaN.
    """
    single = jnp.finfo(norm.dtype).bits <= 32
    degree, group = (9, 3) if single else (16, 4)
    _, exponent = jnp.frexp(jax.lax.stop_gradient(norm) / _RADIUS)
    count = jnp.clip(exponent, 0)
    scale = jnp.ldexp(jnp.ones((), norm.dtype), -count)
    x = jtu.tree_map(lambda leaf: leaf * scale, x)

    # Paterson and Stockmeyer for 1 + x/2! + x^2/3! + ..., then times x.
    powers = [x]
    for _ in range(group - 1):
        powers.append(product(powers[-1], x))
    coefficients = [1 / math.factorial(j + 1) for j in range(degree)]
    *starts, last = range(0, degree, group)
    total = _combine(coefficients[last + 1 :], powers)
    one = coefficients[last]
    for start in reversed(starts):
        high = _combine([one], powers[-1:])
        if total is not None:
            high = _add(high, product(powers[-1], total))
        low = _combine(coefficients[start + 1 : start + group], powers)
        total, one = _add(low, high), coefficients[start]
    flow = _add(_combine([one], [x]), product(total, x))

    def square(i, flow):
        new = _add(_add(flow, flow), product(flow, flow))
        return jtu.tree_map(lambda a, b: jnp.where(i < count, a, b), new, flow)

    if static:
        flow = jax.lax.fori_loop(0, _SQUARINGS, square, flow)
        keep = count <= _SQUARINGS
        return jtu.tree_map(lambda leaf: jnp.where(keep, leaf, jnp.nan), flow)
    # The exponential of a matrix that needs more than this overflows.
    most = jnp.minimum(jnp.max(count, initial=0), jnp.finfo(norm.dtype).maxexp + 1)
    return jax.lax.fori_loop(0, most, square, flow)


def _combine(weights: list[float], elements: list) -> Any:
    terms = [jtu.tree_map(lambda x: w * x, e) for w, e in zip(weights, elements)]
    return ft.reduce(_add, terms) if terms else None


def _add(x: Any, y: Any) -> Any:
    return jtu.tree_map(jnp.add, x, y)


def _norm(matrix: Array) -> Array:
    size = jnp.sum(jnp.abs(matrix), axis=-3, keepdims=True)
    return jnp.max(size, axis=-2, keepdims=True)


def _value(blocks: Blocks, x: Array, static: bool = False) -> Array:
    return _flow(blocks.product, x, _norm(blocks.matrix(x)), static)


def _tangent(blocks: Blocks, x: Array, dx: Array, static: bool = False) -> Array:
    return jax.jvp(lambda z: _value(blocks, z, static), (x,), (dx,))[1]


def _cotangent(blocks: Blocks, x: Array, g: Array, static: bool = False) -> Array:
    """The cotangent of `x` from that of its exponential: the derivative of the
    exponential at the transpose of `x` in the direction `g`.

    The transpose has a last column of zeros instead of a last row. So elements are
    pairs of matrices `(size + 1, size)` and tangents `(size, size + 1)`.
    """
    multiply = ft.partial(small_einsum, "ijn,jkn->ikn")
    square = lambda a: a[..., : blocks.size, :, :]  # noqa: E731

    def product(one, other):
        (a, da), (b, db) = one, other
        first = multiply(da, b)
        if blocks.affine:
            first = jnp.concatenate([first, jnp.zeros_like(first[..., :1, :])], axis=-2)
        return multiply(a, square(b)), first + multiply(square(a), db)

    point = jnp.swapaxes(blocks.matrix(x), -3, -2)
    norm = _norm(point)
    if blocks.affine:
        offsets = jnp.swapaxes(x[..., -1:, :], -3, -2)
        point = jnp.concatenate([point, offsets], axis=-3)
    if blocks.rotation:  # the second column is not stored
        parts = [g[..., :1, :], jnp.zeros_like(g[..., :1, :]), g[..., 1:, :]]
        g = jnp.concatenate(parts, axis=-2)
    _, out = _flow(product, (point, g), norm, static)
    if not blocks.rotation:
        return out
    a, b = out[..., :1, 1:2, :], out[..., 1:, 1:2, :]
    first = out[..., :1, :] + jnp.concatenate([b, -a], axis=-3)
    return jnp.concatenate([first, out[..., 2:, :]], axis=-2)


@dataclasses.dataclass(frozen=True)
class _Exponential(Function):
    blocks: Blocks

    def value(self, x):
        return [_value(self.blocks, x)]

    def jvp(self, primals, tangents):
        return self(*primals), _Derivative(self.blocks)(*primals, *tangents)


@dataclasses.dataclass(frozen=True)
class _Derivative(Linear):
    """The derivative of the exponential at the first argument, or its transpose."""

    blocks: Blocks
    transposed: bool = False
    fixed = 1

    def value(self, x, dx, static=False):
        f = _cotangent if self.transposed else _tangent
        return [f(self.blocks, x, dx, static)]

    def derivative(self, primals, tangents):
        return jax.jvp(ft.partial(self.value, static=True), primals, tangents)[1]

    @property
    def transpose(self):
        return dataclasses.replace(self, transposed=not self.transposed)

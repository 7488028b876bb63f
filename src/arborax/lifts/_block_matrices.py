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

from .._xla import (
    barrier,
    first_size,
    Function,
    in_pieces,
    is_symbolic,
    Linear,
    small_einsum,
)


Field = Float[Array, "... size columns blocks"]
State = Float[Array, "... size blocks"]

_RADIUS = 0.75  # norm at which the series has reached rounding
_NUMBERS = 2**14  # of a piece of a batch
_SQUARINGS = 10  # bound where the number of squarings must be static


@dataclasses.dataclass(frozen=True)
class Blocks:
    r"""The shape of the blocks of a linear field.

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

    def adjoint_product(self, x: Field, y: Field) -> Field:
        """The transpose of the matrices of `x` after `y`."""
        return small_einsum("jin,jkn->ikn", self.matrix(x), y)

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
    """`e^x - 1` in a ring without one, whose elements are containers of arrays, with
    this `product`. `norm` is that of each matrix, of the shape of a leaf but for axes
    of size one. If `static`, the loop of squarings has a fixed length, so that it can
    be differentiated in reverse mode, and what would need more is NaN."""
    single = jnp.finfo(norm.dtype).bits <= 32
    degree, group = (9, 3) if single else (16, 4)
    _, exponent = jnp.frexp(jax.lax.stop_gradient(norm) / _RADIUS)
    count = jnp.clip(exponent, 0)
    scale = jnp.ldexp(jnp.ones((), norm.dtype), -count)
    x = jtu.tree_map(lambda leaf: barrier(leaf * scale), x)

    stored = ft.partial(jtu.tree_map, barrier)

    # Paterson and Stockmeyer for x + x^2/2! + ..., in groups of powers up to x^group.
    powers = [x]
    for _ in range(group - 1):
        powers.append(stored(product(powers[-1], x)))
    weights = [1 / math.factorial(j) for j in range(1, degree + 1)]
    *starts, last = range(0, degree, group)
    flow = _combine(weights[last:], powers)
    for start in reversed(starts):
        low = _combine(weights[start : start + group], powers)
        flow = stored(_add(low, product(powers[-1], flow)))

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
    return ft.reduce(_add, terms)


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

    The transpose has a last column of zeros instead of a last row. So elements are a
    matrix and its last row, and a tangent and its last column.
    """
    multiply = ft.partial(small_einsum, "ijn,jkn->ikn")

    def product(one, other):
        (a, row, da, column), (b, other_row, db, other_column) = one, other
        tangent = multiply(da, b) + multiply(a, db)
        if not blocks.affine:
            return multiply(a, b), None, tangent, None
        tangent = tangent + multiply(column, other_row)
        return multiply(a, b), multiply(row, b), tangent, multiply(a, other_column)

    point = jnp.swapaxes(blocks.matrix(x), -3, -2)
    tangent, row, column = g[..., : blocks.width, :], None, None
    if blocks.affine:
        row, column = jnp.swapaxes(x[..., -1:, :], -3, -2), g[..., -1:, :]
    if blocks.rotation:  # the second column is not stored
        tangent = jnp.concatenate([tangent, jnp.zeros_like(tangent)], axis=-2)
    element = point, row, tangent, column
    *_, tangent, column = _flow(product, element, _norm(point), static)
    if blocks.rotation:
        first, second = tangent[..., :1, :], tangent[..., 1:, :]
        a, b = second[..., :1, :, :], second[..., 1:, :, :]
        tangent = first + jnp.concatenate([b, -a], axis=-3)
    if not blocks.affine:
        return tangent
    return jnp.concatenate([tangent, column], axis=-2)


def _by_pieces(f: Callable, *args: Array) -> list[Array]:
    """`f` of fields with any leading axes, a few fields at a time: their products then
    stay in the caches of a CPU."""
    *lead, size, columns, count = args[0].shape
    flat = tuple(x.reshape(-1, size, columns, count) for x in args)
    piece = max(1, _NUMBERS // (size * columns * count))
    if is_symbolic(*lead) or math.prod(lead) <= 2 * piece:
        return [f(*args)]
    return [in_pieces(f, flat, piece, place="first").reshape(args[0].shape)]


def _join(self: Any, args: Any, dims: Any) -> tuple[list, list]:
    """Under `vmap` fields get one more leading axis."""
    size, front = first_size(args, dims), []
    for x, axis in zip(args, dims):
        if axis is None:
            x, axis = jnp.broadcast_to(x[None], (size, *x.shape)), 0
        front.append(jnp.moveaxis(x, axis, 0))
    return self(*front), [0]


@dataclasses.dataclass(frozen=True)
class _Exponential(Function):
    blocks: Blocks
    batch = _join

    def value(self, x):
        return _by_pieces(ft.partial(_value, self.blocks), x)

    def jvp(self, primals, tangents):
        return self(*primals), _Derivative(self.blocks)(*primals, *tangents)


@dataclasses.dataclass(frozen=True)
class _Derivative(Linear):
    """The derivative of the exponential at the first argument, or its transpose."""

    blocks: Blocks
    transposed: bool = False
    fixed = 1
    batch = _join

    def value(self, x, dx):
        f = _cotangent if self.transposed else _tangent
        return _by_pieces(ft.partial(f, self.blocks), x, dx)

    def jvp(self, primals, tangents):
        # Reverse mode does not go through a loop of dynamic length.
        f = _cotangent if self.transposed else _tangent
        static = lambda x, dx: [f(self.blocks, x, dx, static=True)]  # noqa: E731
        return self(*primals), jax.jvp(static, primals, tangents)[1]

    @property
    def transpose(self):
        return dataclasses.replace(self, transposed=not self.transposed)

"""Two-parameter recursions swept along anti-diagonals, with an exact discrete gradient.

A recursion fills the grid of two paths: the value at corner `(n+1, m+1)` of cell
`(n, m)` follows from the other three corners and from the cell's increment
`c[n, m]`. All cells of one anti-diagonal are independent, so a sweep is a loop over
`Lx + Ly` diagonals of element-wise work, vectorised over the diagonal and the batch.
Only three diagonals are alive at any time: memory is `O(Lx)` per pair, and the matrix
`c` is never formed. The gradient stores one pair of diagonals out of `CHUNK`,
recomputes between them and runs the transposed recursion.

Layout: time first, batch last, `(Lx + 2, *batch)`. Row 0 is the boundary, rows
`1..Lx` the values, row `Lx + 1` a dummy that lets the transposed sweep read slices
only (concatenation and padding are slow inside XLA's loops on CPU).
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.lax as lax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, PyTree

from .._xla import Function, Linear, vary_alike


State = tuple[Array, ...]
# (value at (n+1, m), value at (n, m+1), value at (n, m), increment) -> new value
Update = Callable[[State, State, State, Array], State]
# (parameters, cells of x, cells of y, on one diagonal) -> increments (cells, *batch)
Increment = Callable[[PyTree, PyTree, PyTree], Array]

_CHUNK = 24  # diagonals per stored pair; a multiple of 3, the number of buffers


def _rows(state: State, start: int, stop: int | None) -> State:
    return tuple(lax.slice_in_dim(s, start, stop, axis=0) for s in state)


def _write(buffer: State, rows: State) -> State:
    """Write `rows` from row 1 on, in place."""
    return tuple(
        lax.dynamic_update_slice(b, r, (1,) + (0,) * (b.ndim - 1))
        for b, r in zip(buffer, rows, strict=True)
    )


def _window(ys: PyTree, p: Array, nx: int, diagonals: int) -> PyTree:
    """Cells `m = p - n` for `n = 0..nx`, from the reversed and padded `ys`."""
    start = diagonals - 1 - p
    return jtu.tree_map(lambda y: lax.dynamic_slice_in_dim(y, start, nx + 1, 0), ys)


def _sizes(xs: PyTree, ys: PyTree) -> tuple[int, int, int]:
    """Cells of x, number of chunks, number of diagonals (a multiple of the chunk)."""
    nx = jtu.tree_leaves(xs)[0].shape[0] - 1
    ny = jtu.tree_leaves(ys)[0].shape[0]
    chunks = -(-(nx + ny - 1) // _CHUNK)
    return nx, chunks, chunks * _CHUNK


def _reverse_and_pad(ys: PyTree, nx: int, diagonals: int) -> PyTree:
    """Reverse time; cells outside the path have coinciding end points, so `c = 0`."""

    def pad(leaf):
        before, after = diagonals - leaf.shape[0], nx + 1
        if isinstance(ys, tuple):  # (left, right) end points
            last = jnp.broadcast_to(ys[1][-1:], (before, *leaf.shape[1:]))
            first = jnp.broadcast_to(ys[0][:1], (after, *leaf.shape[1:]))
            return jnp.concatenate([last, leaf[::-1], first], axis=0)
        return jnp.pad(leaf[::-1], [(before, after)] + [(0, 0)] * (leaf.ndim - 1))

    return jtu.tree_map(pad, ys)


def _vary_as(xs: PyTree, state: State) -> State:
    """Inside `jax.shard_map` what a loop carries varies from the start."""
    like = jtu.tree_leaves(xs)[0]
    return tuple(vary_alike(s, like)[0] for s in state)


def _three_steps(
    update: Update,
    increment: Increment,
    theta: PyTree,
    xs: PyTree,
    padded: PyTree,
    nx: int,
    diagonals: int,
) -> Callable[[tuple], tuple]:
    """The map from `(last, last but one, free buffer, p)` to three diagonals later."""
    cells = jtu.tree_map(lambda x: x[:nx], xs)  # without the dummy

    def step(previous: State, before: State, buffer: State, p: Array) -> State:
        window = _window(padded, p, nx, diagonals)
        c = increment(theta, cells, jtu.tree_map(lambda y: y[:nx], window))
        upper, right = _rows(previous, 1, nx + 1), _rows(previous, 0, nx)
        return _write(buffer, update(upper, right, _rows(before, 0, nx), c))

    def three(carry: tuple) -> tuple:
        # Three named buffers, so that none is ever copied into another.
        first, second, third, p = carry
        third = step(first, second, third, p)
        second = step(third, first, second, p + 1)
        first = step(second, third, first, p + 2)
        return first, second, third, p + 3

    return three


def _forward(
    update: Update,
    increment: Increment,
    boundary: tuple[float, ...],
    theta: PyTree,
    xs: PyTree,
    ys: PyTree,
    keep: bool,
) -> tuple[State, Any]:
    nx, chunks, diagonals = _sizes(xs, ys)
    padded = _reverse_and_pad(ys, nx, diagonals)
    three = _three_steps(update, increment, theta, xs, padded, nx, diagonals)
    window = _window(padded, jnp.asarray(0), nx, diagonals)
    c = jax.eval_shape(increment, theta, xs, window)
    full = tuple(jnp.full((nx + 2, *c.shape[1:]), b, c.dtype) for b in boundary)
    start = _vary_as(xs, full)

    def run(diagonals: int, carry: tuple) -> tuple:
        return lax.fori_loop(0, diagonals // 3, lambda _, carry: three(carry), carry)

    carry = (start, start, start, jnp.asarray(0))
    if not keep:
        carry = run(diagonals, carry)
        return tuple(s[nx] for s in carry[0]), None

    def chunk(carry, _):
        return run(_CHUNK, carry), (carry[0], carry[1])

    carry, kept = lax.scan(chunk, carry, None, length=chunks)
    return tuple(s[nx] for s in carry[0]), kept


def _backward(
    update: Update,
    increment: Increment,
    boundary: tuple[float, ...],
    theta: PyTree,
    xs: PyTree,
    ys: PyTree,
    kept: Any,
    cotangent: State,
) -> tuple[PyTree, PyTree, PyTree]:
    nx, chunks, diagonals = _sizes(xs, ys)
    padded, pad_vjp = jax.vjp(lambda y: _reverse_and_pad(y, nx, diagonals), ys)
    three_steps = _three_steps(update, increment, theta, xs, padded, nx, diagonals)

    def recompute(carry, _):
        first, second, third, p = three_steps(carry)
        return (first, second, third, p), (third, second, first)

    def transpose(carry, values):
        """Pull the adjoint of diagonal `p` back to diagonal `p - 1`."""
        adjoint, pending, grad_theta, grad_x, grad_y, p = carry
        previous, before = values
        window = _window(padded, p, nx, diagonals)
        c, increment_vjp = jax.vjp(increment, theta, xs, window)
        arguments = (
            _rows(previous, 1, nx + 2),
            _rows(previous, 0, nx + 1),
            _rows(before, 0, nx + 1),
            c,
        )
        _, update_vjp = jax.vjp(update, *arguments)
        upper, right, corner, grad_c = update_vjp(_rows(adjoint, 1, nx + 2))
        rows = tuple(
            u[:nx] + r[1:] + w[1:]
            for u, r, w in zip(upper, right, pending, strict=True)
        )
        parameters, cells, moved = increment_vjp(grad_c)
        grad_theta = jtu.tree_map(jnp.add, grad_theta, parameters)
        grad_x = jtu.tree_map(jnp.add, grad_x, cells)
        start = diagonals - 1 - p
        grad_y = jtu.tree_map(
            lambda g, w: lax.dynamic_update_slice_in_dim(
                g, lax.dynamic_slice_in_dim(g, start, nx + 1, 0) + w, start, 0
            ),
            grad_y,
            moved,
        )
        return _write(adjoint, rows), corner, grad_theta, grad_x, grad_y, p - 1

    def chunk(carry, stored):
        first, second = stored
        begin = (first, second, first, carry[-1] - (_CHUNK - 1))
        _, (third, mid, last) = lax.scan(recompute, begin, None, length=_CHUNK // 3)

        def three(inner, index):
            older = jnp.maximum(index - 1, 0)
            old_mid = _select(index > 0, _at(mid, older), second)
            old_last = _select(index > 0, _at(last, older), first)
            new_third = _at(third, index)
            inner = transpose(inner, (_at(mid, index), new_third))
            inner = transpose(inner, (new_third, old_last))
            inner = transpose(inner, (old_last, old_mid))
            return inner, None

        carry, _ = lax.scan(three, carry, jnp.arange(_CHUNK // 3), reverse=True)
        return carry, None

    zeros = tuple(
        jnp.zeros((nx + 2, *g.shape), g.dtype).at[nx].set(g) for g in cotangent
    )
    pending = tuple(jnp.zeros((nx + 1, *g.shape), g.dtype) for g in cotangent)
    pending = _vary_as(xs, pending)
    zero_theta = jtu.tree_map(jnp.zeros_like, theta)
    zero_x = jtu.tree_map(jnp.zeros_like, xs)
    zero_y = jtu.tree_map(jnp.zeros_like, padded)
    last = jnp.asarray(diagonals - 1)
    carry = (zeros, pending, zero_theta, zero_x, zero_y, last)
    carry, _ = lax.scan(chunk, carry, kept, reverse=True)
    return carry[2], carry[3], pad_vjp(carry[4])[0]


def _at(stack: State, index: Array) -> State:
    return tuple(lax.dynamic_index_in_dim(s, index, 0, keepdims=False) for s in stack)


def _select(flag: Array, a: State, b: State) -> State:
    return tuple(jnp.where(flag, u, v) for u, v in zip(a, b, strict=True))


@dataclasses.dataclass(frozen=True)
class _Sweep(Function):
    """The recursion as a function of the arrays in parameters, `xs` and `ys`."""

    update: Update
    increment: Increment
    boundary: tuple[float, ...]
    tree: Any

    @property
    def rule(self) -> tuple[Update, Increment, tuple[float, ...]]:
        return self.update, self.increment, self.boundary

    def unflatten(self, leaves) -> tuple[PyTree, PyTree, PyTree]:
        return jtu.tree_unflatten(self.tree, leaves)

    def value(self, *args):
        return list(_forward(*self.rule, *self.unflatten(args), keep=False)[0])

    def jvp(self, primals, tangents):
        out, kept = _forward(*self.rule, *self.unflatten(primals), keep=True)
        return list(out), _Tangent(self)(*primals, *kept[0], *kept[1], *tangents)


@dataclasses.dataclass(frozen=True)
class _Tangent(Linear):
    """Tangents of the values, from the arguments of a sweep, the diagonals that it kept
    and tangents of the arguments."""

    sweep: _Sweep

    @property
    def fixed(self) -> int:  # pyright: ignore
        return self.sweep.tree.num_leaves + 2 * len(self.sweep.boundary)

    def value(self, *args):
        primals = args[: self.sweep.tree.num_leaves]
        return jax.jvp(self.sweep.value, primals, args[self.fixed :])[1]

    @property
    def transpose(self):
        return _Cotangent(self.sweep)


@dataclasses.dataclass(frozen=True)
class _Cotangent(Linear):
    """The transpose: the recursion run backwards."""

    sweep: _Sweep

    @property
    def fixed(self) -> int:  # pyright: ignore
        return _Tangent(self.sweep).fixed

    def value(self, *args):
        sweep, count = self.sweep, len(self.sweep.boundary)
        primals = sweep.unflatten(args[: sweep.tree.num_leaves])
        kept, cotangent = args[self.fixed - 2 * count : self.fixed], args[self.fixed :]
        kept = kept[:count], kept[count:]
        pulled = _backward(*sweep.rule, *primals, kept, cotangent)
        return jtu.tree_leaves(pulled)

    @property
    def transpose(self):
        return _Tangent(self.sweep)


def sweep(
    update: Update,
    increment: Increment,
    boundary: tuple[float, ...],
    theta: PyTree,
    xs: PyTree,
    ys: PyTree,
    custom_gradient: bool = True,
) -> State:
    """Run a recursion over the grid of two batches of paths.

    **Arguments:**

    - `update`: the recursion, element-wise, on tuples of arrays.
    - `increment`: increments of the cells of one diagonal. It must vanish on cells
        whose data are zero (increments) or coincide (end points).
    - `boundary`: value of each component on the two axes.
    - `theta`: differentiable parameters of `increment`.
    - `xs`, `ys`: cell data, time first: an array or a list of arrays of increments,
        or a tuple of left and right end points.
    - `custom_gradient`: `True` uses the transposed recursion for reverse mode of first
        order; `False` has the memory cost of ordinary reverse mode, `O(Lx Ly)`. Forward
        mode and higher orders are the ordinary ones either way.

    **Returns:**

    The components at the far corner, each of the batch shape.
    """
    xs = _with_dummy(xs)
    leaves, tree = jtu.tree_flatten((theta, xs, ys))
    function = _Sweep(update, increment, boundary, tree)
    if custom_gradient:
        return tuple(function(*leaves))
    return tuple(function.value(*vary_alike(*leaves)))


def _with_dummy(xs: PyTree) -> PyTree:
    """Append the dummy cell, whose increment vanishes."""
    if isinstance(xs, tuple):
        left, right = xs
        last = right[-1:]
        return jnp.concatenate([left, last]), jnp.concatenate([right, last])
    return jtu.tree_map(lambda x: jnp.concatenate([x, jnp.zeros_like(x[:1])]), xs)

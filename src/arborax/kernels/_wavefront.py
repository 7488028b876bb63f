"""Two-parameter recursions swept along anti-diagonals, with an exact discrete gradient.

A recursion fills the grid of two paths: the value at corner `(n+1, m+1)` of cell
`(n, m)` follows from the other three corners and from the cell's increment
`c[n, m]`. All cells of one anti-diagonal are independent, so a sweep is a loop over
`Lx + Ly` diagonals of element-wise work, vectorised over the diagonal and the batch.
Only three diagonals are alive at any time: memory is `O(Lx)` per pair, and the matrix
`c` is never formed. The gradient stores one pair of diagonals out of `_CHUNK`,
recomputes those between and runs the transposed recursion.

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


def _rows(state: State, start: int, stop: int) -> State:
    return tuple(s[start:stop] for s in state)


def _write(buffer: State, rows: State) -> State:
    """Write `rows` from row 1 on, in place."""
    return tuple(
        lax.dynamic_update_slice_in_dim(b, r, 1, 0)
        for b, r in zip(buffer, rows, strict=True)
    )


@dataclasses.dataclass(frozen=True)
class _Sweep(Function):
    """The recursion as a function of the leaves of parameters, `xs` and `ys`."""

    update: Update
    increment: Increment
    boundary: tuple[float, ...]
    tree: Any

    def value(self, *args):
        return _Grid(self, args).run(keep=False)[0]

    def jvp(self, primals, tangents):
        out, kept = _Grid(self, primals).run(keep=True)
        return out, _Tangent(self)(*primals, *kept[0], *kept[1], *tangents)

    @property
    def kept(self) -> int:
        """Number of arguments and of the diagonals that a sweep keeps."""
        return self.tree.num_leaves + 2 * len(self.boundary)


@dataclasses.dataclass(frozen=True)
class _Tangent(Linear):
    """Tangents of the values, from the arguments of a sweep, the diagonals that it kept
    and tangents of the arguments."""

    sweep: _Sweep

    @property
    def fixed(self) -> int:  # pyright: ignore
        return self.sweep.kept

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
        return self.sweep.kept

    def value(self, *args):
        leaves, count = self.sweep.tree.num_leaves, len(self.sweep.boundary)
        kept = args[leaves : leaves + count], args[leaves + count : self.fixed]
        grid = _Grid(self.sweep, args[:leaves])
        return jtu.tree_leaves(grid.pull_back(kept, args[self.fixed :]))

    @property
    def transpose(self):
        return _Tangent(self.sweep)


class _Grid:
    """The grid of two batches of paths, ready to be swept."""

    def __init__(self, sweep: _Sweep, leaves: Any):
        self.update, self.increment = sweep.update, sweep.increment
        self.boundary = sweep.boundary
        self.theta, self.xs, ys = jtu.tree_unflatten(sweep.tree, leaves)
        self.nx = jtu.tree_leaves(self.xs)[0].shape[0] - 1
        ny = jtu.tree_leaves(ys)[0].shape[0]
        self.chunks = -(-(self.nx + ny - 1) // _CHUNK)
        self.diagonals = self.chunks * _CHUNK
        self.cells = jtu.tree_map(lambda x: x[: self.nx], self.xs)  # no dummy
        self.ys, self.unpad = jax.vjp(self._reverse_and_pad, ys)

    def _reverse_and_pad(self, ys: PyTree) -> PyTree:
        """Reverse time; cells outside the path have coinciding end points: `c = 0`."""

        def pad(leaf):
            before, after = self.diagonals - leaf.shape[0], self.nx + 1
            if isinstance(ys, tuple):  # (left, right) end points
                last = jnp.broadcast_to(ys[1][-1:], (before, *leaf.shape[1:]))
                first = jnp.broadcast_to(ys[0][:1], (after, *leaf.shape[1:]))
                return jnp.concatenate([last, leaf[::-1], first], axis=0)
            return jnp.pad(leaf[::-1], [(before, after)] + [(0, 0)] * (leaf.ndim - 1))

        return jtu.tree_map(pad, ys)

    def _window(self, ys: PyTree, p: Any) -> PyTree:
        """Cells `m = p - n` for `n = 0..nx`, from what is reversed and padded."""
        start, size = self.diagonals - 1 - p, self.nx + 1
        return jtu.tree_map(lambda y: lax.dynamic_slice_in_dim(y, start, size, 0), ys)

    def _vary(self, state: State) -> State:
        """Inside `jax.shard_map` what a loop carries varies from the start."""
        like = jtu.tree_leaves(self.xs)[0]
        return tuple(vary_alike(s, like)[0] for s in state)

    def _three(self, carry: tuple) -> tuple:
        """From `(last, last but one, free buffer, p)` to three diagonals later."""
        nx = self.nx

        def step(previous: State, before: State, buffer: State, p: Array) -> State:
            window = jtu.tree_map(lambda y: y[:nx], self._window(self.ys, p))
            c = self.increment(self.theta, self.cells, window)
            upper, right = _rows(previous, 1, nx + 1), _rows(previous, 0, nx)
            return _write(buffer, self.update(upper, right, _rows(before, 0, nx), c))

        # Three named buffers, so that none is ever copied into another.
        first, second, third, p = carry
        third = step(first, second, third, p)
        second = step(third, first, second, p + 1)
        first = step(second, third, first, p + 2)
        return first, second, third, p + 3

    def run(self, keep: bool) -> tuple[list[Array], Any]:
        """The far corner, and one pair of diagonals per chunk if `keep`."""
        window = self._window(self.ys, 0)
        c = jax.eval_shape(self.increment, self.theta, self.xs, window)
        shape = (self.nx + 2, *c.shape[1:])
        start = self._vary(tuple(jnp.full(shape, b, c.dtype) for b in self.boundary))

        def sweep(diagonals: int, carry: tuple) -> tuple:
            return lax.fori_loop(0, diagonals // 3, lambda _, c: self._three(c), carry)

        def chunk(carry, _):
            return sweep(_CHUNK, carry), (carry[0], carry[1])

        carry, kept = (start, start, start, jnp.asarray(0)), None
        if keep:
            carry, kept = lax.scan(chunk, carry, None, length=self.chunks)
        else:
            carry = sweep(self.diagonals, carry)
        return [s[self.nx] for s in carry[0]], kept

    def _transposed(self, carry: tuple, previous: State, before: State) -> tuple:
        """Pull the adjoint of diagonal `p` back to diagonal `p - 1`."""
        nx = self.nx
        adjoint, pending, grad_theta, grad_x, grad_y, p = carry
        window = self._window(self.ys, p)
        c, increment_vjp = jax.vjp(self.increment, self.theta, self.xs, window)
        upper, right = _rows(previous, 1, nx + 2), _rows(previous, 0, nx + 1)
        corner = _rows(before, 0, nx + 1)
        _, update_vjp = jax.vjp(self.update, upper, right, corner, c)
        upper, right, corner, grad_c = update_vjp(_rows(adjoint, 1, nx + 2))
        rows = zip(upper, right, pending, strict=True)
        rows = tuple(u[:nx] + r[1:] + w[1:] for u, r, w in rows)
        theta, cells, moved = increment_vjp(grad_c)
        grad_theta, grad_x, moved = jtu.tree_map(
            jnp.add,
            (grad_theta, grad_x, self._window(grad_y, p)),
            (theta, cells, moved),
        )
        start = self.diagonals - 1 - p
        grad_y = jtu.tree_map(
            lambda g, w: lax.dynamic_update_slice_in_dim(g, w, start, 0), grad_y, moved
        )
        return _write(adjoint, rows), corner, grad_theta, grad_x, grad_y, p - 1

    def pull_back(self, kept: Any, cotangent: State) -> tuple[PyTree, PyTree, PyTree]:
        """Cotangents of parameters, `xs` and `ys` from those of the far corner."""

        def recompute(carry, _):
            new = self._three(carry)
            return new, (carry[:2], new[1:3])

        def three(carry, diagonals):
            (first, second), (fourth, third) = diagonals
            carry = self._transposed(carry, fourth, third)
            carry = self._transposed(carry, third, first)
            return self._transposed(carry, first, second), None

        def chunk(carry, stored):
            first, second = stored
            begin = (first, second, first, carry[-1] - (_CHUNK - 1))
            _, diagonals = lax.scan(recompute, begin, None, length=_CHUNK // 3)
            return lax.scan(three, carry, diagonals, reverse=True)[0], None

        size, nx = self.nx + 2, self.nx
        adjoint = tuple(
            jnp.zeros((size, *g.shape), g.dtype).at[nx].set(g) for g in cotangent
        )
        pending = self._vary(tuple(jnp.zeros_like(a[1:]) for a in adjoint))
        zeros = jtu.tree_map(jnp.zeros_like, (self.theta, self.xs, self.ys))
        carry = (adjoint, pending, *zeros, jnp.asarray(self.diagonals - 1))
        carry, _ = lax.scan(chunk, carry, kept, reverse=True)
        return carry[2], carry[3], self.unpad(carry[4])[0]


def sweep(
    update: Update,
    increment: Increment,
    boundary: tuple[float, ...],
    theta: PyTree,
    xs: PyTree,
    ys: PyTree,
) -> State:
    """Run a recursion over the grid of two batches of paths.

    Reverse mode of first order runs the transposed recursion. Forward mode and higher
    orders are the ordinary ones, with memory `O(Lx Ly)` where they run in reverse.

    **Arguments:**

    - `update`: the recursion, element-wise, on tuples of arrays.
    - `increment`: increments of the cells of one diagonal. It must vanish on cells
        whose data are zero (increments) or coincide (end points).
    - `boundary`: value of each component on the two axes.
    - `theta`: differentiable parameters of `increment`.
    - `xs`, `ys`: cell data, time first: an array or a list of arrays of increments,
        or a tuple of left and right end points.

    **Returns:**

    The components at the far corner, each of the batch shape.
    """
    if isinstance(xs, tuple):  # a dummy cell, whose increment vanishes
        last = xs[1][-1:]
        xs = tuple(jnp.concatenate([x, last]) for x in xs)
    else:
        xs = jtu.tree_map(lambda x: jnp.concatenate([x, jnp.zeros_like(x[:1])]), xs)
    leaves, tree = jtu.tree_flatten((theta, xs, ys))
    return tuple(_Sweep(update, increment, boundary, tree)(*leaves))

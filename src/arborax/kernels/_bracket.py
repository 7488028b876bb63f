r"""Kernels of paths with supplied brackets, without enumerating trees.

A segment contributes `exp_*(s ell)`, `0 <= s <= 1`, with
`ell = sum dx^i (i) - 1/2 sum dA^ij [j]_i` (MATH.md §2). Differentiating along both
segments and summing over all words, trees or forests closes after one auxiliary vector
per side. With `F` the kernel and, for forests `f, g`,

    R^j = sum X([f]_j) Y(f) / sigma(f)        (X has one more root)
    Q^j = sum X(f) Y([f]_j) / sigma(f)        (Y has one more root)

(words: `R^j = sum X(w j) Y(w)`; planar: `R^j = sum X(g [f]_j) Y(g) Y(f)`) one finds,
with `a = dx - A Q / 2`, `b = dy - B R / 2` for the increments `A`, `B` of the brackets,

    ito       F_st = F <dx, dy> + F <A, B>/4 - (dx.B R + dy.A Q)/2
              R_s  = F dx - A Q/2
    branched  T_st = F (<a, b> + F <A, B>/4),  F = exp(T)
              R_s  = F a
    planar    F_st = F (F <dx, dy> + F^2 <A, B>/4 - (dx.B R + dy.A Q)/2)
              R_s  = F (F dx - A Q/2)

and `Q_t` alike, with `dy`, `B` and `R`.

A side without brackets is a left-point side: its arguments on the right are frozen at
the near edge (only the trees' children for planar), which reproduces the left-point
sums exactly. Inside a cell all components of weight `k` are polynomials of degree `k`
in each coordinate, so collocation at `N + 1` nodes is exact for the kernel truncated
at weight `N`. The full kernel uses `NODES` nodes and as many Picard sweeps per cell.

Cost per cell `O(N^2 q^2 d + N q^2 d^2)` with `q = N + 1` nodes, memory independent of
the number of trees. Derived for this library; checked against explicit features.
"""

from typing import Any, Literal, NamedTuple

import jax.lax as lax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ._edges import edge_sweep
from ._recursions import forests_from_trees


Kind = Literal["ito", "branched", "planar"]
_NODES = 6


def _nodes(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Chebyshev-Lobatto nodes on [0, 1] and the matrix of `int_0^{s_i}` on them."""
    nodes = (1 - np.cos(np.pi * np.arange(count) / (count - 1))) / 2
    powers = nodes[:, None] ** np.arange(count)[None, :]
    integrals = nodes[:, None] ** np.arange(1, count + 1) / np.arange(1, count + 1)
    return nodes, integrals @ np.linalg.inv(powers)


class _Data(NamedTuple):
    """A diagonal's cells: channels second, batch last, `d d` for the brackets."""

    dx: Array
    dy: Array
    ax: Array | None
    ay: Array | None


def _mul(a: list, b: list, k: int, join) -> Any:
    """Weight `k` of the product of two graded lists; `None` stands for zero."""
    if k < 0:
        return None
    terms = [
        join(a[j], b[k - j])
        for j in range(k + 1)
        if a[j] is not None and b[k - j] is not None
    ]
    return _add(*terms)


def _add(*terms: Array | None) -> Any:
    kept = [t for t in terms if t is not None]
    return sum(kept[1:], kept[0]) if kept else None


def _vector(u: Array) -> Array:
    """Cell data `(n, d, *b)` as a field, constant over the nodes."""
    return u[:, :, None, None]


def _scalar(u: Array) -> Array:
    return u[:, None, None]


def _apply(matrix: Array | None, field: Array | None) -> Any:
    """`-1/2` matrix times vector field."""
    if matrix is None or field is None:
        return None
    product = matrix[:, :, :, None, None] * field[:, None]
    return -0.5 * jnp.sum(product, axis=2)


def _dot(u: Array, v: Array) -> Array:
    return jnp.sum(u * v, axis=1)


def _scaled(u: Array, v: Array) -> Array:
    return u[:, None] * v


class _Cell:
    """The right-hand sides of the table above, on node values, weight by weight.

    Fields are lists over the weight; entries are `None` where not needed.
    """

    def __init__(self, kind: Kind, data: _Data):
        self.kind, self.data = kind, data
        self.c = _scalar(_dot(data.dx, data.dy))
        ax, ay = data.ax, data.ay
        self.double = None
        if ax is not None and ay is not None:
            self.double = _scalar(0.25 * jnp.sum(ax * ay, axis=(1, 2)))
        # dx . B R = (B dx) . R, and alike for the other side.
        self.to_r = self.to_q = None
        if ay is not None:
            self.to_r = _vector(-0.5 * jnp.sum(ay * data.dx[:, None], axis=2))
        if ax is not None:
            self.to_q = _vector(-0.5 * jnp.sum(ax * data.dy[:, None], axis=2))

    def freeze(self, field: Array | None, vector: bool = False) -> Any:
        """Left-point sides are evaluated at their near edge."""
        if field is None:
            return None
        axis = 2 if vector else 1
        if self.data.ax is None:
            near = lax.slice_in_dim(field, 0, 1, axis=axis)
            field = jnp.broadcast_to(near, field.shape)
        if self.data.ay is None:
            near = lax.slice_in_dim(field, 0, 1, axis=axis + 1)
            field = jnp.broadcast_to(near, field.shape)
        return field

    def cross(self, f, r, q, k: int) -> Any:
        """Weight `k` of the terms linear in the trees (`ito`, `planar`)."""
        parts = []
        if k >= 1:
            parts.append(None if f[k - 1] is None else f[k - 1] * self.c)
        if k >= 2:
            if self.to_r is not None and r[k - 2] is not None:
                parts.append(_dot(self.to_r, r[k - 2]))
            if self.to_q is not None and q[k - 2] is not None:
                parts.append(_dot(self.to_q, q[k - 2]))
            if self.double is not None:
                square = f if self.kind == "ito" else None
                if square is None:
                    value = _mul(f, f, k - 2, jnp.multiply)
                else:
                    value = square[k - 2]
                parts.append(None if value is None else self.double * value)
        return _add(*parts)

    def shifted(self, matrix: Array | None, other: list, dx: Array, k: int):
        """Weight `k` of `dx - 1/2 A Q` (without the factor `F`)."""
        drift = _vector(dx) if k == 0 else None
        return _add(drift, _apply(matrix, other[k - 1]) if k else None)

    def main(self, f: list, r: list, q: list, k: int) -> Any:
        """Weight `k` of `F_st` (or `T_st`) from the weights below."""
        frozen = [self.freeze(v) for v in f[:k]]
        fr = [self.freeze(v, vector=True) for v in r[:k]]
        fq = [self.freeze(v, vector=True) for v in q[:k]]
        if self.kind == "ito":
            return self.cross(frozen, fr, fq, k)
        if self.kind == "planar":
            rates = [self.cross(frozen, fr, fq, j) for j in range(k + 1)]
            return _mul([*f[:k], None], rates, k, jnp.multiply)
        if k == 0:
            return None
        a = [self.shifted(self.data.ax, fq, self.data.dx, j) for j in range(k)]
        b = [self.shifted(self.data.ay, fr, self.data.dy, j) for j in range(k)]
        inner = [_mul(a, b, j, _dot) for j in range(k)]
        single = _mul(frozen, inner, k - 1, jnp.multiply)
        if self.double is None or k < 2:
            return single
        return _add(single, self.double * _mul(frozen, frozen, k - 2, jnp.multiply))

    def auxiliary(
        self, matrix: Array | None, f: list, other: list, dx: Array, k: int
    ) -> Any:
        """Weight `k` of `R_s` (from `A`, `Q`, `dx`) or `Q_t` (from `B`, `R`, `dy`)."""
        frozen = [self.freeze(v) for v in f[: k + 1]]
        others = [self.freeze(v, vector=True) for v in other[:k]]
        if self.kind == "branched":
            rates = [self.shifted(matrix, others, dx, j) for j in range(k + 1)]
            return _mul(frozen, rates, k, _scaled)
        pulled = [None, *(_apply(matrix, v) for v in others)]
        linear = [
            _add(_scaled(frozen[j], _vector(dx)), pulled[j]) for j in range(k + 1)
        ]
        if self.kind == "ito":
            return linear[k]
        return _mul(f[: k + 1], linear, k, _scaled)


class _Edge(NamedTuple):
    """Node values on one edge, lists over the weight: main field, auxiliary vector."""

    main: list
    aux: list


def _blend(lower: Array, left: Array) -> Array:
    """The solution of `u_st = 0` with given edges."""
    return lower[:, :, None] + left[:, None] - lower[:, None, :1]


def _solve(
    kind: Kind,
    depth: int,
    rule: np.ndarray,
    lower: _Edge,
    left: _Edge,
    data: _Data,
) -> tuple[_Edge, _Edge]:
    """Solve one diagonal of cells, weight by weight: exact for the truncated kernel."""
    cell = _Cell(kind, data)
    rule_ = jnp.asarray(rule, cell.c.dtype)
    u, f, r, q = [], [], [], []
    for k in range(depth + 1):
        rate = cell.main(f, r, q, k)
        value = _blend(lower.main[k], left.main[k])
        if rate is not None:
            value = value + jnp.einsum("is,jt,nst...->nij...", rule_, rule_, rate)
        u.append(value)
        if kind == "branched":
            f.append(forests_from_trees(tuple(u[1:]))[k] if k else jnp.ones_like(value))
        else:
            f.append(value)
        r_k = q_k = None
        if k <= depth - 2 and data.ay is not None:
            rate = cell.auxiliary(data.ax, f, q, data.dx, k)
            integral = jnp.einsum("is,ndst...->ndit...", rule_, rate)
            r_k = left.aux[k][:, :, None] + integral
        if k <= depth - 2 and data.ax is not None:
            rate = cell.auxiliary(data.ay, f, r, data.dy, k)
            integral = jnp.einsum("jt,ndst...->ndsj...", rule_, rate)
            q_k = lower.aux[k][:, :, :, None] + integral
        r.append(r_k)
        q.append(q_k)
    upper = _Edge(
        [v[:, :, -1] for v in u], [None if v is None else v[:, :, :, -1] for v in q]
    )
    right = _Edge(
        [v[:, -1] for v in u], [None if v is None else v[:, :, -1] for v in r]
    )
    return upper, right


def _picard(
    kind: Kind, rule: np.ndarray, lower: _Edge, left: _Edge, data: _Data
) -> tuple[_Edge, _Edge]:
    """Solve one diagonal of cells of the full kernel by Picard sweeps at the nodes."""
    cell = _Cell(kind, data)
    rule_ = jnp.asarray(rule, cell.c.dtype)
    base = _blend(lower.main[0], left.main[0])
    size = base.shape[1]
    u, r, q = base, None, None
    base_r = base_q = jnp.zeros((), base.dtype)
    if data.ay is not None:
        base_r = jnp.repeat(left.aux[0][:, :, None], size, axis=2)
        r = base_r
    if data.ax is not None:
        base_q = jnp.repeat(lower.aux[0][:, :, :, None], size, axis=3)
        q = base_q
    for _ in range(size):
        f = jnp.exp(u) if kind == "branched" else u
        rate = _untruncated_main(cell, f, r, q)
        new_r = new_q = None
        if data.ay is not None:
            rate_r = _untruncated_auxiliary(cell, data.ax, f, q, data.dx)
            new_r = base_r + jnp.einsum("is,ndst...->ndit...", rule_, rate_r)
        if data.ax is not None:
            rate_q = _untruncated_auxiliary(cell, data.ay, f, r, data.dy)
            new_q = base_q + jnp.einsum("jt,ndst...->ndsj...", rule_, rate_q)
        u = base + jnp.einsum("is,jt,nst...->nij...", rule_, rule_, rate)
        r, q = new_r, new_q
    upper = _Edge([u[:, :, -1]], [None if q is None else q[:, :, :, -1]])
    right = _Edge([u[:, -1]], [None if r is None else r[:, :, -1]])
    return upper, right


def _untruncated_main(cell: _Cell, f: Array, r: Array | None, q: Array | None):
    frozen = cell.freeze(f)
    fr, fq = cell.freeze(r, vector=True), cell.freeze(q, vector=True)
    data = cell.data
    if cell.kind == "branched":
        a = _add(_vector(data.dx), _apply(data.ax, fq))
        b = _add(_vector(data.dy), _apply(data.ay, fr))
        inner = _dot(a, b)
        if cell.double is not None:
            inner = inner + cell.double * frozen
        return frozen * inner
    rate = frozen * cell.c
    if cell.to_r is not None:
        rate = rate + _dot(cell.to_r, fr)
    if cell.to_q is not None:
        rate = rate + _dot(cell.to_q, fq)
    if cell.double is not None:
        square = frozen if cell.kind == "ito" else frozen * frozen
        rate = rate + cell.double * square
    return rate if cell.kind == "ito" else f * rate


def _untruncated_auxiliary(cell: _Cell, matrix, f: Array, other, dx: Array) -> Array:
    frozen = cell.freeze(f)
    pulled = _apply(matrix, cell.freeze(other, vector=True))
    if cell.kind == "branched":
        return _scaled(frozen, _add(_vector(dx), pulled))
    linear = _add(_scaled(frozen, _vector(dx)), pulled)
    return linear if cell.kind == "ito" else _scaled(f, linear)


def bracket_kernel(
    kind: Kind,
    depth: int | None,
    dx: Array,
    dy: Array,
    ax: Array | None,
    ay: Array | None,
) -> Array:
    """Kernel of two batches of paths, at least one of them with supplied brackets.

    **Arguments:**

    - `kind`, `depth`: kind of kernel and weight, `None` for the full kernel.
    - `dx`, `dy`: increments `(cells, d, *batch)`; batch axes broadcast.
    - `ax`, `ay`: increments of the brackets `(cells, d, d, *batch)`, or `None` for
        left-point sums on that side.

    **Returns:**

    The kernel, of the broadcast batch shape.
    """
    batch = jnp.broadcast_shapes(dx.shape[2:], dy.shape[2:])
    size = _NODES if depth is None else depth + 1
    _, rule = _nodes(size)
    levels = 1 if depth is None else depth + 1
    d, dtype = dx.shape[1], dx.dtype

    def edge(bracket):
        first = 1.0 if kind != "branched" else 0.0
        main = [jnp.full((1, size, *batch), first, dtype)]
        main += [jnp.zeros((1, size, *batch), dtype)] * (levels - 1)
        last = 0 if depth is None else depth - 2
        aux = [
            jnp.zeros((1, d, size, *batch), dtype)
            if bracket is not None and k <= last
            else None
            for k in range(levels)
        ]
        return _Edge(main, aux)

    def cell(lower, left, x, y):
        data = _Data(x[0], y[0], x[1], y[1])
        if depth is None:
            return _picard(kind, rule, lower, left, data)
        return _solve(kind, depth, rule, lower, left, data)

    upper, _ = edge_sweep(cell, edge(ax), edge(ay), (dx, ax), (dy, ay))
    main = [v[-1] for v in upper.main]
    if kind != "branched":
        return sum(main[1:], main[0])
    if depth is None:
        return jnp.exp(main[0])
    forests = forests_from_trees(tuple(main[1:]))
    return sum(forests[1:], forests[0])

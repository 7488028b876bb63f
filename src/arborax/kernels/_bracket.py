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

and `Q_t` in the same way, with `dy`, `B` and `R`.

A side without brackets is a left-point side: its arguments on the right are frozen at
the near edge (only the trees' children for planar), which reproduces the left-point
sums exactly. Inside a cell all components of weight `k` are polynomials of degree `k`
in each coordinate, so collocation at `N + 1` nodes is exact for the kernel truncated
at weight `N`. The full kernel uses `NODES` nodes and as many Picard sweeps per cell.

Cost per cell `O(N^2 q^2 d + N q^2 d^2)` with `q = N + 1` nodes, memory independent of
the number of trees. Derived for this library; checked against explicit features.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import jax.lax as lax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ._recursions import forests_from_trees
from ._sweep import edge_sweep


Kind = Literal["ito", "branched", "planar"]
_NODES = 6


def _integration(count: int) -> np.ndarray:
    """The matrix of `int_0^{s_i}` on the Chebyshev-Lobatto nodes of [0, 1]."""
    nodes = (1 - np.cos(np.pi * np.arange(count) / (count - 1))) / 2
    powers = nodes[:, None] ** np.arange(count)[None, :]
    integrals = nodes[:, None] ** np.arange(1, count + 1) / np.arange(1, count + 1)
    return integrals @ np.linalg.inv(powers)


class _Data(NamedTuple):
    """A diagonal's cells: channels second, batch last, `d d` for the brackets."""

    dx: Array
    dy: Array
    ax: Array | None
    ay: Array | None


# Fields of a truncated kernel are lists over the weight `k`. Those of the full kernel
# have one entry, and `k` is then `None`. An entry that is `None` is zero.


def _below(k: int | None, steps: int) -> int | None:
    return None if k is None else k - steps


def _up_to(k: int | None) -> Sequence[int | None]:
    return [None] if k is None else range(k + 1)


def _pick(series: list, k: int | None) -> Any:
    if k is None:
        return series[0]
    return series[k] if 0 <= k < len(series) else None


def _join(join: Callable, a: Array | None, b: Array | None) -> Any:
    return None if a is None or b is None else join(a, b)


def _add(*terms: Array | None) -> Any:
    kept = [t for t in terms if t is not None]
    return sum(kept[1:], kept[0]) if kept else None


def _mul(a: list, b: list, k: int | None, join: Callable = jnp.multiply) -> Any:
    """Weight `k` of the product of two series."""
    if k is None:
        return _join(join, a[0], b[0])
    pairs = [(_pick(a, j), _pick(b, k - j)) for j in range(k + 1)]
    return _add(*(_join(join, u, v) for u, v in pairs))


def _vector(u: Array) -> Array:
    """Cell data `(n, d, *b)` as a field, constant over the nodes."""
    return u[:, :, None, None]


def _apply(matrix: Array, field: Array) -> Array:
    """`-1/2` matrix times vector field."""
    return -0.5 * jnp.sum(matrix[:, :, :, None, None] * field[:, None], axis=2)


def _dot(u: Array, v: Array) -> Array:
    return jnp.sum(u * v, axis=1)


def _scaled(u: Array, v: Array) -> Array:
    return u[:, None] * v


class _Cell:
    """The right-hand sides of the table above, on node values, weight by weight."""

    def __init__(self, kind: Kind, data: _Data):
        self.kind, self.data = kind, data
        dx, dy, ax, ay = data
        self.c = _dot(dx, dy)[:, None, None]
        self.double = self.to_r = self.to_q = None
        if ax is not None and ay is not None:
            self.double = 0.25 * jnp.sum(ax * ay, axis=(1, 2))[:, None, None]
        # dx . B R = (B dx) . R, and the same for the other side.
        if ay is not None:
            self.to_r = _vector(-0.5 * jnp.sum(ay * dx[:, None], axis=2))
        if ax is not None:
            self.to_q = _vector(-0.5 * jnp.sum(ax * dy[:, None], axis=2))

    def freeze(self, series: list, axis: int = 1) -> list:
        """Left-point sides are evaluated at their near edge; `axis`: first of nodes."""

        def frozen(field: Array | None) -> Any:
            for side, along in ((self.data.ax, axis), (self.data.ay, axis + 1)):
                if side is None and field is not None:
                    near = lax.slice_in_dim(field, 0, 1, axis=along)
                    field = jnp.broadcast_to(near, field.shape)
            return field

        return [frozen(field) for field in series]

    def cross(self, f: list, r: list, q: list, k: int | None) -> Any:
        """Weight `k` of the terms linear in the trees (`ito`, `planar`)."""
        low = _below(k, 2)
        square = _pick(f, low)
        if self.kind == "planar" and self.double is not None:
            square = _mul(f, f, low)
        return _add(
            _join(jnp.multiply, self.c, _pick(f, _below(k, 1))),
            _join(_dot, self.to_r, _pick(r, low)),
            _join(_dot, self.to_q, _pick(q, low)),
            _join(jnp.multiply, self.double, square),
        )

    def shifted(self, matrix: Array | None, other: list, dx: Array, k: int | None):
        """Weight `k` of `dx - 1/2 A Q` (without the factor `F`)."""
        drift = None if k else _vector(dx)
        return _add(drift, _join(_apply, matrix, _pick(other, _below(k, 1))))

    def main(self, f: list, r: list, q: list, k: int | None) -> Any:
        """Weight `k` of `F_st` (or `T_st`) from the weights below."""
        near, fr, fq = self.freeze(f), self.freeze(r, 2), self.freeze(q, 2)
        if self.kind == "ito":
            return self.cross(near, fr, fq, k)
        if self.kind == "planar":
            return _mul(f, [self.cross(near, fr, fq, j) for j in _up_to(k)], k)
        dx, dy, ax, ay = self.data
        low = _below(k, 1)
        a = [self.shifted(ax, fq, dx, j) for j in _up_to(low)]
        b = [self.shifted(ay, fr, dy, j) for j in _up_to(low)]
        inner = [_mul(a, b, j, _dot) for j in _up_to(low)]
        single = _mul(near, inner, low)
        if self.double is None:
            return single
        square = _mul(near, near, _below(k, 2))
        return _add(single, _join(jnp.multiply, self.double, square))

    def auxiliary(
        self, matrix: Array | None, f: list, other: list, dx: Array, k: int | None
    ) -> Any:
        """Weight `k` of `R_s` (from `A`, `Q`, `dx`) or `Q_t` (from `B`, `R`, `dy`)."""
        near, other = self.freeze(f), self.freeze(other, 2)
        if self.kind == "branched":
            rates = [self.shifted(matrix, other, dx, j) for j in _up_to(k)]
            return _mul(near, rates, k, _scaled)
        linear = [
            _add(
                _scaled(_pick(near, j), _vector(dx)),
                _join(_apply, matrix, _pick(other, _below(j, 1))),
            )
            for j in _up_to(k)
        ]
        return linear[-1] if self.kind == "ito" else _mul(f, linear, k, _scaled)


class _Edge(NamedTuple):
    """Node values on one edge, lists over the weight: main field, auxiliary vector."""

    main: list
    aux: list


def _solve(
    kind: Kind,
    depth: int | None,
    rule: np.ndarray,
    lower: _Edge,
    left: _Edge,
    data: _Data,
) -> tuple[_Edge, _Edge]:
    """Solve one diagonal of cells.

    Truncated: weight by weight, exact. The full kernel: by Picard sweeps.
    """
    cell = _Cell(kind, data)
    rule_ = jnp.asarray(rule, cell.c.dtype)

    def free(k: int | None) -> Array:
        """The solution of `u_st = 0` with the given edges."""
        bottom, side = _pick(lower.main, k), _pick(left.main, k)
        return bottom[:, :, None] + side[:, None] - bottom[:, None, :1]

    def main(f: list, r: list, q: list, k: int | None) -> Array:
        value, rate = free(k), cell.main(f, r, q, k)
        if rate is None:
            return value
        return value + jnp.einsum("is,jt,nst...->nij...", rule_, rule_, rate)

    def auxiliary(f: list, r: list, q: list, k: int | None) -> tuple[Any, Any]:
        side, bottom = _pick(left.aux, k), _pick(lower.aux, k)
        if side is not None:
            rate = cell.auxiliary(data.ax, f, q, data.dx, k)
            integral = jnp.einsum("is,ndst...->ndit...", rule_, rate)
            side = side[:, :, None] + integral
        if bottom is not None:
            rate = cell.auxiliary(data.ay, f, r, data.dy, k)
            integral = jnp.einsum("jt,ndst...->ndsj...", rule_, rate)
            bottom = bottom[:, :, :, None] + integral
        return side, bottom

    if depth is None:
        size = rule.shape[0]
        u = [free(None)]
        r = [a if a is None else jnp.stack([a] * size, axis=2) for a in left.aux]
        q = [a if a is None else jnp.stack([a] * size, axis=3) for a in lower.aux]
        for _ in range(size):
            f = [jnp.exp(u[0])] if kind == "branched" else u
            u, (r_new, q_new) = [main(f, r, q, None)], auxiliary(f, r, q, None)
            r, q = [r_new], [q_new]
    else:
        u, f, r, q = [], [], [], []
        for k in range(depth + 1):
            u.append(main(f, r, q, k))
            if kind != "branched":
                f.append(u[k])
            elif k == 0:
                f.append(jnp.ones_like(u[0]))
            else:
                f.append(forests_from_trees(tuple(u[1:]))[k])
            r_new, q_new = auxiliary(f, r, q, k)
            r.append(r_new)
            q.append(q_new)
    upper = [None if v is None else v[:, :, :, -1] for v in q]
    right = [None if v is None else v[:, :, -1] for v in r]
    return _Edge([v[:, :, -1] for v in u], upper), _Edge([v[:, -1] for v in u], right)


def bracket_kernel(
    kind: Kind,
    depth: int | None,
    outer: bool,
    x: Array,
    y: Array,
    ax: Array | None,
    ay: Array | None,
) -> Array:
    """Kernel of two batches of paths, at least one of them with supplied brackets: `(b,
    b')` if `outer`, otherwise `(b,)`.

    `x`, `y` are points `(batch, times, d)`; `ax`, `ay` increments of the brackets
    `(batch, times - 1, d, d)`, or `None` for left-point sums on that side.
    """

    def cells(points: Array, brackets: Array | None, axis: int) -> tuple:
        """Increments with the batch last, and an axis of length one for the other."""
        found = []
        for a in (jnp.diff(points, axis=1), brackets):
            a = None if a is None else jnp.moveaxis(a, 0, -1)
            if a is not None and outer:
                a = jnp.expand_dims(a, a.ndim - axis)
            found.append(a)
        return tuple(found)

    xs, ys = cells(x, ax, 0), cells(y, ay, 1)
    batch = jnp.broadcast_shapes(xs[0].shape[2:], ys[0].shape[2:])
    size = _NODES if depth is None else depth + 1
    levels = 1 if depth is None else depth + 1
    rule = _integration(size)

    def edge(bracket):
        def zeros(*shape):
            return jnp.zeros((1, *shape, size, *batch), x.dtype)

        first = zeros() if kind == "branched" else zeros() + 1
        last = 0 if depth is None else depth - 2
        kept = [bracket is not None and k <= last for k in range(levels)]
        aux = [zeros(x.shape[-1]) if keep else None for keep in kept]
        return _Edge([first] + [zeros()] * (levels - 1), aux)

    def cell(lower, left, x, y):
        return _solve(kind, depth, rule, lower, left, _Data(x[0], y[0], x[1], y[1]))

    upper, _ = edge_sweep(cell, edge(ax), edge(ay), xs, ys)
    main = [v[-1] for v in upper.main]
    if kind == "branched":
        if depth is None:
            return jnp.exp(main[0])
        main = forests_from_trees(tuple(main[1:]))
    return sum(main[1:], main[0])

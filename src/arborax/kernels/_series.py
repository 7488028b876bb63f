r"""Constant-coefficient Goursat cells solved by power series: exact, no refinement.

Inside a cell `u_st = C u` with `C` constant. If `u(s, 0) = sum_i a_i s^i / i!` and
`u(0, t) = sum_j b_j t^j / j!` with `a_0 = b_0`, then the coefficient of
`s^i t^j / (i! j!)` is `C^j a_{i-j}` for `i >= j` and `C^i b_{j-i}` otherwise, and the
leaving edges follow by setting one variable to one.

* geometric: `C = <dx, dy>` (or the second difference of the static kernel). This is
  the exact kernel of the piecewise linear paths.
* planar: `C = F[n, m] <dx, dy>` with `F` at the near corner: forests are words over
  planar trees whose step increments are `F(children) dx` (MATH.md §2, §5).

Truncated by weight, `C` has weight one (times the graded `F` for planar) and edges of
weight `k` have degree at most `k`, so everything is finite and exact. Untruncated,
edges keep the degree `order`; the neglected part of a cell is of size
`C^order / order!^2`.
"""

import math
from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from ._edges import edge_sweep


Increment = Callable[[PyTree, PyTree], Array]


def _times(a: list[Array], b: list[Array], size: int) -> list[Array]:
    """Product of two series in the weight, up to `size` terms."""
    out = []
    for k in range(size):
        terms = [a[j] * b[k - j] for j in range(k + 1) if j < len(a) and k - j < len(b)]
        out.append(sum(terms[1:], terms[0]))
    return out


def _leaving_truncated(
    a: list[list[Array]], b: list[list[Array]], powers: list[list[Array]]
) -> list[list[Array]]:
    """Coefficients of one leaving edge; `a[i]` holds the weights `i..depth`."""
    depth = len(a) - 1
    out = []
    for i in range(depth + 1):
        size = depth + 1 - i
        total = a[i]
        for j in range(1, i + 1):
            term = _times(powers[j], a[i - j], size)
            weight = 1 / math.factorial(j)
            total = [u + weight * v for u, v in zip(total, term, strict=True)]
        for j in range(i + 1, depth + 1):
            term = _times(powers[i], b[j - i], depth + 1 - j) if i else b[j]
            weight = 1 / math.factorial(j)
            shifted = [
                u + weight * v for u, v in zip(total[j - i :], term, strict=True)
            ]
            total = [*total[: j - i], *shifted]
        out.append(total)
    return out


def truncated(
    increment: Increment, planar: bool, depth: int, xs: PyTree, ys: PyTree, like: Array
) -> list[Array]:
    """Levels `0..depth` of the geometric or planar kernel; `like` is `(1, *batch)`."""

    def cell(lower, left, x, y):
        c = increment(x, y)
        one = [jnp.ones_like(c)]
        base = lower[0] if planar else one
        powers, scaled = [one], one
        for _ in range(depth):
            scaled = _times(base, scaled, depth + 1) if planar else scaled
            powers.append(scaled)
        weighted, factor = [one], jnp.ones_like(c)
        for j in range(1, depth + 1):
            factor = factor * c
            weighted.append([factor * u for u in powers[j]])
        upper = _leaving_truncated(lower, left, weighted)
        right = _leaving_truncated(left, lower, weighted)
        return upper, right

    zero, one = jnp.zeros_like(like), jnp.ones_like(like)
    edge = [[zero] * (depth + 1 - i) for i in range(depth + 1)]
    edge[0] = [one, *edge[0][1:]]
    upper, _ = edge_sweep(cell, edge, edge, xs, ys)
    levels = []
    for k in range(depth + 1):
        terms = [upper[i][k - i] / math.factorial(i) for i in range(k + 1)]
        levels.append(sum(terms[1:], terms[0]))
    return levels


def _leaving(a: list[Array], b: list[Array], powers: list[Array]) -> list[Array]:
    order = len(a) - 1
    out = []
    for i in range(order + 1):
        terms = [powers[j] * a[i - j] * (1 / math.factorial(j)) for j in range(i + 1)]
        terms += [
            powers[i] * b[j - i] * (1 / math.factorial(j))
            for j in range(i + 1, order + 1)
        ]
        out.append(sum(terms[1:], terms[0]))
    return out


def untruncated(
    increment: Increment, planar: bool, order: int, xs: PyTree, ys: PyTree, like: Array
) -> Array:
    """The full geometric or planar kernel; `like` is `(1, *batch)`."""

    def cell(lower, left, x, y):
        c = increment(x, y)
        coefficient = c * lower[0] if planar else c
        powers = [jnp.ones_like(c)]
        for _ in range(order):
            powers.append(powers[-1] * coefficient)
        return _leaving(lower, left, powers), _leaving(left, lower, powers)

    edge = [jnp.ones_like(like)] + [jnp.zeros_like(like)] * order
    upper, _ = edge_sweep(cell, edge, edge, xs, ys)
    terms = [u / math.factorial(i) for i, u in enumerate(upper)]
    return sum(terms[1:], terms[0])

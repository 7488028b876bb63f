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
edges keep the degree `_ORDER`; the neglected part of a cell is of size
`C^order / order!^2`.

A coefficient is a list over the weight: `a[i]` holds the weights `i..depth`, or one
number for the full kernel.
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from ._sweep import edge_sweep, Increment


_ORDER = 8


def _times(a: list[Array], b: list[Array], size: int) -> list[Array]:
    """Product of two series in the weight, up to `size` terms."""
    out = []
    for k in range(size):
        terms = [a[j] * b[k - j] for j in range(k + 1) if j < len(a) and k - j < len(b)]
        out.append(sum(terms[1:], terms[0]))
    return out


def _leaving(
    a: list[list[Array]], b: list[list[Array]], powers: list[list[Array]]
) -> list[list[Array]]:
    """Coefficients of one leaving edge."""
    out = []
    for i in range(len(a)):
        total = a[i]
        for j in range(1, len(a)):
            # `s^i t^j / (i! j!)` comes from the entering edge of the higher degree.
            edge = a[i - j] if j <= i else b[j - i]
            term = _times(powers[min(i, j)], edge, len(a[max(i, j)]))
            shift = len(total) - len(term)
            added = zip(total[shift:], term, strict=True)
            scaled = [u + v * (1 / math.factorial(j)) for u, v in added]
            total = [*total[:shift], *scaled]
        out.append(total)
    return out


def series_kernel(
    increment: Increment,
    planar: bool,
    depth: int | None,
    xs: PyTree,
    ys: PyTree,
    like: Array,
) -> Array:
    """The geometric or planar kernel, truncated at `depth` or (`None`) complete.

    `increment` maps cells of `xs` and `ys` to `<dx, dy>`; `like` is `(1, *batch)`.
    """
    order = _ORDER if depth is None else depth
    sizes = [1 if depth is None else depth + 1 - i for i in range(order + 1)]

    def cell(lower, left, x, y):
        c = increment(x, y)
        rate = [c * u for u in lower[0]] if planar else [c]
        powers = [[jnp.ones_like(c)]]
        for _ in range(order):
            powers.append(_times(rate, powers[-1], sizes[0] if planar else 1))
        return _leaving(lower, left, powers), _leaving(left, lower, powers)

    edge = [[jnp.zeros_like(like)] * size for size in sizes]
    edge[0] = [jnp.ones_like(like), *edge[0][1:]]
    upper, _ = edge_sweep(cell, edge, edge, xs, ys)
    terms = [u / math.factorial(i) for i, weights in enumerate(upper) for u in weights]
    return sum(terms[1:], terms[0])

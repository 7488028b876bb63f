r"""Window fields of depth three from one expansion of the fields to second order.

With $D_p$ the derivative along a frame field with frozen coefficients $p$ and
$N_{qk} = \nabla_q V_k$,

$$\nabla_{V_i} \nabla_{V_j} V_k = \nabla_i N_{jk} + \nabla_{D_i V_j} V_k, \qquad
\nabla_{\nabla_{V_i} V_j} V_k = \nabla_{N_{ij}} V_k ,$$

where $i, j$ as directions stand for the values of $V_i, V_j$, frozen. So all trees of
three vertices need the fields, their derivatives along $m = \min(d, dim)$ directions,
and second derivatives along pairs of these, contracted for each channel with
coefficients that are known beforehand. Forests need no more.
"""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..geometry._settle import settle
from ._flat import is_flat
from ._linear import add, small_product
from ._third_coefficients import pick, ThirdCoefficients
from ._torsion import double_bracket_part, torsion_part


if TYPE_CHECKING:
    from ._calculus import FrameCalculus


def third_order(
    calculus: "FrameCalculus", x: ThirdCoefficients, y
) -> Float[Array, " dim"]:
    """The window field with these coefficients."""
    d, n = calculus.driving.number, calculus.dim
    expansion = calculus.expand(y)
    v = expansion.value
    by_frame = n < d
    basis = calculus.eye(v) if by_frame else v
    m = basis.shape[0]
    directions = calculus.tangents(y, basis)
    dots, bend = expansion.along(directions)
    dots = dots.reshape(m * d, n)
    nablas = dots
    if not calculus.parallel:
        rows = jax.vmap(calculus.connect, in_axes=(None, None, 0))
        turned = jax.vmap(rows, in_axes=(None, 0, None))(y, basis, v).reshape(m * d, n)
        nablas = settle(dots + turned)

    # Coefficients by direction: first one index, (p, j, k), then two, (p, q, k).
    stack = x.triples
    if by_frame:
        stack = settle(small_product(v.T, stack.reshape(d, -1)))
    stack = stack.reshape(m, -1, d, d)
    once = lambda name: settle(pick(stack, x.slots(name)))  # noqa: E731
    both: dict[tuple[int, ...], Array] = {}

    def twice(name):
        slots = x.slots(name)
        if slots not in both:
            one = once(name)
            by_rows = jax.vmap(lambda c: small_product(v.T, c))
            both[slots] = settle(by_rows(one)) if by_frame else one
        return both[slots]

    flat = lambda c: c.reshape(-1, d).T  # noqa: E731
    chain, pairs = once("chain"), twice("chain")
    w = small_product(x.pairs.T, v) + small_product(flat(chain), dots)
    if x.slots("bush"):
        w = w + small_product(flat(once("bush")), nablas)
    w = settle(w)

    tangents = calculus.tangents(y, w)
    if not is_flat(calculus.geometry):
        moments = jnp.moveaxis(pairs, -1, 0)
        if not by_frame:
            moments = jax.vmap(lambda c: basis.T @ c @ basis)(moments)
        turning = jax.vmap(calculus.geometry.turning, in_axes=(None, 0))
        tangents = add(tangents, turning(y, moments))
    out = small_product(x.singles[None], v)[0] + bend(pairs, tangents)
    if not calculus.parallel:
        out = out + _connect(calculus, y, basis, v, w, pairs, dots, nablas)

    # Two trees: the fields of one and of two vertices, in both orders.
    if x.slots("later"):
        assert x.two is not None
        tensor = small_product(small_product(x.two.T, v).T, v)
        first = small_product(flat(once("earlier")), nablas)
        rows = small_product(twice("later").reshape(m, m * d), nablas)
        if x.slots("between"):
            middle = jnp.swapaxes(twice("between"), 0, 1).reshape(m, m * d)
            rows = rows + small_product(middle, nablas)
        tensor = tensor + small_product(first.T, v) + small_product(basis.T, rows)
        out = out + torsion_part(calculus, y, settle(tensor))
    if x.slots("three"):
        cubic = small_product(twice("three").reshape(m * m, d), v)
        if not by_frame:
            cubic = small_product(basis.T, cubic.reshape(m, m * n)).reshape(n, m, n)
            cubic = jax.vmap(lambda c: small_product(basis.T, c))(cubic)
        out = out + double_bracket_part(calculus, y, settle(cubic.reshape(n, n, n)))
    return settle(out)


def _connect(calculus, y, basis, v, w, pairs, dots, nablas) -> Float[Array, " dim"]:
    r"""What the connection adds: $\Gamma(w_k, v_k)$, and with the coefficients `pairs`
    $\Gamma(q, D_p v_k) + \Gamma(p, N_{qk}) + (D_p \Gamma)(q, v_k)$."""
    m, d = pairs.shape[0], pairs.shape[2]
    second = jnp.swapaxes(pairs, 0, 1).reshape(m, m * d)
    rows = small_product(second, dots)
    rows = rows + small_product(pairs.reshape(m, m * d), nablas)
    moment = small_product(w.T, v) + small_product(basis.T, rows)
    out = calculus.geometry.christoffel_sum(y, settle(moment))
    moments = jax.vmap(lambda c: small_product(basis.T, small_product(c, v)))(pairs)

    def one(p, moment):
        turn = lambda z: calculus.geometry.christoffel_sum(z, moment)  # noqa: E731
        return jax.jvp(turn, (y,), (calculus.geometry.frame(y, p),))[1]

    return out + jnp.sum(jax.vmap(one)(basis, moments), axis=0)

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
from jax.lax import Precision
from jaxtyping import Array, Float

from ._linear import add, Tensors
from ._third_coefficients import ThirdCoefficients
from ._torsion import double_bracket_part, torsion_part


if TYPE_CHECKING:
    from ._calculus import FrameCalculus


def third_order(
    calculus: "FrameCalculus", x: ThirdCoefficients, y
) -> Float[Array, " dim"]:
    """The window field with these coefficients."""
    tensors = Tensors(calculus.dim)
    einsum, here, barrier = tensors.einsum, tensors.bring, tensors.barrier
    expansion, directions = calculus.expand(y)
    by_frame = calculus.by_frame
    v = here("kn", expansion.value)
    basis = calculus.eye(v) if by_frame else v
    if directions is None:
        directions = calculus.tangents(y, basis)
    dots, bend = expansion.along(directions)
    dots = here("pkn", dots)
    nablas = dots
    if not calculus.parallel:
        nablas = barrier(dots + here("pkn", _connect_all(calculus, y, basis, v)))

    # Coefficients by direction: first one index, (p, j, k), then two, (p, q, k).
    stack = here("isjk", x.triples)
    if by_frame:
        stack = einsum("ip,isjk->psjk", v, stack)

    def once(name):
        parts = [jax.lax.slice_in_dim(stack, s, s + 1, axis=1) for s in x.slots(name)]
        return einsum("psjk,s->pjk", sum(parts[1:], parts[0]), jnp.ones(1, v.dtype))

    both: dict[tuple[int, ...], Array] = {}

    def twice(name):
        slots = x.slots(name)
        if slots not in both:
            one = once(name)
            both[slots] = einsum("jq,pjk->pqk", v, one) if by_frame else one
        return both[slots]

    chain, pairs = once("chain"), twice("chain")
    w = einsum("jk,jn->kn", x.pairs, v) + einsum("pjk,pjn->kn", chain, dots)
    if x.slots("bush"):
        w = w + einsum("pjk,pjn->kn", once("bush"), nablas)
    w = barrier(w)

    tangents = calculus.tangents(y, w)
    if not calculus.geometry.flat:
        moments = jnp.moveaxis(pairs, -1, 0)
        if not by_frame:
            moments = einsum("kpq,pa->kaq", moments, basis)
            moments = einsum("kaq,qb->kab", moments, basis)
        turning = jax.vmap(calculus.geometry.turning, in_axes=(None, 0))
        tangents = add(tangents, turning(y, moments))
    out = einsum("k,kn->n", x.singles, v) + bend(pairs, tangents)

    by_basis = lambda z: z if by_frame else einsum("pa,pn->an", basis, z)  # noqa: E731
    if not calculus.parallel:
        # Gamma(w_k, v_k), and for the pairs Gamma(q, D_p v_k) + Gamma(p, N_qk).
        rows = einsum("pqk,pkn->qn", pairs, dots) + einsum("pqk,qkn->pn", pairs, nablas)
        moment = barrier(einsum("ka,kn->an", w, v) + by_basis(rows))
        out = out + calculus.geometry.christoffel_sum(y, moment)
        out = out + _connection_along(calculus, y, basis, v, pairs)

    # Two trees: the fields of one and of two vertices, in both orders.
    if x.slots("later"):
        assert x.two is not None
        tensor = einsum("ja,jb->ab", einsum("ij,ia->ja", x.two, v), v)
        first = einsum("pjk,pjn->kn", once("earlier"), nablas)
        tensor = tensor + einsum("ka,kb->ab", first, v)
        rows = einsum("pqk,qkn->pn", twice("later"), nablas)
        if x.slots("between"):
            rows = rows + einsum("pqk,pkn->qn", twice("between"), nablas)
        out = out + torsion_part(calculus, y, barrier(tensor + by_basis(rows)))
    if x.slots("three"):
        cubic = einsum("pqk,kc->pqc", twice("three"), v)
        if not by_frame:
            cubic = einsum("pa,pqc->aqc", basis, cubic)
            cubic = einsum("qb,aqc->abc", basis, cubic)
        out = out + double_bracket_part(calculus, y, barrier(cubic))
    return barrier(out)


def _connect_all(calculus, y, basis, v) -> Float[Array, "directions channels dim"]:
    r"""$\Gamma(p, v_k)$ for all directions and channels."""
    others = calculus.eye(v) if calculus.by_frame else v
    rows = jax.vmap(calculus.connect, in_axes=(None, None, 0))
    table = jax.vmap(rows, in_axes=(None, 0, None))(y, basis, others)
    if not calculus.by_frame:
        return table
    # Of the frame fields alone it is a constant for many connections.
    return Tensors(calculus.dim).einsum("kb,pbn->pkn", v, table)


def _connection_along(calculus, y, basis, v, pairs) -> Float[Array, " dim"]:
    r"""$\sum (D_p \Gamma)(q, v_k)$ with the coefficients `pairs`. If the connection has
    constant coefficients the compiler sees that this is zero."""
    spec = "pqk,qa,kn->pan"
    moments = jnp.einsum(spec, pairs, basis, v, precision=Precision.HIGHEST)

    def one(p, moment):
        turn = lambda z: calculus.geometry.christoffel_sum(z, moment)  # noqa: E731
        return jax.jvp(turn, (y,), (calculus.geometry.frame(y, p),))[1]

    return jnp.sum(jax.vmap(one)(basis, moments), axis=0)

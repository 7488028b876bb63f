r"""Window fields of depths one, two and three, in closed form.

The tree $[i]_j$ is $i \triangleright j$, with the field $\nabla_{V_i} V_j$. At depth
two, with its coefficients $x_{ij}$, each $V_j$ has one direction
$W_j = \sum_i x_{ij} V_i$:

$$L = \sum_i x_i V_i + \sum_j \nabla_{W_j} V_j + \text{forests } (i, j) .$$

At depth three come trees $i \triangleright (j \triangleright k)$ (*nested*) and
$(i \triangleright j) \triangleright k$ (*ladder*): in terms of planar trees
$[[i]_j]_k$ is the ladder, and $[i\,j]_k$ is nested minus ladder. Let $D_p$ be the
derivative along a frame field with frozen coefficients $p$, and
$N_{pk} = \nabla_p V_k$. Then

$$\nabla_{V_i} \nabla_{V_j} V_k = \nabla_i N_{jk} + \nabla_{D_i V_j} V_k, \qquad
\nabla_{\nabla_{V_i} V_j} V_k = \nabla_{N_{ij}} V_k ,$$

where $i, j$ as directions stand for the values of $V_i, V_j$, frozen. All derivatives
of first order of $V_k$ are again along one direction $W_k$. What remains is
$\sum_{pqk} X^{pq}_k \nabla_p N_{qk}$, in coordinates
$\nabla_p N_{qk} = D_p (D_q v_k + \Gamma(q, v_k)) + \Gamma(p, N_{qk})$. So trees need
the fields, their derivatives along $m = \min(d, dim)$ directions, and second
derivatives along pairs of these, with coefficients $X^{pq}_k$ that are known
beforehand. Forests need no more.
"""

import functools as ft

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jax.lax import Precision
from jaxtyping import Array, Float

from .._xla import barrier
from ._calculus import FrameCalculus
from ._coefficients import Coefficients
from ._forests import pair_part, triple_part


def first_order(calculus: FrameCalculus, x: Coefficients, y) -> Float[Array, " dim"]:
    """The window field of depth one."""
    return x.trees[0] @ calculus.fields(y)


def second_order(calculus: FrameCalculus, x: Coefficients, y) -> Float[Array, " dim"]:
    """The window field of depth two, with one evaluation of the fields."""
    d, einsum = calculus.channels, calculus.tensors.einsum
    v, derivative = calculus.first_derivatives(y)
    w = einsum("ij,in->jn", x.trees[1].reshape(d, d), v)
    out = einsum("k,kn->n", x.trees[0], v) + derivative(w)
    out = barrier(out)
    if (1, 1) in x.forests:
        out = out + pair_part(calculus, y, _vertex_pairs(calculus, x, v, w))
    return out


def _vertex_pairs(calculus: FrameCalculus, x: Coefficients, v, w):
    """Forests of two vertices as a tensor `(dim, dim)`; `w` are the directions that
    trees of two vertices give."""
    d, einsum, own = calculus.channels, calculus.tensors.einsum, x.forests[1, 1]
    w = w if own is None else einsum("ij,ia->ja", own.reshape(d, d), v)
    return einsum("ja,jb->ab", w, v)


def third_order(calculus: FrameCalculus, x: Coefficients, y) -> Float[Array, " dim"]:
    """The window field of depth three, from one expansion of the fields to second
    order."""
    d, by_frame, tensors = calculus.channels, calculus.by_frame, calculus.tensors
    einsum, here = tensors.einsum, tensors.bring

    # Values, derivatives D_p v_k, and N_pk, along frame fields or driving fields p.
    expansion, directions = calculus.expand(y)
    v = here("kn", expansion.value)
    basis = calculus.eye(v) if by_frame else v
    if directions is None:
        directions = calculus.tangents(y, basis)
    dots, bend = expansion.along(directions)
    dots = here("pkn", dots)
    nablas = dots
    if not calculus.parallel:
        nablas = barrier(dots + here("pkn", _connect_fields(calculus, y, basis, v)))

    def once(ijk) -> Float[Array, "p j k"]:
        """Coefficients whose first index is a direction."""
        ijk = here("ijk", ijk.reshape(d, d, d))
        return einsum("ip,ijk->pjk", v, ijk) if by_frame else ijk

    def twice(pjk) -> Float[Array, "p q k"]:
        """Coefficients whose first two indices are directions."""
        return einsum("jq,pjk->pqk", v, pjk) if by_frame else pjk

    def from_basis(rows) -> Float[Array, "a n"]:
        """The first index, a direction, in frame coordinates."""
        return rows if by_frame else einsum("pa,pn->an", basis, rows)

    # First derivatives: V_k along w_k.
    nested = once(x.trees[2][: d**3])
    two_vertices = einsum("ij,in->jn", x.trees[1].reshape(d, d), v)
    w = two_vertices + einsum("pjk,pjn->kn", nested, dots)
    if x.trees[2].shape[0] > d**3:
        ladder = once(x.trees[2][d**3 :])
        w = w + einsum("pjk,pjn->kn", ladder, nablas)
    w = barrier(w)

    # Second derivatives, along tangents that turn with the frame.
    pairs = twice(nested)
    tangents = calculus.tangents(y, w)
    if not calculus.geometry.flat:
        moments = jnp.moveaxis(pairs, -1, 0)
        if not by_frame:
            moments = einsum("kpq,pa->kaq", moments, basis)
            moments = einsum("kaq,qb->kab", moments, basis)
        turning = jax.vmap(calculus.geometry.turning, in_axes=(None, 0))
        tangents = jtu.tree_map(jnp.add, tangents, turning(y, moments))
    out = einsum("k,kn->n", x.trees[0], v) + bend(pairs, tangents)

    if not calculus.parallel:
        # Gamma(w_k, v_k), and for the pairs Gamma(q, D_p v_k) + Gamma(p, N_qk).
        rows = einsum("pqk,pkn->qn", pairs, dots) + einsum("pqk,qkn->pn", pairs, nablas)
        moment = barrier(einsum("ka,kn->an", w, v) + from_basis(rows))
        out = out + calculus.geometry.christoffel_sum(y, moment)
        out = out + _connection_along(calculus, y, basis, v, pairs)

    # Forests (i, j) and (i, j |> k), then (i, j, k).
    two = []
    if (1, 1) in x.forests:
        two.append(_vertex_pairs(calculus, x, v, two_vertices))
    if (1, 2) in x.forests:
        later = twice(once(x.forests[1, 2]))
        two.append(from_basis(einsum("pqk,qkn->pn", later, nablas)))
    if two:
        out = out + pair_part(calculus, y, barrier(ft.reduce(jnp.add, two)))
    if (1, 1, 1) in x.forests:
        own = x.forests[1, 1, 1]
        three = pairs if own is None else twice(once(own))
        cubic = einsum("pqk,kc->pqc", three, v)
        if not by_frame:
            cubic = einsum("pa,pqc->aqc", basis, cubic)
            cubic = einsum("qb,aqc->abc", basis, cubic)
        out = out + triple_part(calculus, y, barrier(cubic))
    return barrier(out)


CLOSED_FORMS = {1: first_order, 2: second_order, 3: third_order}  # by depth


def _connect_fields(calculus, y, basis, v) -> Float[Array, "p channels dim"]:
    r"""$\Gamma(p, v_k)$ for all directions and channels."""
    if not calculus.by_frame:
        return calculus.connect_all(y, basis, v)
    # Of the frame fields alone it is a constant for many connections.
    table = calculus.connect_all(y, basis, calculus.eye(v))
    return calculus.tensors.einsum("kb,pbn->pkn", v, table)


def _connection_along(calculus, y, basis, v, pairs) -> Float[Array, " dim"]:
    r"""$\sum (D_p \Gamma)(q, v_k)$ with the coefficients `pairs`. If the connection has
    constant coefficients the compiler sees that this is zero."""
    spec = "pqk,qa,kn->pan"
    moments = jnp.einsum(spec, pairs, basis, v, precision=Precision.HIGHEST)

    def one(p, moment):
        turn = lambda z: calculus.geometry.christoffel_sum(z, moment)  # noqa: E731
        return jax.jvp(turn, (y,), (calculus.geometry.frame(y, p),))[1]

    return jnp.sum(jax.vmap(one)(basis, moments), axis=0)

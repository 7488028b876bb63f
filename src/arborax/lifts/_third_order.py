r"""Window fields of weight three from one second-order expansion of the fields.

With $D_p$ the derivative along a frame field with frozen coefficients $p$ and
$N_{qk} = \nabla_q V_k$,

$$\nabla_{V_i} \nabla_{V_j} V_k = \nabla_i N_{jk} + \nabla_{D_i V_j} V_k, \qquad
\nabla_{\nabla_{V_i} V_j} V_k = \nabla_{N_{ij}} V_k ,$$

where $i, j$ as directions stand for the values of $V_i, V_j$, frozen. So all trees of
three vertices need the fields, their derivatives along $m = \min(d, dim)$ directions,
and second derivatives along pairs of these, contracted for each channel with
coefficients that are known beforehand.
"""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float, PyTree

from ._flat import is_flat
from ._grading import tree_grading
from ._linear import add, combine, small_product
from ._trees import Trees, trees_of


if TYPE_CHECKING:
    from ._calculus import FrameCalculus


def third_order(
    calculus: "FrameCalculus", x: list[Float[Array, " _"]], y
) -> tuple[Float[Array, " dim"], tuple[Trees, Trees]]:
    """Coefficients of weights one to three, in the layout of `tree_grading`.

    **Returns:** the field, and the trees of one and two vertices.
    """
    d, n = calculus.driving.number, calculus.dim
    grading = tree_grading(d, 3)
    chain = grading.block(x[2], 3, 1)  # i |> (j |> k), as (i, jk)
    bush = grading.block(x[2], 3, 2).reshape(d, d * d)  # (i |> j) |> k, as (i, jk)

    expansion = calculus.expand(y)
    v = expansion.value
    by_frame = n < d
    basis = calculus.eye(v) if by_frame else v
    m = basis.shape[0]
    along_basis = (lambda c: small_product(v.T, c)) if by_frame else (lambda c: c)
    directions = calculus.tangents(y, basis)
    dots, bend = expansion.along(directions)
    dots = dots.reshape(m * d, n)

    # Coefficients by direction: (p, j, k), then (p, q, k).
    chain, bush = (along_basis(c).reshape(m, d, d) for c in (chain, bush))
    pairs = jax.vmap(along_basis)(chain)

    flat = lambda c: c.reshape(-1, d).T  # noqa: E731
    w = small_product(x[1].reshape(d, d).T, v) + small_product(flat(chain + bush), dots)
    nablas = dots
    if not calculus.parallel:
        rows = jax.vmap(calculus.connect, in_axes=(None, None, 0))
        turned = jax.vmap(rows, in_axes=(None, 0, None))(y, basis, v).reshape(m * d, n)
        nablas = dots + turned
        w = w + small_product(flat(bush), turned)

    tangents = calculus.tangents(y, w)
    if not is_flat(calculus.geometry):
        turns = combine(flat(pairs), _turns(calculus.geometry, y, basis, directions))
        tangents = add(tangents, turns)
    out = small_product(x[0][None], v)[0] + bend(pairs, tangents)
    if not calculus.parallel:
        out = out + _connect(calculus, y, basis, v, w, pairs, dots, nablas)

    def with_pairs(c):
        c = along_basis(c.reshape(d, -1)).reshape(m * d, -1)
        return small_product(nablas.T, c)

    return out, (trees_of(v), Trees(d * d, with_pairs))


def _turns(geometry, y, basis: Array, directions: PyTree[Array]) -> PyTree[Array]:
    """Derivatives of the frame fields `q` along the directions `p`, one row a pair."""

    def one(direction, q):
        return jax.jvp(lambda z: geometry.frame(z, q), (y,), (direction,))[1]

    rows = jax.vmap(jax.vmap(one, in_axes=(None, 0)), in_axes=(0, None))
    join = lambda leaf: leaf.reshape(-1, *leaf.shape[2:])  # noqa: E731
    return jtu.tree_map(join, rows(directions, basis))


def _connect(calculus, y, basis, v, w, pairs, dots, nablas) -> Float[Array, " dim"]:
    r"""What the connection adds: $\Gamma(w_k, v_k)$, and with the coefficients `pairs`
    $\Gamma(q, D_p v_k) + \Gamma(p, N_{qk}) + (D_p \Gamma)(q, v_k)$."""
    m, d = pairs.shape[0], pairs.shape[2]
    second = jnp.swapaxes(pairs, 0, 1).reshape(m, m * d)
    rows = small_product(second, dots)
    rows = rows + small_product(pairs.reshape(m, m * d), nablas)
    moment = small_product(w.T, v) + small_product(basis.T, rows)
    out = calculus.geometry.christoffel_sum(y, moment)
    moments = jax.vmap(lambda c: small_product(basis.T, small_product(c, v)))(pairs)

    def one(p, moment):
        turn = lambda z: calculus.geometry.christoffel_sum(z, moment)  # noqa: E731
        return jax.jvp(turn, (y,), (calculus.geometry.frame(y, p),))[1]

    return out + jnp.sum(jax.vmap(one)(basis, moments), axis=0)

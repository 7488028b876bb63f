r"""Window fields of weight three from one second-order expansion of the fields.

With $D_p$ the derivative along a frame field with frozen coefficients $p$ and
$N_{qk} = \nabla_q V_k$,

$$\nabla_{V_i} \nabla_{V_j} V_k = \nabla_i N_{jk} + \nabla_{D_i V_j} V_k, \qquad
\nabla_{\nabla_{V_i} V_j} V_k = \nabla_{N_{ij}} V_k ,$$

where $i, j$ as directions stand for the values of $V_i, V_j$, frozen. So all trees of
three vertices need the first and second derivatives of the fields along $m = \min(d,
dim)$ directions, $1 + m + m^2$ evaluations in all: coefficients are contracted with the
values of the fields, never the other way round. Where fields have a hidden layer in
common (`features`), second derivatives are taken of that alone, and combined before
they go through the last layer.
"""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float

from ._grading import tree_grading
from ._linear import combine, small_product


if TYPE_CHECKING:
    from ._calculus import FrameCalculus


def third_order(
    calculus: "FrameCalculus", x: list[Float[Array, " _"]], y
) -> tuple[Float[Array, " dim"], tuple[Array, Array]]:
    """Coefficients of weights one to three, in the layout of `tree_grading`.

    **Returns:** the field, and the values of all trees of one and two vertices,
    `(d, dim)` and `(d * d, dim)`.
    """
    d, n = calculus.driving.number, calculus.dim
    grading = tree_grading(d, 3)
    chain = grading.block(x[2], 3, 1)  # i |> (j |> k), as (i, jk)
    bush = grading.block(x[2], 3, 2).reshape(d, d * d)  # (i |> j) |> k, as (i, jk)

    features, head = calculus.features, calculus.head
    shared = features(y)
    v = head(shared)
    by_frame = n < d
    basis = calculus.eye(v) if by_frame else v
    m = basis.shape[0]
    along_basis = (lambda c: small_product(v.T, c)) if by_frame else (lambda c: c)

    def derive_features(z):
        return calculus.along(jax.linearize(features, z)[1], z, basis)

    first, derivative = jax.linearize(derive_features, y)
    second = calculus.along(derivative, y, basis)  # (p, q, features)

    def derive_head(s):
        return jax.vmap(jax.linearize(head, s)[1])(first)

    dots, bend = jax.linearize(derive_head, shared)  # (q, channels, dim)
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

    # Tangents of the features, one for each channel, through the last layer together.
    if by_frame:
        tangents = combine(w, first)
    else:
        tangents = calculus.along(jax.linearize(features, y)[1], y, w)
    join = lambda leaf: leaf.reshape(m * m, *leaf.shape[2:])  # noqa: E731
    bent = combine(flat(pairs), jtu.tree_map(join, second))
    tangents = jtu.tree_map(jnp.add, tangents, bent)
    out = small_product(x[0][None], v)[0] + calculus.head_along(shared, tangents)
    if calculus.driving.has_features:
        curved = jax.vmap(bend)(first).reshape(m * m * d, n)
        out = out + small_product(pairs.reshape(1, -1), curved)[0]
    if not calculus.parallel:
        out = out + _connect(calculus, y, basis, v, w, pairs, dots, nablas)

    trees = nablas.reshape(m, d * n)
    trees = small_product(v, trees) if by_frame else trees
    return out, (v, trees.reshape(d * d, n))


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

r"""Window fields of any depth, by nested derivatives of contracted fields.

For coefficients $x$ of trees, let $x_a$ be those of the tails $m$ of trees
$a \triangleright m$. The tree part of the window field is

$$G_x = \sum_i x_i V_i + \sum_a \nabla_{F(a)} G_{x_a} .$$

Coefficients are contracted before derivatives are taken. There are three ways to take
the sum over $a$, chosen by a static count of derivatives:

* *heads*: one derivative per head $a$;
* *frame*: since $\nabla$ is linear in its direction,
  $\sum_a \nabla_{F(a)} G_{x_a} = \sum_e \nabla_{E_e} G_{x'_e}$ with
  $x'_e = \sum_a F(a)^e x_a$ frozen, one derivative per frame field;
* *channels*: where only a single $V_i$ follows, $\sum_i \nabla_{W_i} V_i$ with
  $W_i = \sum_a x_{ai} F(a)$, one derivative per channel, of that channel alone.
"""

import functools as ft
from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float

from ._calculus import FrameCalculus
from ._closed_forms import CLOSED_FORMS
from ._coefficients import Coefficients, Layout
from ._forests import forest_part


def any_order(
    calculus: FrameCalculus, layout: Layout, x: Coefficients, y
) -> Float[Array, " dim"]:
    """The window field with these coefficients, in frame coordinates. Up to depth
    three the closed forms are cheaper."""
    if not x.forests:
        return _tree_part(calculus, layout, x.trees, y)
    values = _tree_values(calculus, layout, y, layout.depth - 1)
    out = _tree_part(calculus, layout, x.trees, y, values)
    out = out + forest_part(calculus, y, x.forests, values)
    geometry = calculus.geometry
    if geometry.dim == geometry.manifold_dim:
        return out
    # In an over-complete frame a vector has many coordinates.
    return geometry.coordinates(y, geometry.frame(y, out))


@ft.cache
def _derivatives(
    layout: Layout, dim: int, weight: int, contracted: bool
) -> tuple[int, int]:
    """Derivatives taken by heads and by frame: for the contracted trees up to this
    weight, or for their values one by one."""
    if weight == 1:
        return 0, 0
    least = lambda n: 1 + min(_derivatives(layout, dim, n, contracted))  # noqa: E731
    by_heads = sum(
        layout.dim
        if contracted and k == weight - 1
        else layout.sizes[k - 1] * least(weight - k)
        for k in layout.head_weights(weight)
    )
    return by_heads, dim * least(weight - 1)


def _tree_part(
    calculus: FrameCalculus, layout: Layout, x, y, values=None
) -> Float[Array, " dim"]:
    """The recursion. `x` holds coefficients of trees by weight; `values` are those of
    `_tree_values` if they are known already."""
    top = len(x)
    if top in CLOSED_FORMS:
        return CLOSED_FORMS[top](calculus, Coefficients(tuple(x)), y)
    heads = layout.head_weights(top)
    if values is None:
        values = _tree_values(calculus, layout, y, heads[-1])

    def sweep(tails, directions):
        def one(tail, u):
            g = lambda z: _tree_part(calculus, layout, tail, z)  # noqa: E731
            return calculus.nabla(g, y, u)

        return jnp.sum(jax.vmap(one)(tails, directions), axis=0)

    out = x[0] @ calculus.fields(y)
    by_heads, by_frame = _derivatives(layout, calculus.dim, top, True)
    if by_frame < by_heads:
        tails = [
            sum(
                values[k - 1].T @ layout.block(x[k + r - 1], k + r, k)
                for k in layout.head_weights(top - r + 1)
            )
            for r in range(1, top)
        ]
        return out + sweep(tails, calculus.eye(x[0]))
    for k in heads:
        blocks = [layout.block(x[k + r - 1], k + r, k) for r in range(1, top - k + 1)]
        if k == top - 1:
            _, derivative = calculus.first_derivatives(y)
            out = out + derivative(blocks[0].T @ values[k - 1])
        else:
            out = out + sweep(blocks, values[k - 1])
    return out


def _tree_values(
    calculus: FrameCalculus, layout: Layout, y, weight: int
) -> tuple[Float[Array, "trees dim"], ...]:
    """Fields of all trees of weights `1..weight`, in the order of the layout."""
    if weight == 1:
        return (calculus.fields(y),)
    heads = layout.head_weights(weight)
    by_heads, by_frame = _derivatives(layout, calculus.dim, weight, False)
    if by_frame <= by_heads:
        inner = lambda z: _tree_values(calculus, layout, z, weight - 1)  # noqa: E731
        eye = calculus.eye(jtu.tree_leaves(y)[0])
        lower, dots = _derive(calculus, inner, y, eye)
        blocks = [
            jnp.einsum("ae,emc->amc", lower[k - 1], dots[weight - k - 1]) for k in heads
        ]
    else:
        lower = _tree_values(calculus, layout, y, weight - 1)
        last = lambda z, n: _tree_values(calculus, layout, z, n)[-1:]  # noqa: E731
        blocks = [
            _derive(calculus, ft.partial(last, n=weight - k), y, lower[k - 1])[1][0]
            for k in heads
        ]
    top = jnp.concatenate([block.reshape(-1, calculus.dim) for block in blocks])
    return (*lower, top)


def _derive(calculus: FrameCalculus, g: Callable, y, directions: Array):
    """Families of fields at `y`, and their covariant derivatives along each
    direction."""
    connect = jax.vmap(calculus.connect, in_axes=(None, None, 0))

    def one(u):
        values, dots = jax.jvp(g, (y,), (calculus.geometry.frame(y, u),))
        return values, [dot + connect(y, u, v) for v, dot in zip(values, dots)]

    return jax.vmap(one, out_axes=(None, 0))(directions)

r"""Forests of two or more trees: what torsion and curvature contribute.

A forest acts on functions by $F(t_1 .. t_m) \phi = \nabla^m \phi(F(t_1), .., F(t_m))$,
which is tensorial: no further derivative of the driving fields is needed, only the
geometry is differentiated. A primitive element is a Lie polynomial in its trees, so
second-order parts cancel; pairs give $-T(F(t_1), F(t_2))/2$ with the torsion
$T(u, v) = \Gamma(u, v) - \Gamma(v, u) - [u, v]$.
"""

from typing import Any

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float

from ..geometry._settle import settle
from ._calculus import FrameCalculus
from ._linear import small_product, sum_rows


def forest_tensors(
    coefficients: dict[tuple[int, ...], Float[Array, " _"]],
    values: tuple[Float[Array, "_ dim"], ...],
) -> dict[int, Array]:
    """Contract forest coefficients with the fields of their trees.

    **Returns:**

    `{m: tensor}` with `m` axes of length `dim`, one for each number of trees.
    """
    tensors: dict[int, Array] = {}
    for composition, x in coefficients.items():
        order = len(composition)
        x = x.reshape(tuple(values[k - 1].shape[0] for k in composition))
        for k in composition:
            # Contract the leading axis; the new frame axis goes last.
            rest = x.shape[1:]
            x = small_product(x.reshape(x.shape[0], -1).T, values[k - 1])
            x = settle(x).reshape(*rest, -1)
        tensors[order] = tensors[order] + x if order in tensors else x
    return tensors


def torsion_part(calculus: FrameCalculus, y, tensor: Float[Array, "dim dim"]) -> Array:
    """Pairs of trees: the torsion contracted with an antisymmetric tensor."""
    geometry = calculus.geometry

    def one(u, v):
        torsion = calculus.connect(y, u, v) - calculus.connect(y, v, u)
        return (geometry.bracket(y, u, v) - torsion) / 2

    return sum_rows(jax.vmap(one)(calculus.eye(tensor), tensor))


def _lower(christoffel: Array, tensors: dict[int, Array]) -> dict[int, Array]:
    """Let the first slot act on the others through the connection."""
    out = {}
    for order, tensor in tensors.items():
        if order == 1:
            continue
        total = jnp.zeros(tensor.shape[1:], tensor.dtype)
        for slot in range(1, order):
            term = jnp.tensordot(christoffel, tensor, axes=((0, 1), (0, slot)))
            total = total + jnp.moveaxis(term, 0, slot - 1)
        out[order - 1] = total
    return out


def _total_derivative(calculus: FrameCalculus, y, tensors: dict[int, Any]):
    r"""$\sum_m X_m \cdot \nabla^m \mathrm{id}$ in the ambient space, `X` frozen.

    From $\nabla^m \phi(u_1, ..) = u_1(\nabla^{m-1} \phi(u_2, ..)) - \sum_r
    \nabla^{m-1} \phi(.., \Gamma(u_1, u_r), ..)$, corrections being lower-order tensors.
    """
    leaf = next(iter(tensors.values()))
    eye = calculus.eye(leaf)
    if not calculus.parallel:
        rows = jax.vmap(calculus.connect, in_axes=(None, None, 0))
        christoffel = jax.vmap(rows, in_axes=(None, 0, None))(y, eye, eye)
        correction, sign = tensors, -1
        while correction := _lower(christoffel, correction):
            tensors = {
                m: tensors.get(m, 0) + sign * correction.get(m, 0)
                for m in tensors.keys() | correction.keys()
            }
            sign = -sign
    geometry = calculus.geometry
    first = tensors.get(1, jnp.zeros((calculus.dim,), leaf.dtype))
    out = geometry.frame(y, first)
    rest = {m - 1: tensor for m, tensor in tensors.items() if m > 1}
    if not rest:
        return out

    def one(tail, u):
        g = lambda z: _total_derivative(calculus, z, tail)  # noqa: E731
        return jax.jvp(g, (y,), (geometry.frame(y, u),))[1]

    return jtu.tree_map(jnp.add, out, sum_rows(jax.vmap(one)(rest, eye)))


def forest_part(
    calculus: FrameCalculus,
    y,
    coefficients: dict[tuple[int, ...], Float[Array, " _"]],
    values: tuple[Float[Array, "_ dim"], ...],
) -> Float[Array, " dim"]:
    """The contribution of all forests of two or more trees, in frame coordinates."""
    tensors = forest_tensors(coefficients, values)
    out = torsion_part(calculus, y, tensors.pop(2))
    if not tensors:
        return out
    ambient = _total_derivative(calculus, y, tensors)
    return out + calculus.geometry.coordinates(y, ambient)

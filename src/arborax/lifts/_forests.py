r"""Forests of two or more trees: what torsion and curvature contribute.

A forest acts on functions by $F(t_1 .. t_m) \phi = \nabla^m \phi(F(t_1), .., F(t_m))$,
which is tensorial: no further derivative of the driving fields is needed, only the
geometry is differentiated. A primitive element is a Lie polynomial in its trees, so
only Lie brackets of these matter. With the torsion $T(u, v) = \Gamma(u, v) - \Gamma(v,
u) - [u, v]$ and the curvature $R$, by the Ricci identity,

$$[u, v] \mapsto -T(u, v), \qquad
[[u, v], w] \mapsto -R(u, v) w + (\nabla_w T)(u, v) + T(T(u, v), w),$$

and a Lie polynomial of degree $m$ is $1/m$ times the sum of its left-normed brackets.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jax.lax import Precision
from jaxtyping import Array, Float, PyTree

from .._xla import barrier, small_einsum, small_product
from ._calculus import FrameCalculus


_TABLES = 8  # dimension up to which the curvature is computed as a table


def forest_part(
    calculus: FrameCalculus,
    y,
    coefficients: dict[tuple[int, ...], Float[Array, " _"]],
    values: tuple[Float[Array, "_ dim"], ...],
) -> Float[Array, " dim"]:
    """The contribution of all forests of two or more trees, in frame coordinates, from
    coefficients as in `Coefficients` and the fields of all trees of each weight at
    `y`."""
    tensors: dict[int, Array] = {}  # by number of trees
    for weights, x in coefficients.items():
        x = x.reshape(tuple(values[k - 1].shape[0] for k in weights))
        for k in weights:
            # Contract the leading axis; the new frame axis goes last.
            rest = x.shape[1:]
            x = small_product(x.reshape(x.shape[0], -1).T, values[k - 1])
            x = barrier(x).reshape(*rest, -1)
        tensors[len(weights)] = tensors.get(len(weights), 0) + x
    out = jnp.zeros((calculus.dim,), values[0].dtype)
    if 2 in tensors:
        out = out + pair_part(calculus, y, tensors.pop(2))
    if 3 in tensors:
        out = out + triple_part(calculus, y, tensors.pop(3))
    if not tensors:
        return out
    ambient = _total_derivative(calculus, y, tensors)
    return out + calculus.geometry.coordinates(y, ambient)


def pair_part(
    calculus: FrameCalculus, y, tensor: Float[Array, "dim dim"]
) -> Float[Array, " dim"]:
    """Pairs of trees: the torsion contracted with the antisymmetric part of a
    tensor."""

    def one(u, v):
        torsion = calculus.connect(y, u, v) - calculus.connect(y, v, u)
        return (calculus.geometry.bracket(y, u, v) - torsion) / 2

    return jnp.sum(jax.vmap(one)(calculus.eye(tensor), tensor), axis=0)


def triple_part(
    calculus: FrameCalculus, y, tensor: Float[Array, "dim dim dim"]
) -> Float[Array, " dim"]:
    """Triples of trees: a Lie polynomial of degree three in the frame fields."""
    if calculus.dim > _TABLES:
        ambient = _total_derivative(calculus, y, {3: tensor})
        return calculus.geometry.coordinates(y, ambient)
    table = _double_brackets(calculus, y, tensor)
    return barrier(small_einsum("abc,abcn->n", tensor, table, place="last")) / 3


def _double_brackets(calculus: FrameCalculus, y, like: Array) -> Array:
    """The image of `[[e_a, e_b], e_c]` for all frame fields, `(a, b, c, dim)`."""
    eye = calculus.eye(like)

    def brackets(z) -> Array:
        rows = jax.vmap(calculus.geometry.bracket, in_axes=(None, None, 0))
        return jax.vmap(rows, in_axes=(None, 0, None))(z, eye, eye)

    def derivatives(f: Callable) -> tuple[Array, Array]:
        value, push = jax.linearize(f, y)
        return value, jax.vmap(push)(calculus.tangents(y, eye))

    def apply(spec: str, a: Array, b: Array) -> Array:
        return jnp.einsum(spec, a, b, precision=Precision.HIGHEST)

    b, db = derivatives(brackets)
    if calculus.parallel:
        return apply("abe,ecf->abcf", b, b) - jnp.moveaxis(db, 0, 2)
    g, dg = derivatives(lambda z: calculus.connect_all(z, eye, eye))
    t = g - jnp.swapaxes(g, 0, 1) - b
    dt = dg - jnp.swapaxes(dg, 1, 2) - db
    nested = dg + apply("bce,aef->abcf", g, g)  # nabla_a nabla_b e_c
    curvature = nested - jnp.swapaxes(nested, 0, 1) - apply("abe,ecf->abcf", b, g)
    turned = jnp.moveaxis(dt, 0, 2) + apply("abe,cef->abcf", t, g)
    turned = turned - apply("cae,ebf->abcf", g, t) - apply("cbe,aef->abcf", g, t)
    return turned - curvature + apply("abe,ecf->abcf", t, t)


def _total_derivative(
    calculus: FrameCalculus, y, tensors: dict[int, Array]
) -> PyTree[Array]:
    r"""$\sum_m X_m \cdot \nabla^m \mathrm{id}$ in the ambient space, `X` frozen.

    From $\nabla^m \phi(u_1, ..) = u_1(\nabla^{m-1} \phi(u_2, ..)) - \sum_r
    \nabla^{m-1} \phi(.., \Gamma(u_1, u_r), ..)$, corrections being lower-order tensors.
    """
    leaf = next(iter(tensors.values()))
    eye = calculus.eye(leaf)
    if not calculus.parallel:
        christoffel = calculus.connect_all(y, eye, eye)
        correction, sign = tensors, -1
        while correction := _correction(christoffel, correction):
            for m, x in correction.items():
                tensors = tensors | {m: tensors.get(m, 0) + sign * x}
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

    rows = jax.vmap(one)(rest, eye)
    return jtu.tree_map(lambda x, more: x + jnp.sum(more, axis=0), out, rows)


def _correction(christoffel: Array, tensors: dict[int, Array]) -> dict[int, Array]:
    """Let the first slot act on the others through the connection."""
    out = {}
    for m, tensor in tensors.items():
        if m == 1:
            continue
        total = jnp.zeros(tensor.shape[1:], tensor.dtype)
        for slot in range(1, m):
            term = jnp.tensordot(christoffel, tensor, axes=((0, 1), (0, slot)))
            total = total + jnp.moveaxis(term, 0, slot - 1)
        out[m - 1] = total
    return out

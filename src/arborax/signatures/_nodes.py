"""Fixed linear combinations along the short axis of quadrature nodes.

A JAX primitive, so that the transpose is again a combination, written out; see `_outer`
for why. Slices would transpose to padded arrays, one for each.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float


Matrix = tuple[tuple[float, ...], ...]


def _evaluate(x: Array, *, matrix: Matrix) -> Array:
    columns = [x[:, :, k] for k in range(x.shape[2])]
    rows = []
    for row in matrix:
        terms = [float(m) * column for m, column in zip(row, columns) if m]
        total = terms[0] if terms else jnp.zeros_like(columns[0])
        for term in terms[1:]:
            total = total + term
        rows.append(total)
    return jnp.stack(rows, axis=2)


_mix_p = Primitive("arborax_mix_nodes")
_mix_p.def_impl(jax.jit(_evaluate, static_argnames="matrix"))


@_mix_p.def_abstract_eval
def _abstract(x, *, matrix: Matrix):
    return x.update(shape=(*x.shape[:2], len(matrix), *x.shape[3:]))


def _transpose(cotangent, x, *, matrix: Matrix):
    return [_mix_p.bind(cotangent, matrix=tuple(zip(*matrix)))]


def _batch(args, dims, *, matrix: Matrix):
    (x,), (dim,) = args, dims
    x = jnp.moveaxis(x, dim, 0)
    flat = x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])
    out = _mix_p.bind(flat, matrix=matrix)
    return out.reshape(*x.shape[:2], *out.shape[1:]), 0


ad.deflinear2(_mix_p, _transpose)
batching.primitive_batchers[_mix_p] = _batch
mlir.register_lowering(_mix_p, mlir.lower_fun(_evaluate, multiple_results=False))


def mix_nodes(
    matrix: np.ndarray, x: Float[Array, "batch words nodes steps"]
) -> Float[Array, "batch words rows steps"]:
    """`out[:, :, r] = sum_k matrix[r, k] x[:, :, k]`."""
    return _mix_p.bind(x, matrix=tuple(map(tuple, matrix.tolist())))

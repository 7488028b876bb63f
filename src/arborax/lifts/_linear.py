r"""Linear fields: the window field of a log-signature is one matrix.

For $V_i(y) = A_i y$ the field of a tree is zero if a vertex has two branches, and a
product of matrices, from the root to the leaf, if none has: $\nabla_{V_j} V_i(y) = A_i
A_j y$. So every primitive element is one matrix, and a window field their sum with the
log-signature as coefficients. The matrices do not depend on the window. With offsets,
$V_i(y) = A_i y + b_i$, the same holds for the matrices $(A_i, b_i; 0, 0)$.
"""

import functools as ft

import jax.numpy as jnp
import numpy as np
from jax.lax import Precision
from jaxtyping import Array, Float

from .._xla import apply_rows
from ..algebra import AbstractHopfAlgebra, colours, SparseMap
from ._block_matrices import Blocks


def _is_ladder(tree) -> bool:
    children = tree[1]
    return not children or (len(children) == 1 and _is_ladder(children[0]))


@ft.cache
def _ladder_maps(alg: AbstractHopfAlgebra) -> tuple[SparseMap, ...]:
    """For each weight `n`, the map from coefficients of ladders, `(dim^n,)` with the
    root first, to those of primitive elements: the transpose of the map between their
    coordinates."""
    forests, embed = alg.forests
    maps = []
    for n in range(1, alg.depth + 1):
        rows, places = [], []
        for place, forest in enumerate(forests):
            if len(forest) == 1 and _is_ladder(forest[0]):
                word = colours(forest)
                if len(word) == n:
                    rows.append(np.ravel_multi_index(word, (alg.dim,) * n))
                    places.append(place)
        shape = (alg.dim**n, len(forests))
        chosen = SparseMap(rows, places, np.ones(len(rows)), shape)
        maps.append((chosen @ embed).transpose())
    return tuple(maps)


def check_ordered(alg: AbstractHopfAlgebra) -> None:
    """Refuse algebras of scalar equations."""
    if alg.scalar:
        raise ValueError(
            f"{type(alg).__name__} does not know in which order matrices are "
            "multiplied. Use `GrossmanLarson`, or `Ito` for semimartingales."
        )


def lift_matrices(
    matrices: Float[Array, "channels size columns blocks"],
    alg: AbstractHopfAlgebra,
    blocks: Blocks,
    damped: bool = False,
) -> Float[Array, "primitives size columns blocks"]:
    r"""The matrix of each primitive element, from those of the channels.

    The window matrix is their sum with the log-signature $\lambda$ as coefficients, at
    depth two with the Lévy area $a$ and the bracket $B$ of the window

    $$\Omega = \sum_i A_i x^i + \sum_{i<j} a_{ij} (A_j A_i - A_i A_j)
        - \frac12 \sum_{ij} B^{ij} A_i A_j .$$

    If `damped`, an Itô equation has the further term $-\kappa \sum_{ij} A_i^\top A_j
    Y\, d[X]^{ij}$, and $\Omega$ the term $-\kappa \sum_{ij} B^{ij} A_i^\top A_j$, with
    numbers $\kappa$ that go from 1 for the first block to 1/2 for the last one; weights
    above two are as they were.

    Cost: `dim^depth` products of matrices, for any number of windows.
    """
    check_ordered(alg)
    shape = (blocks.size, blocks.columns, blocks.count)
    level, terms = matrices, []
    for n, table in enumerate(_ladder_maps(alg)):
        if n:
            level = blocks.product(matrices[:, None], level[None])
            level = level.reshape(-1, *shape)
        fields = level
        if n == 1 and damped:
            # The sum over both orders has no part in areas, and twice -B/2 in brackets.
            turned = blocks.adjoint_product(matrices[:, None], matrices[None])
            turned = turned + jnp.swapaxes(turned, 0, 1)
            strengths = jnp.linspace(1, 0.5, blocks.count, dtype=turned.dtype)
            turned = turned * strengths.reshape((1,) * (turned.ndim - 1) + (-1,))
            fields = level + turned.reshape(-1, *shape)
        terms.append(apply_rows(table, fields.reshape(fields.shape[0], -1)))
    return ft.reduce(jnp.add, terms).reshape(-1, *shape)


def window_matrices(
    lams: Float[Array, "*batch primitives"],
    lifted: Float[Array, "primitives size columns blocks"],
) -> Float[Array, "*batch size columns blocks"]:
    """The window matrices of log-signatures, from the result of `lift_matrices`: one
    product."""
    flat = lifted.reshape(lifted.shape[0], -1)
    out = jnp.matmul(lams, flat, precision=Precision.HIGHEST)
    return out.reshape(*lams.shape[:-1], *lifted.shape[1:])

"""Controls from increments and Lévy areas, window by window."""

import functools as ft
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._inputs import as_floating
from ..algebra import AbstractHopfAlgebra, SparseMap
from ..paths import SampledPath
from ._increments import read_path
from ._rough_path import RoughPath


@ft.cache
def _element_table(alg: AbstractHopfAlgebra, brackets: bool, means: bool) -> SparseMap:
    """Increments, letters of brackets, areas and conditional means, in this order, to
    primitive coordinates."""
    d = alg.dim

    def commutator(a, b):
        return alg.star(a, b) - alg.star(b, a)

    letters = [(i,) for i in range(d)]
    if brackets:
        letters += [(i, j) for i in range(d) for j in range(i, d)]
    steps = [alg.from_primitive(alg.elementary_step(letter)) for letter in letters]
    rows = list(steps)
    rows += [commutator(steps[i], steps[j]) for i, j in zip(*np.triu_indices(d, 1))]
    if means:
        rows += [
            commutator(steps[i], commutator(steps[i], step)) / 12
            for i in range(d)
            for step in steps
        ]
    dense = np.stack([alg.to_primitive(row) for row in rows], axis=1)
    return SparseMap.from_dense(dense)


def _log_signatures(alg, increments, areas, brackets, variances) -> Array:
    features = [increments]
    if brackets is not None:
        i, j = np.triu_indices(alg.dim)
        factor = np.where(i == j, -0.5, -1.0).astype(increments.dtype)
        features.append(brackets[:, i, j] * factor[None])
    letters = jnp.concatenate(features, axis=-1)
    parts = [letters, areas]
    if variances is not None:
        means = variances[:, :, None] * letters[:, None, :]
        parts.append(means.reshape(means.shape[0], -1))
    table = _element_table(alg, brackets is not None, variances is not None)
    return table(jnp.concatenate(parts, axis=-1))


def rough_path_from_areas(
    ts: ArrayLike,
    increments: ArrayLike,
    areas: ArrayLike,
    alg: AbstractHopfAlgebra,
    brackets: Any = None,
    *,
    variances: ArrayLike | None = None,
    check: bool = True,
) -> RoughPath:
    r"""A control from the increment and the Lévy area of each window.

    The log-signature of a window is

    $$ \sum_i x_i e_i + \sum_{i<j} A_{ij} [e_i, e_j] - \tfrac12 \sum_{ij} B_{ij} S_{ij}
       \; \Big( + \tfrac1{12} \sum_i v_i\, [e_i, [e_i, \ell]] \Big) $$

    with the symmetric trees $S_{ij}$ of the brackets $B$; higher coordinates are zero.
    Inside a window the path is $\exp(\theta \lambda)$, so pieces of a window multiply
    up to the whole (Chen).

    The term in parentheses, $\ell$ being the increment and the bracket, is what
    Brownian motion with variances $v$ adds on average to higher coordinates, given
    $x$. With it the expected signature is exact up to weight five, time having weight
    two: solutions have weak order 2 (with an algebra deep enough, depth 3 for
    `Shuffle`, and a scheme of order 4).

    !!! example

        ```python
        steps = abx.brownian_areas(ts, 2, key=key)
        brackets = abx.brownian_brackets(ts, 2)
        control = abx.rough_path_from_areas(
            ts, steps.increments, steps.areas, abx.Ito(2, 2), brackets
        )
        ```

    **Arguments:**

    - `ts`: ends of the windows, `(windows + 1,)`, strictly increasing.
    - `increments`: `(windows, dim)`.
    - `areas`: $A_{ij}$ for `i < j` in the order of `np.triu_indices(dim, 1)`, shape
        `(windows, dim (dim - 1) / 2)`, as [`arborax.brownian_areas`][] draws them.
    - `alg`: the algebra, of depth 2 or more.
    - `brackets`: `None` (Stratonovich) or `(windows, dim, dim)`.
    - `variances`: `None`, or `(windows, dim)`, zero for time.
    - `check`: whether values are checked.

    **Returns:**

    A [`arborax.RoughPath`][]. Batches are made with `jax.vmap`.

    ??? cite "Reference"

        F. Castell, J. Gaines, The ordinary differential equation approach to
        asymptotically efficient schemes for solution of SDEs, Annales de l'I.H.P. 32
        (1996). T. Lyons, N. Victoir, Cubature on Wiener space, Proceedings of the Royal
        Society A 460 (2004).
    """
    x = as_floating("increments", increments)
    if x.ndim != 2 or x.shape[1] != alg.dim:
        raise ValueError(
            f"`increments` must have shape (windows, {alg.dim}) for {alg}, got "
            f"{x.shape}. For a batch use `jax.vmap`."
        )
    if alg.depth < 2:
        raise ValueError(f"{alg} has no areas; build it with depth 2 or more.")
    windows, dim = x.shape
    a = _shaped("areas", areas, (windows, dim * (dim - 1) // 2), x)
    start = jnp.zeros((1, dim), x.dtype)
    values = jnp.concatenate([start, jnp.cumsum(x, axis=0)])
    path = SampledPath(ts, values, check=check)
    read = read_path(path if check else values, alg, brackets)
    if isinstance(read.brackets, str):
        raise ValueError(
            "`brackets` must be None or an array (windows, dim, dim): areas do not say "
            "how the path moves inside a window."
        )
    v = variances
    if v is not None:
        v = _shaped("variances", v, x.shape, x)
    lams = _log_signatures(alg, x, a, read.brackets, v)
    if check:
        lams = read.guard(lams)
    knots = path.ts
    return RoughPath(
        alg=alg,
        calculus="stratonovich" if read.brackets is None else "ito",
        knots=knots,
        log_signatures=lams,
        times=jnp.stack([knots[:-1], knots[1:]], axis=-1),
        values=jnp.stack([values[:-1], values[1:]], axis=1),
        brackets=None if read.brackets is None else read.brackets[:, None],
        left_point=False,
        num_steps=windows,
        straight=True,
    )


def _shaped(
    name: str, value: Any, shape: tuple[int, ...], like: Array
) -> Float[Array, "..."]:
    array = as_floating(name, value)
    if array.shape != shape:
        raise ValueError(f"`{name}` must have shape {shape}, got {array.shape}.")
    return array.astype(like.dtype)

r"""Coefficients of a log-signature of depth three, by what they multiply.

A coefficient $x_{ijk}$ can stand for the trees $i \triangleright (j \triangleright k)$
(*chain*) and $(i \triangleright j) \triangleright k$ (*bush*), for the forests $(i, j,
k)$ (*three*), $(i, j \triangleright k)$ (*later*), $(j, i \triangleright k)$
(*between*) and $(i \triangleright j, k)$ (*earlier*). In word algebras it stands for
several at once,

$$V_i V_j V_k = (i, j, k) + (i, j \triangleright k) + (j, i \triangleright k)
    + (i \triangleright j, k) + i \triangleright (j \triangleright k),$$

so tensors are stored once and named by their roles.
"""

import dataclasses
import functools as ft

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from ..algebra import AbstractHopfAlgebra, GrossmanLarson, Ito, Shuffle, SparseMap
from ._grading import tree_grading
from ._magma import magma_maps


Roles = tuple[tuple[str, tuple[int, ...]], ...]  # which tensors are added up

TREES: Roles = (("chain", (0,)), ("bush", (1,)))


class ThirdCoefficients(eqx.Module):
    """Of trees of one and two vertices, of pairs of vertices, and of triples."""

    singles: Float[Array, " d"]
    pairs: Float[Array, "d d"]
    two: Float[Array, "d d"] | None
    triples: Float[Array, "d tensors d d"]
    roles: Roles = eqx.field(static=True)

    def slots(self, name: str) -> tuple[int, ...]:
        """The tensors that have this role."""
        return dict(self.roles).get(name, ())


@dataclasses.dataclass(frozen=True)
class ThirdMaps:
    """Linear maps from primitive coordinates to the parts of `ThirdCoefficients`."""

    singles: SparseMap
    pairs: SparseMap
    two: SparseMap | None
    triples: SparseMap
    roles: Roles


def _stack(tensors: list[SparseMap], d: int) -> SparseMap:
    """Maps to tensors `(i, j, k)` as one map to `(i, tensor, j, k)`."""
    rows = []
    for slot, table in enumerate(tensors):
        i, rest = np.divmod(table.row, d * d)
        rows.append((i * len(tensors) + slot) * d * d + rest)
    column = np.concatenate([table.column for table in tensors])
    value = np.concatenate([table.value for table in tensors])
    shape = (len(tensors) * d**3, tensors[0].shape[1])
    return SparseMap(np.concatenate(rows), column, value, shape)


def _part(table: SparseMap, start: int, stop: int) -> SparseMap:
    """Some rows of a map."""
    return table.take_rows(np.arange(start, stop))


def _word_tensors(alg: Shuffle | Ito) -> tuple[SparseMap, SparseMap, SparseMap]:
    """Words of weight three: of single letters `ijk`, `i (jk)`, and `(ij) k`, pairs of
    the Itô alphabet being symmetrised."""
    d = alg.dim
    entries: list[list] = [[], [], []]
    position = lambda *ijk: int(np.ravel_multi_index(ijk, (d,) * 3))  # noqa: E731
    for column, word in enumerate(alg.words):
        letters = [np.atleast_1d(alg.letters[k]).tolist() for k in word]
        if sum(map(len, letters)) != 3:
            continue
        if len(letters) == 3:
            (i,), (j,), (k,) = letters
            entries[0].append((position(i, j, k), column, 1.0))
        elif len(letters[0]) == 1:
            (i,), (j, k) = letters
            entries[1].append((position(i, j, k), column, 0.5))
            entries[1].append((position(i, k, j), column, 0.5))
        else:
            (i, j), (k,) = letters
            entries[2].append((position(i, j, k), column, 0.5))
            entries[2].append((position(j, i, k), column, 0.5))

    def table(part) -> SparseMap:
        row, column, value = zip(*part) if part else ((), (), ())
        shape = (d**3, len(alg.words))
        return SparseMap(row, column, value, shape) @ alg.primitive_maps[1]

    single, later, earlier = map(table, entries)
    return single, later, earlier


def _sum(a: SparseMap, b: SparseMap) -> SparseMap:
    join = lambda name: np.concatenate([getattr(a, name), getattr(b, name)])  # noqa: E731
    return SparseMap(join("row"), join("column"), join("value"), a.shape)


@ft.cache
def third_maps(alg: AbstractHopfAlgebra, flat: bool, torsion_free: bool) -> ThirdMaps:
    """The maps of an algebra of depth three.

    **Arguments:**

    - `alg`: the algebra.
    - `flat`: leave out forests of two or more trees, whose fields vanish.
    - `torsion_free`: leave out forests of two trees.
    """
    d = alg.dim
    forests, two_trees = not flat, not flat and not torsion_free
    if isinstance(alg, Shuffle | Ito):
        single, later, earlier = _word_tensors(alg)
        low = magma_maps(alg, flat)
        if isinstance(alg, Shuffle):
            tensors, roles = [single], {"chain": (0,)}
            bush, c = (), (0,)
        else:
            tensors = [_sum(single, later), earlier]
            roles = dict(TREES)
            bush, c = (1,), (2,)
            if forests:
                tensors.append(single)
        if forests:
            roles["three"] = c
        if two_trees:
            roles |= {"later": (0,), "between": c, "earlier": (*c, *bush)}
    else:
        low = magma_maps(alg, flat)
        size, cube = tree_grading(d, 3).sizes[2], d**3
        tensors = [_part(low[3,], 0, cube), _part(low[3,], cube, size)]
        roles = dict(TREES)
        if forests and not isinstance(alg, GrossmanLarson):
            roles["three"] = (2,)
            tensors.append(low[1, 1, 1])
            if two_trees:
                roles |= {"later": (3,), "earlier": (4,)}
                tensors += [low[1, 2], low[2, 1]]
    two = low[1, 1] if two_trees else None
    return ThirdMaps(low[1,], low[2,], two, _stack(tensors, d), tuple(roles.items()))

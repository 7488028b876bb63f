"""Words over free generators of the Grossman-Larson Lie algebra."""

import dataclasses
import functools as ft
import itertools as it

from ._base import AbstractHopfAlgebra
from ._grossman_larson import GrossmanLarson
from ._word_algebra import AbstractWordAlgebra


@dataclasses.dataclass(frozen=True)
class BranchedWords(AbstractWordAlgebra):
    r"""`Ito` with letters of weight 3: branched rough paths of regularity above 1/4.

    The Lie algebra of trees is free. Generators of weight 1 and 2 are the letters of
    `Ito`: vertices `(i,)` and symmetric trees `(i, j)`. Those of weight 3 are the
    ladders `(i, j, k)`, the tree $[[i]_j]_k$, except those with $i \le j > k$:
    $(2d^3 + d)/3$ letters; by weight 2, 3, 6 for two channels, 3, 6, 19 for three.

    Up to depth 3 this is `GrossmanLarson` in other coordinates, and
    [`arborax.algebra.primitive_conversion`][] goes both ways, exactly. Beyond, the way
    back is [`arborax.algebra.words_from_tree`][], in fractions too. At depth 4 and more
    it holds the extension of a branched rough path that is given up to weight 3
    (regularity above 1/4), with fewer coordinates: 50 where trees number 72 (d = 2,
    N = 4). Products are concatenations, and lifted fields are Lie brackets of those of
    the letters; on a manifold $(i, j, k)$ is $\nabla_{\nabla_{V_i} V_j} V_k$.

    Words without letters of weight 3 are those of `Ito`. Keys are tuples of letters by
    weight, then lexicographically in the order of `letters`.

    ??? cite "References"

        L. Foissy, Finite dimensional comodules over the Hopf algebra of rooted trees,
        Journal of Algebra 255 (2002). H. Boedihardjo and I. Chevyrev, An isomorphism
        between branched and geometric rough paths, Annales de l'IHP (B) 55 (2019).
    """

    @property
    def letter_counts(self) -> tuple[int, ...]:
        d = self.dim
        return (d, d * (d + 1) // 2, (2 * d**3 + d) // 3)[: self.depth]

    @ft.cached_property
    def letters(self) -> tuple[tuple[int, ...], ...]:
        """The alphabet: channels, unordered pairs, ladders."""
        channels = range(self.dim)
        words = it.product(channels, repeat=3)
        alphabet = [
            [(i,) for i in channels],
            list(it.combinations_with_replacement(channels, 2)),
            [(i, j, k) for i, j, k in words if not i <= j > k],
        ]
        return tuple(it.chain(*alphabet[: self.depth]))

    def _spell(self, word: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        return tuple(self.letters[letter] for letter in word)

    @property
    def calculus(self) -> None:
        return None

    @property
    def tree_algebra(self) -> AbstractHopfAlgebra | None:
        return GrossmanLarson(self.dim, self.depth) if self.depth <= 3 else None

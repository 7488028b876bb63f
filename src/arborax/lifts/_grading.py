"""Coefficients by weight, stored so that taking off the first letter is a reshape."""

import dataclasses
import functools as ft

from jaxtyping import Array, Float


@dataclasses.dataclass(frozen=True)
class Grading:
    r"""Block layout of the coefficients of words, or of planar trees.

    An object of weight $R$ is either a single letter, or a letter $a$ of weight $k < R$
    followed by an object $m$ of weight $R - k$. The coefficients of weight $R$ form one
    vector: blocks $k = 1, \dots, R - 1$, each a row-major matrix
    `(letters[k-1], sizes[R-k-1])`, then the single letters. No index table is needed to
    slice by the first letter.

    - Words over a weighted alphabet: `letters` counts the alphabet by weight, and the
      single letters are the same alphabet.
    - Planar trees, written as the free magma $a \triangleright m$: every tree is a
      letter, and only the `d` vertices stand alone.
    """

    letters: tuple[int, ...]
    singles: tuple[int, ...]

    @ft.cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of objects of each weight."""
        sizes: list[int] = []
        for weight, single in enumerate(self.singles, start=1):
            tails = range(1, weight)
            sizes.append(single + sum(self.letters[k - 1] * sizes[-k] for k in tails))
        return tuple(sizes)

    def offset(self, weight: int, k: int) -> int:
        """Where block `k` of the given weight begins (`k == weight`: the singles)."""
        return sum(
            self.letters[j - 1] * self.sizes[weight - j - 1] for j in range(1, k)
        )

    def single(self, x: Float[Array, " size"], weight: int) -> Float[Array, " letters"]:
        """The part of the coefficients of this weight on single letters."""
        return x[self.offset(weight, weight) :]

    def block(
        self, x: Float[Array, " size"], weight: int, k: int
    ) -> Float[Array, "letters tails"]:
        """The part with a first letter of weight `k`, one row for each letter."""
        shape = (self.letters[k - 1], self.sizes[weight - k - 1])
        start = self.offset(weight, k)
        return x[start : start + shape[0] * shape[1]].reshape(shape)


@ft.cache
def word_grading(letters: tuple[int, ...]) -> Grading:
    """Words over an alphabet with `letters[k-1]` letters of weight `k`."""
    return Grading(letters, letters)


@ft.cache
def tree_grading(dim: int, depth: int) -> Grading:
    r"""Planar trees of up to `depth` vertices in `dim` colours, as a free magma."""
    singles = (dim,) + (0,) * (depth - 1)
    letters: tuple[int, ...] = (dim,)
    for weight in range(2, depth + 1):
        letters += (
            sum(letters[k - 1] * letters[weight - k - 1] for k in range(1, weight)),
        )
    return Grading(letters, singles)

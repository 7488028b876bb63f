"""The tensor algebra: words, Stratonovich calculus."""

import dataclasses

from ._word_algebra import AbstractWordAlgebra


@dataclasses.dataclass(frozen=True)
class Shuffle(AbstractWordAlgebra):
    r"""Words: the algebra of Stratonovich calculus and of smooth paths.

    The product is concatenation, and signatures are characters of the shuffle product.
    Keys are tuples of letters `0..dim-1`, by length and then lexicographically. The
    primitive basis is that of Lyndon words $l = uv$ ($v$ the longest proper Lyndon
    suffix), bracketed $[l] = [u][v] - [v][u]$. Primitive coordinates are coefficients
    of these *brackets*, not of Lyndon words in the expanded logarithm.

    Size $\sum_{n=1}^N d^n$ for $d$ channels and depth $N$.

    **Arguments:**

    - `dim`: number of channels.
    - `depth`: length of the longest words.

    ??? cite "Reference"

        C. Reutenauer, Free Lie Algebras, Oxford University Press, 1993, chapters 1, 5.
    """

    @property
    def letter_counts(self) -> tuple[int, ...]:
        return (self.dim,)

    @property
    def letters(self) -> tuple[int, ...]:
        """The alphabet, `0..dim-1`."""
        return tuple(range(self.dim))

    def _spell(self, word: tuple[int, ...]) -> tuple[int, ...]:
        return word

    @property
    def calculus(self) -> str:
        return "stratonovich"

"""The common interface of the Hopf algebras."""

import abc
import dataclasses
import functools as ft
import reprlib
from fractions import Fraction
from typing import Any

import numpy as np

from ._cuts import dual_antipode
from ._sparse import ProductTable, SparseMap


MAX_SIZE = 500_000


@dataclasses.dataclass(frozen=True)
class AbstractHopfAlgebra(abc.ABC):
    """A graded cocommutative Hopf algebra, truncated at weight `depth`.

    Elements are arrays `(..., size)` of pairings `<x, key>`, one for each key of
    `basis`; the coefficient of the unit is not stored. Arguments of `product`, `log`
    and `antipode` have unit coefficient one (`g` stands for `1 + g`), those of `exp`,
    `star`, `to_primitive` have unit coefficient zero. Values are not checked: NaN and
    infinity pass through.

    Instances are hashable, equal when class, `dim` and `depth` are equal, and hold no
    arrays of their own: static tables are built at first use and shared.
    All methods accept NumPy arrays, NumPy object arrays of fractions (exact) and JAX
    arrays, traced or not.
    """

    dim: int
    depth: int

    def __post_init__(self):
        for name, value in (("dim", self.dim), ("depth", self.depth)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise TypeError(
                    f"`{name}` must be an integer, got {reprlib.repr(value)[:60]}"
                )
            if value < 1:
                raise ValueError(f"`{name}` must be at least 1, got {value}")
            object.__setattr__(self, name, int(value))
        if self.size > MAX_SIZE:
            raise ValueError(
                f"{self} would have {self.size:,} basis elements, more than the limit "
                f"of {MAX_SIZE:,}. Use a smaller depth or fewer channels. (Of the "
                "algebras that see brackets, Ito has the smallest basis.)"
            )

    # A concrete algebra supplies these.

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Number of keys in `basis`, known without building it."""

    @property
    @abc.abstractmethod
    def basis(self) -> tuple[Any, ...]:
        """Keys of the basis without the unit, by weight."""

    @property
    @abc.abstractmethod
    def weights(self) -> np.ndarray:
        """Weight of each key of `basis`."""

    @property
    @abc.abstractmethod
    def primitive_size(self) -> int:
        """Number of keys in `primitive_basis`, known without building it."""

    @property
    @abc.abstractmethod
    def primitive_basis(self) -> tuple[Any, ...]:
        """Keys of the basis of primitive elements, by weight."""

    @property
    @abc.abstractmethod
    def primitive_weights(self) -> np.ndarray:
        """Weight of each key of `primitive_basis`."""

    @property
    @abc.abstractmethod
    def product_table(self) -> ProductTable:
        """The product of two elements without unit parts."""

    @property
    @abc.abstractmethod
    def primitive_maps(self) -> tuple[SparseMap, SparseMap]:
        """`to_primitive` and `from_primitive` as sparse maps."""

    @abc.abstractmethod
    def cuts(self, key) -> dict[tuple[Any, Any], int]:
        """Coproduct dual to the product: `<a * b, key> = sum <a, left> <b, right>`.

        The unit is the empty tuple; the two trivial terms are included.
        """

    @abc.abstractmethod
    def dual_product(self, left, right) -> dict[Any, int]:
        """Product of the dual algebra, for which signatures are characters.

        `<X, left> <X, right> = sum value <X, key>` for group-like `X`: shuffles for
        words and ordered forests, the disjoint union for non-planar forests.
        """

    @property
    @abc.abstractmethod
    def calculus(self) -> str | None:
        """`"stratonovich"` or `"ito"` if signatures here are of one kind only, `None`
        if brackets decide."""

    @abc.abstractmethod
    def elementary_step(self, letter: tuple[int, ...]) -> np.ndarray:
        """Primitive coordinates of the element that a step of the path contributes:
        `(i,)` stands for the increment of channel `i`, `(i, j)` with `i <= j` for the
        bracket of two channels, the symmetric tree `([j]_i + [i]_j) / 2`. An algebra
        without brackets is asked for `(i,)` only."""

    @property
    @abc.abstractmethod
    def planar(self) -> bool:
        """Whether `forests` keeps the order of trees and branches, as it does for
        words and planar forests; primitive elements are then Lie polynomials in their
        trees. If not, `forests` stands for differential operators only where covariant
        derivatives commute: vector fields are lifted on flat spaces only."""

    @property
    @abc.abstractmethod
    def forests(self) -> tuple[tuple[Any, ...], SparseMap]:
        """Ordered forests of planar trees, and the map from primitive coordinates to
        their coefficients: the differential operators that a log-signature stands
        for. Vector fields are lifted from it."""

    # These follow.

    @property
    def free_positions(self) -> np.ndarray | None:
        """Positions in `basis` of the coordinates that determine a group-like element,
        all others being products of them, key by key; `None` if there is no such
        rule."""
        return None

    @ft.cached_property
    def antipode_map(self) -> SparseMap:
        """The antipode on the basis, by recursion over `cuts`."""
        done: dict = {}
        entries = [
            (row, self.index[other], value)
            for row, key in enumerate(self.basis)
            for other, value in dual_antipode(
                key, self.cuts, self.dual_product, done
            ).items()
        ]
        row, column, value = zip(*entries)
        return SparseMap(row, column, value, (self.size, self.size))

    @property
    def tree_algebra(self) -> "AbstractHopfAlgebra | None":
        """The algebra of trees in which left-point sums of a path are taken, with a
        morphism to this one; `None` if there is none."""
        return None

    @property
    def scalar(self) -> bool:
        """Whether primitive keys are multi-indices, tuples of `(channel, derivative)`
        with pairings as coordinates. Vector fields are then lifted from derivatives of
        scalar fields, on a flat space of one dimension only."""
        return False

    def from_words(self, words: "AbstractHopfAlgebra") -> SparseMap:
        """Coordinates of words to coordinates of this algebra.

        The morphism that sends each letter of `words` (a `Shuffle` or `Ito` of the same
        `dim` and `depth`) to its elementary step; signatures go to signatures.
        """
        return _image_of_words(self, words)

    @ft.cached_property
    def index(self) -> dict[Any, int]:
        """Position of each key in `basis`."""
        return {key: position for position, key in enumerate(self.basis)}

    @ft.cached_property
    def primitive_index(self) -> dict[Any, int]:
        """Position of each key in `primitive_basis`."""
        return {key: position for position, key in enumerate(self.primitive_basis)}

    def star(self, a, b):
        """Product of two elements with zero unit part."""
        a, b = self._check(a, "a"), self._check(b, "b")
        return self.product_table(*_same_leading(a, b))

    def product(self, a, b):
        """`(1 + a)(1 + b) - 1`, the product of two elements with implicit unit."""
        a, b = self._check(a, "a"), self._check(b, "b")
        a, b = _same_leading(a, b)
        return a + b + self.product_table(a, b)

    def exp(self, x):
        """`exp(x) - 1` for an element `x` with zero unit part."""
        x = self._check(x, "x")
        out = _divide(x, self.depth)
        for k in range(self.depth - 1, 0, -1):
            out = _divide(x + self.product_table(x, out), k)
        return out

    def log(self, g):
        """`log(1 + g)`, primitive when `1 + g` is group-like."""
        g = self._check(g, "g")
        out = _divide(g, self.depth)
        for k in range(self.depth - 1, 0, -1):
            out = _divide(g, k) - self.product_table(g, out)
        return out

    def antipode(self, g):
        """Antipode, an anti-automorphism; the inverse if `1 + g` is group-like."""
        return self.antipode_map(self._check(g, "g"))

    def to_primitive(self, x):
        """Coordinates `(..., primitive_size)` of a primitive element `(..., size)`."""
        return self.primitive_maps[0](self._check(x, "x"))

    def from_primitive(self, coordinates):
        """The element `(..., size)` with coordinates `(..., primitive_size)`."""
        return self.primitive_maps[1](self._check(coordinates, "l", primitive=True))

    def _check(self, x, name: str, primitive: bool = False):
        if not hasattr(x, "__array_namespace__"):
            raise TypeError(
                f"`{name}` must be a NumPy or JAX array, got {reprlib.repr(x)[:60]}"
            )
        if x.dtype != object and not np.issubdtype(x.dtype, np.inexact):
            raise TypeError(f"`{name}` must be floating point, got dtype {x.dtype}")
        size = self.primitive_size if primitive else self.size
        if x.ndim < 1 or x.shape[-1] != size:
            what = "primitive_size" if primitive else "size"
            raise ValueError(
                f"`{name}` must have shape (..., {size}), the `{what}` of {self}; "
                f"got {tuple(x.shape)}"
            )
        return x


def _divide(x, k: int):
    return x * Fraction(1, k) if x.dtype == object else x / k


def _same_leading(a, b) -> tuple[Any, Any]:
    """Broadcast the leading axes explicitly, as strict rank promotion demands."""
    mixed = isinstance(a, np.ndarray) != isinstance(b, np.ndarray)
    if a.shape == b.shape and not mixed:
        return a, b
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError as error:
        raise ValueError(
            "the leading axes of the two elements do not go together, got shapes "
            f"{tuple(a.shape)} and {tuple(b.shape)}"
        ) from error
    # NumPy cannot take what JAX traces, so one JAX array makes JAX arrays of both.
    xp = (b if isinstance(a, np.ndarray) else a).__array_namespace__()
    return tuple(xp.broadcast_to(xp.asarray(x), shape) for x in (a, b))


@ft.cache
def _image_of_words(alg: AbstractHopfAlgebra, words: Any) -> SparseMap:
    """Words by length, each the product of a shorter one and a letter."""
    letters = [tuple(np.atleast_1d(letter).tolist()) for letter in words.letters]
    steps = np.stack([alg.elementary_step(letter) for letter in letters], axis=1)
    steps = alg.primitive_maps[1] @ SparseMap.from_dense(steps)
    count, size, shape = len(letters), alg.size, (alg.size, words.size)
    # times[k, (l, letter)]: the coefficient of `k` in the product of `l` and a letter.
    table = alg.product_table
    pairs = SparseMap(
        table.out * size + table.left, table.right, table.value, (size**2, size)
    )
    pairs = pairs @ steps
    times = SparseMap(
        pairs.row // size,
        pairs.row % size * count + pairs.column,
        pairs.value,
        (size, size * count),
    )
    # longer[k, letter]: the position of word `k` followed by a letter.
    position = {word: k for k, word in enumerate(words.words)}
    longer = np.full((words.size + 1, count), -1)
    for word, k in position.items():
        longer[position.get(word[:-1], words.size), word[-1]] = k
    last = SparseMap(steps.row, longer[-1][steps.column], steps.value, shape)
    parts = [last]
    for _ in range(alg.depth - 1):
        entry, letter = np.nonzero(longer[last.column] >= 0)
        row, column = last.row[entry] * count + letter, last.column[entry]
        grown = (row, longer[column, letter], last.value[entry])
        last = times @ SparseMap(*grown, (size * count, words.size))
        parts.append(last)
    row, column, value = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("row", "column", "value")
    )
    return SparseMap(row, column, value, shape)

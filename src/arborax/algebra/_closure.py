"""Selected coordinates: the keys to carry along for a few entries of a signature."""

import dataclasses
import functools as ft
import math
import reprlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from ._base import AbstractHopfAlgebra
from ._conversion import word_algebra


Monomials = dict[tuple[int, ...], float]  # {sorted letter numbers: coefficient}


@dataclasses.dataclass(frozen=True, eq=False)
class StepRule:
    r"""One step of selected coordinates: Chen's identity with a segment.

    The new value of `keys[k]` is the sum over terms `(places, right, value)` of `value`
    times the old values of the keys at `places` times the coordinate of the segment at
    `right`, or one for `None`. `polynomials[right]` is that coordinate, in increments
    of letters. A selected key is the product of the keys at its places in `selected`.
    """

    keys: tuple[Any, ...]
    selected: tuple[tuple[int, ...], ...]
    terms: tuple[tuple[tuple[tuple[int, ...], int | None, int], ...], ...]
    polynomials: tuple[Monomials, ...]


def prefix_closure(keys: Iterable, alg: AbstractHopfAlgebra) -> tuple[Any, ...]:
    """The keys whose coordinates are carried along to know those of `keys`.

    For words these are their prefixes. For forests they are the branches of their
    trees, and in general the left parts of all cuts; where forests are products of
    their members, members only. No table of `alg` is built.
    """
    return step_rule(tuple(keys), alg, alg.calculus != "stratonovich").keys


@ft.cache
def step_rule(
    keys: tuple[Any, ...], alg: AbstractHopfAlgebra, brackets: bool
) -> StepRule:
    """The rule for these keys and all they need, with brackets or without."""
    low = dataclasses.replace(alg, depth=min(alg.depth, 2))
    products = low.free_positions is not None
    polynomial = _segment(alg, low, brackets)
    place: dict[Any, int] = {}
    rights: dict[Any, int] = {}

    def places(key) -> tuple[int, ...]:
        """Of the members of a key; those that are new are carried from now on."""
        members = [(member,) for member in key] if products else [key] * bool(key)
        return tuple(place.setdefault(member, len(place)) for member in members)

    if not keys:
        raise ValueError("`keys` is empty; choose some from the `basis` of the algebra")
    for key in keys:
        _check_key(key, alg, polynomial)
    selected = tuple(map(places, keys))
    terms: list = []
    while len(terms) < len(place):
        rows = []
        for (left, right), value in alg.cuts(list(place)[len(terms)]).items():
            if not right:
                rows.append((places(left), None, value))
            elif polynomial(right):
                number = rights.setdefault(right, len(rights))
                rows.append((places(left), number, value))
        terms.append(tuple(rows))
    polynomials = tuple(map(polynomial, rights))
    return StepRule(tuple(place), selected, tuple(terms), polynomials)


def _segment(
    alg: AbstractHopfAlgebra, low: AbstractHopfAlgebra, brackets: bool
) -> Callable[[Any], Monomials]:
    """The coordinate of the exponential of a segment at a key, as a polynomial; `low`
    is the algebra of depth two, in which all letters are."""
    letters: dict[Any, dict[int, float]] = {}
    for number, letter in enumerate(word_algebra(low, brackets).letters):
        letter = letter if isinstance(letter, tuple) else (letter,)
        step = low.from_primitive(low.elementary_step(letter))
        for position in step.nonzero()[0]:
            values = letters.setdefault(low.basis[position], {})
            values[number] = float(step[position])

    @ft.cache
    def powers(key) -> dict[tuple[int, ...], float]:
        """All powers of the segment at once, told apart by degree."""
        out: dict[tuple[int, ...], float] = defaultdict(float)
        for (left, right), times in alg.cuts(key).items():
            for number, value in letters.get(right, {}).items():
                for monomial, coefficient in (
                    powers(left).items() if left else [((), 1)]
                ):
                    word = tuple(sorted((*monomial, number)))
                    out[word] += times * value * coefficient
        return out

    @ft.cache
    def exponential(key) -> Monomials:
        return {m: c / math.factorial(len(m)) for m, c in powers(key).items() if c}

    return exponential


def _check_key(key: Any, alg: AbstractHopfAlgebra, polynomial: Callable) -> None:
    try:
        monomials = polynomial(key)
    except (TypeError, ValueError, IndexError, KeyError, AttributeError):
        monomials = {}
    # Letters of weight one come first, those of weight two follow.
    weights = [sum(1 + (n >= alg.dim) for n in monomial) for monomial in monomials]
    if not weights or max(weights) > alg.depth:
        raise ValueError(
            f"{reprlib.repr(key)[:80]} is not a key of {alg}, or is zero along all "
            "sampled paths, as words with letters of weight 3 are; choose another of "
            "its `basis`"
        )

r"""Multi-indices: what a tree says about a scalar equation.

For a scalar state the elementary differential of a tree is a product over its vertices,
$\prod_v f_{i(v)}^{(k(v))}$, with $i$ the label and $k$ the number of children. A
multi-index is the multiset of these letters `(i, k)`, a sorted tuple; it has $n$
letters with $\sum k = n - 1$. Forests of multi-indices are sorted tuples of them.
"""

import functools as ft
import itertools as it
import math
from collections import Counter
from collections.abc import Iterator

from ._trees import Tree


MultiIndex = tuple  # tuple[tuple[int, int], ...], sorted
Forest = tuple  # tuple[MultiIndex, ...], sorted


def _multisets(letters: list, count: int, total: int) -> Iterator[MultiIndex]:
    """Multisets of letters, of the given size and sum of second entries."""
    if count == 0:
        if total == 0:
            yield ()
        return
    for place, letter in enumerate(letters):
        if letter[1] <= total:
            for rest in _multisets(letters[place:], count - 1, total - letter[1]):
                yield (letter, *rest)


@ft.cache
def multi_indices(dim: int, weight: int) -> tuple[MultiIndex, ...]:
    """All multi-indices of trees with `weight` vertices and `dim` labels, sorted."""
    letters = list(it.product(range(dim), range(weight)))
    return tuple(_multisets(letters, weight, weight - 1))


@ft.cache
def forests(dim: int, weight: int) -> tuple[Forest, ...]:
    """All forests of multi-indices, by number of members, then sorted."""

    def build(rest: int, least: tuple) -> Iterator[Forest]:
        if rest == 0:
            yield ()
        for n in range(1, rest + 1):
            for index in multi_indices(dim, n):
                if (n, index) >= least:
                    for tail in build(rest - n, (n, index)):
                        yield tuple(sorted((index, *tail)))

    return tuple(sorted(build(weight, (0, ())), key=lambda f: (len(f), f)))


def count_multi_indices(dim: int, depth: int) -> list[int]:
    """Numbers of multi-indices of each weight `0..depth`, without building them."""
    # counts[n][s]: multisets of n letters whose derivatives sum to s.
    counts = [[0] * (depth + 1) for _ in range(depth + 1)]
    counts[0][0] = 1
    for k in [k for k in range(depth) for _ in range(dim)]:  # letter by letter
        for n in range(1, depth + 1):
            for s in range(k, depth + 1):
                counts[n][s] += counts[n - 1][s - k]
    return [0] + [counts[n][n - 1] for n in range(1, depth + 1)]


def factor(index: MultiIndex) -> int:
    """The product of `k!` over the letters."""
    return math.prod(math.factorial(k) for _, k in index)


def symmetry(forest: Forest) -> int:
    """Factors of the members, times the permutations of equal ones."""
    repeats = math.prod(map(math.factorial, Counter(forest).values()))
    return repeats * math.prod(map(factor, forest))


def derivative(terms: dict[MultiIndex, int]) -> Counter:
    """The derivation that turns each letter `(i, k)` into `(i, k + 1)`."""
    out: Counter = Counter()
    for index, times in terms.items():
        for place, (i, k) in enumerate(index):
            raised = (*index[:place], (i, k + 1), *index[place + 1 :])
            out[tuple(sorted(raised))] += times
    return out


@ft.cache
def index_cuts(dim: int, depth: int) -> dict[MultiIndex, dict]:
    r"""Coproducts of all multi-indices: `{(forest, (trunk,)): times}`, and the whole.

    Dual to $a_1 \cdots a_j * b = a_1 \cdots a_j D^j b + \dots$ with $D$ of
    [`derivative`][], in pairings: times the symmetry of the result, over those of the
    factors, which is an integer.
    """
    weights = range(1, depth + 1)
    out: dict[MultiIndex, dict] = {
        g: {((g,), ()): 1} for n in weights for g in multi_indices(dim, n)
    }
    for n in weights:
        for trunk in multi_indices(dim, n):
            power = {trunk: 1}
            for j in range(depth - n + 1):
                for q in range(depth - n + 1):
                    for pruned in forests(dim, q):
                        if len(pruned) != j:
                            continue
                        sigma = symmetry(pruned) * factor(trunk)
                        for raised, times in power.items():
                            whole = tuple(sorted(sum(pruned, raised)))
                            value = factor(whole) * times // sigma
                            out[whole][pruned, (trunk,)] = value
                power = derivative(power)
    return out


def index_of_tree(tree: Tree) -> MultiIndex:
    """Label and number of children of each vertex."""
    colour, children = tree
    above = sum(map(index_of_tree, children), ())
    return tuple(sorted(((colour, len(children)), *above)))


def tree_of_index(index: MultiIndex) -> Tree:
    """One of the trees with this multi-index: most children first, in preorder."""
    letters = iter(sorted(index, key=lambda letter: -letter[1]))

    def build() -> Tree:
        colour, count = next(letters)
        return (colour, tuple(build() for _ in range(count)))

    return build()

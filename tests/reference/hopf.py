"""The algebras on dicts {key: Fraction}; the unit is the key `()`.

Elements hold *coefficients*. Coordinates in the library's sense are pairings: the same
numbers, except in Grossman-Larson and for multi-indices: `<x, f> = sigma(f) c_f`.
"""

import itertools as it
import math
from collections import defaultdict
from fractions import Fraction
from functools import cache

from . import lyndon, trees


def clean(x):
    return {k: v for k, v in x.items() if v}


def add(*terms):
    """Sum of (scalar, element) pairs."""
    out = defaultdict(Fraction)
    for scalar, x in terms:
        for key, value in x.items():
            out[key] += Fraction(scalar) * value
    return clean(out)


UNIT = {(): Fraction(1)}


class Algebra:
    """Truncated at `depth`: subclasses say what the keys are and how two multiply."""

    def __init__(self, dim, depth):
        self.dim, self.depth = dim, depth

    def __hash__(self):
        return hash((type(self), self.dim, self.depth))

    def __eq__(self, other):
        return hash(self) == hash(other)

    weight = staticmethod(trees.weight)

    def sigma(self, key):
        return 1

    def canonical(self, key):
        return key

    def multiply_keys(self, a, b):
        """Keys of a * b, repeated as often as they occur."""
        raise NotImplementedError

    @cache
    def key_product(self, a, b):
        out = defaultdict(Fraction)
        for key in self.multiply_keys(a, b):
            out[key] += 1
        return dict(out)

    def product(self, x, y):
        out = defaultdict(Fraction)
        for a, ca in x.items():
            for b, cb in y.items():
                if self.weight(a) + self.weight(b) <= self.depth:
                    for key, n in self.key_product(a, b).items():
                        out[key] += n * ca * cb
        return clean(out)

    def commutator(self, x, y):
        return add((1, self.product(x, y)), (-1, self.product(y, x)))

    def exp(self, x):
        total, power = UNIT, UNIT
        for n in range(1, self.depth + 1):
            power = add((Fraction(1, n), self.product(power, x)))
            total = add((1, total), (1, power))
        return total

    def log(self, g):
        assert g[()] == 1
        x = {k: v for k, v in g.items() if k}
        total, power = {}, UNIT
        for n in range(1, self.depth + 1):
            power = self.product(power, x)
            total = add((1, total), (Fraction((-1) ** (n + 1), n), power))
        return total

    def coproduct(self, key):
        """Letters (or trees) of the key are primitive: all splittings in two."""
        for mask in it.product([True, False], repeat=len(key)):
            left = tuple(k for k, m in zip(key, mask) if m)
            right = tuple(k for k, m in zip(key, mask) if not m)
            yield left, right

    @cache
    def key_antipode(self, key):
        """S(key) = -key - sum S(left) * right over the proper splittings."""
        if not key:
            return UNIT
        terms = [(-1, {key: Fraction(1)})]
        for left, right in self.coproduct(key):
            if left and right:
                terms.append((-1, self.product(self.key_antipode(left), {right: 1})))
        return add(*terms)

    def antipode(self, x):
        return add(*((c, self.key_antipode(key)) for key, c in x.items()))

    def pair(self, x, key):
        key = self.canonical(key)
        return self.sigma(key) * x.get(key, Fraction(0))

    def from_pairings(self, values):
        """The element with the pairings {key: value}."""
        pairs = ((self.canonical(k), Fraction(v)) for k, v in values.items())
        return clean({k: v / self.sigma(k) for k, v in pairs})

    def character_product(self, a, b):
        """Keys, repeated, whose pairings sum to <X, a> <X, b> for group-like X."""
        return trees.shuffle(a, b)


class Shuffle(Algebra):
    @staticmethod
    def weight(key):
        return len(key)

    def keys(self, n):
        return tuple(it.product(range(self.dim), repeat=n))

    def multiply_keys(self, a, b):
        return [a + b]

    def letters(self):
        return tuple(range(self.dim))


class Ito(Algebra):
    """Words in the letters (i,) of weight 1 and (i, j), i <= j, of weight 2."""

    @staticmethod
    def weight(key):
        return sum(len(letter) for letter in key)

    @cache
    def keys(self, n):
        if n == 0:
            return ((),)
        return tuple(
            (a, *w)
            for a in self.letters()
            if len(a) <= n
            for w in self.keys(n - len(a))
        )

    def multiply_keys(self, a, b):
        return [a + b]

    def letters(self):
        pairs = it.combinations_with_replacement(range(self.dim), 2)
        return (*((i,) for i in range(self.dim)), *pairs)


class BranchedWords(Ito):
    """The letters of Ito, and ladders (i, j, k) of weight 3 unless i <= j > k."""

    def letters(self):
        triples = it.product(range(self.dim), repeat=3)
        triples = (t for t in triples if t[0] > t[1] or t[1] <= t[2])
        return (*super().letters(), *triples)


class MultiIndex(Algebra):
    """Forests of multisets of (label, number of children), one for each tree."""

    @staticmethod
    def weight(key):
        return sum(len(index) for index in key)

    def canonical(self, key):
        return tuple(sorted(tuple(sorted(index)) for index in key))

    @staticmethod
    def of_tree(tree):
        label, children = tree
        letters = [(label, len(children))]
        for child in children:
            letters += MultiIndex.of_tree(child)
        return letters

    def of_forest(self, forest):
        return self.canonical(self.of_tree(tree) for tree in forest)

    @cache
    def keys(self, n):
        return tuple({self.of_forest(f) for f in trees.forests(self.dim, n)})

    def sigma(self, key):
        value = 1
        for _, group in it.groupby(key):
            value *= math.factorial(len(list(group)))
        return value * math.prod(math.factorial(k) for index in key for _, k in index)

    def multiply_keys(self, a, b):
        """Every member of `a` stays, or differentiates one letter of `b`."""
        letters = [(m, p) for m, index in enumerate(b) for p in range(len(index))]
        out = []
        for targets in it.product([None, *letters], repeat=len(a)):
            kept = [index for index, target in zip(a, targets) if target is None]
            grown = [[list(letter) for letter in index] for index in b]
            for index, target in zip(a, targets):
                if target is not None:
                    member, place = target
                    grown[member][place][1] += 1
            for index, target in zip(a, targets):
                if target is not None:
                    grown[target[0]] += [list(letter) for letter in index]
            grown = [tuple(tuple(letter) for letter in index) for index in grown]
            out.append(self.canonical((*kept, *grown)))
        return out

    def character_product(self, a, b):
        return [self.canonical(a + b)]


class GrossmanLarson(Algebra):
    def keys(self, n):
        return trees.forests(self.dim, n)

    def canonical(self, key):
        return trees.canonical(key)

    def sigma(self, key):
        return trees.symmetry(key)

    def multiply_keys(self, a, b):
        return [trees.canonical(f) for f in trees.graft_all(a, b)]

    def character_product(self, a, b):
        return [trees.canonical(a + b)]


class MuntheKaasWright(Algebra):
    def keys(self, n):
        return trees.ordered_forests(self.dim, n)

    def multiply_keys(self, a, b):
        return list(trees.graft_all(a, b))


def reference(alg):
    """The reference algebra of the same name, dim and depth as a library algebra."""
    return globals()[type(alg).__name__](alg.dim, alg.depth)


def letter_element(ref, letter):
    """A letter as an element: a one-letter word, or a one-tree forest."""
    return {(letter,): Fraction(1)}


def bracket_basis(ref, letters, primitives):
    """Elements of the primitive basis.

    `letters` fixes the total order of the letters; for Grossman-Larson the basis dual
    to the coordinates <lambda, tree> is tree / sigma(tree), and so for multi-indices.
    """
    if isinstance(ref, GrossmanLarson | MultiIndex):
        return [ref.from_pairings({(t,): 1}) for t in primitives]
    rank = {a: i for i, a in enumerate(letters)}
    elements = [letter_element(ref, a) for a in letters]
    words = [tuple(rank[a] for a in p) for p in primitives]
    return [lyndon.bracket(ref, w, elements) for w in words]


def solve(basis, target):
    """Exact coordinates of `target` in `basis`, or None if it is not in the span."""
    keys = sorted({k for x in basis for k in x} | set(target), key=repr)
    rows = [[x.get(k, Fraction(0)) for x in basis] + [target.get(k, 0)] for k in keys]
    pivots, done = [], 0
    for col in range(len(basis)):
        pivot = next((r for r in range(done, len(rows)) if rows[r][col]), None)
        if pivot is None:
            raise ValueError("the basis is linearly dependent")
        rows[done], rows[pivot] = rows[pivot], rows[done]
        head = [v / rows[done][col] for v in rows[done]]
        rows[done] = head
        for r, row in enumerate(rows):
            if r != done and row[col]:
                factor = row[col]
                rows[r] = [v - factor * h if h else v for v, h in zip(row, head)]
        pivots.append(col)
        done += 1
    if any(row[-1] for row in rows[done:]):
        return None
    return [row[-1] for row in rows[:done]]


def content(key):
    """Sorted letters of a key: brackets only mix keys with the same content."""

    def flat(x):
        if isinstance(x, int):
            return [x]
        return [c for y in x for c in flat(y)]

    return tuple(sorted(flat(key)))


def primitive_coordinates(ref, element, letters, primitives):
    """Coefficients of a primitive element in the bracket basis, block by block."""
    basis = bracket_basis(ref, letters, primitives)
    out = [Fraction(0)] * len(basis)
    blocks = defaultdict(list)
    for i, x in enumerate(basis):
        blocks[content(next(iter(x)))].append(i)
    parts = defaultdict(dict)
    for key, value in element.items():
        parts[content(key)][key] = value
    for block, part in parts.items():
        coords = solve([basis[i] for i in blocks[block]], part)
        if coords is None:
            raise ValueError("the element is not primitive")
        for i, c in zip(blocks[block], coords):
            out[i] = c
    return out

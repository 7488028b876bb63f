"""Signatures of sampled rational paths as products of segment exponentials."""

import itertools as it
import math
from fractions import Fraction

from .hopf import add, GrossmanLarson, Ito, MuntheKaasWright, Shuffle, UNIT
from .trees import is_tree


def increments(path):
    return [[b - a for a, b in zip(p, q)] for p, q in it.pairwise(path)]


def bracket_increments(path, brackets):
    """dA per segment from the mode: None, "realised" or the supplied list."""
    if brackets is None:
        return [None for _ in increments(path)]
    if isinstance(brackets, str):
        return [[[a * b for b in dx] for a in dx] for dx in increments(path)]
    return brackets


def vertex(i):
    return (i, ())


def ladder(j, i):
    """The tree [j]_i, with j on top of the root i."""
    return (i, (vertex(j),))


def segment(ref, dx, da):
    """ell = sum dX^i (i) - 1/2 sum dA^ij [j]_i."""
    d = range(ref.dim)
    if isinstance(ref, Shuffle):
        assert da is None
        return {(i,): Fraction(dx[i]) for i in d}
    if isinstance(ref, Ito):
        ell = [(dx[i], {((i,),): 1}) for i in d]
        half = Fraction(-1, 2)
        ell += [(half * da[i][j], {(tuple(sorted((i, j))),): 1}) for i in d for j in d]
        return truncate(ref, add(*ell))
    ell = [(dx[i], {(vertex(i),): 1}) for i in d]
    if da is not None:
        half = Fraction(-1, 2)
        ell += [(half * da[i][j], {(ladder(j, i),): 1}) for i in d for j in d]
    return truncate(ref, add(*ell))


def truncate(ref, x):
    return {k: v for k, v in x.items() if ref.weight(k) <= ref.depth}


def left_point_step(ref, dx):
    """The step character that is zero on every tree with two or more vertices."""
    values = {(): Fraction(1)}
    for k in range(1, ref.depth + 1):
        for colours in it.product(range(ref.dim), repeat=k):
            value = math.prod((Fraction(dx[c]) for c in colours), start=Fraction(1))
            if isinstance(ref, MuntheKaasWright):
                value /= math.factorial(k)
            values[ref.canonical(tuple(vertex(c) for c in colours))] = value
    return ref.from_pairings(values)


def steps(ref, path, brackets=None):
    """The group-like element of each segment."""
    if isinstance(brackets, str) and brackets == "left-point":
        return [left_point_step(ref, dx) for dx in increments(path)]
    das = bracket_increments(path, brackets)
    return [ref.exp(segment(ref, dx, da)) for dx, da in zip(increments(path), das)]


def signature(ref, path, brackets=None):
    total = UNIT
    for step in steps(ref, path, brackets):
        total = ref.product(total, step)
    return total


def log_signature(ref, path, brackets=None):
    return ref.log(signature(ref, path, brackets))


def left_point_sums(ref, path, tree):
    """Left-point iterated sum of a tree by its own recursion (no algebra, GL only)."""
    assert isinstance(ref, GrossmanLarson) and is_tree(tree)
    colour, children = tree
    values = [Fraction(0)]
    sums = [left_point_sums(ref, path, child) for child in children]
    for n, dx in enumerate(increments(path)):
        product = math.prod((s[n] for s in sums), start=Fraction(1))
        values.append(values[-1] + product * dx[colour])
    return values


def ito_image(ref, element):
    """Image of an Ito element in a tree algebra: (i,) -> vertex, (i, j) -> S_ij, and,
    of branched words, (i, j, k) -> [[i]_j]_k."""
    terms = []
    for word, value in element.items():
        image = UNIT
        for letter in word:
            image = ref.product(image, ito_letter(letter))
        terms.append((value, image))
    return add(*terms)


def ito_letter(letter):
    if len(letter) == 1:
        return {(vertex(letter[0]),): Fraction(1)}
    if len(letter) == 3:
        i, j, k = letter
        return {((k, (ladder(i, j),)),): Fraction(1)}
    i, j = letter
    half = Fraction(1, 2)
    return add((half, {(ladder(j, i),): 1}), (half, {(ladder(i, j),): 1}))

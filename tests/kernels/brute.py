"""Brute force for the kernel tests: words, trees and planar forests one by one.

Written independently of the library: everything is enumerated, coordinates are dicts.
"""

import functools as ft
import itertools as it
import math

import numpy as np


# --- enumeration: a tree is (colour, (child, ...)), a forest a tuple of trees


@ft.lru_cache(None)
def planar_forests(d, weight):
    """Ordered forests of planar trees with exactly `weight` vertices."""
    if weight == 0:
        return ((),)
    return tuple(
        (tree, *rest)
        for first in range(1, weight + 1)
        for tree in planar_trees(d, first)
        for rest in planar_forests(d, weight - first)
    )


@ft.lru_cache(None)
def planar_trees(d, weight):
    return tuple((i, f) for i in range(d) for f in planar_forests(d, weight - 1))


def canonical(tree):
    return (tree[0], tuple(sorted(canonical(t) for t in tree[1])))


@ft.lru_cache(None)
def forests(d, weight):
    """Non-planar forests: sorted tuples, without repetition."""
    found = {tuple(sorted(canonical(t) for t in f)) for f in planar_forests(d, weight)}
    return tuple(sorted(found))


def sigma(forest):
    """Symmetry factor: permutations of equal trees times the factors of the trees."""
    counts = {}
    for tree in forest:
        counts[tree] = counts.get(tree, 0) + 1
    own = math.prod(math.factorial(c) for c in counts.values())
    return own * math.prod(sigma(t[1]) for t in forest)


# --- left-point sums


def left_point_words(dx, depth):
    d = dx.shape[1]
    words = [w for k in range(depth + 1) for w in it.product(range(d), repeat=k)]
    value = {w: float(w == ()) for w in words}
    for step in dx:
        value = {
            w: value[w] + (value[w[:-1]] * step[w[-1]] if w else 0.0) for w in words
        }
    return value


def left_point_forests(dx, depth):
    d = dx.shape[1]
    trees = [(i, f) for k in range(depth) for f in forests(d, k) for i in range(d)]
    value = dict.fromkeys(trees, 0.0)
    for step in dx:
        value = {
            t: value[t] + step[t[0]] * math.prod(value[c] for c in t[1]) for t in trees
        }
    return {
        f: math.prod(value[t] for t in f)
        for k in range(depth + 1)
        for f in forests(d, k)
    }


def left_point_planar(dx, depth):
    """Ordered forests; a step puts `dx..dx/r!` on the roots of the last `r` trees."""
    d = dx.shape[1]
    keys = [f for k in range(depth + 1) for f in planar_forests(d, k)]
    value = {f: float(f == ()) for f in keys}
    for step in dx:
        new = {}
        for f in keys:
            total = 0.0
            for r in range(len(f) + 1):
                term = value[f[: len(f) - r]] / math.factorial(r)
                for colour, children in f[len(f) - r :]:
                    term *= value[children] * step[colour]
                total += term
            new[f] = total
        value = new
    return value


# --- tensors: words of a piecewise linear path, and of `exp(dx - dA/2)`


def tensor_product(a, b):
    depth = len(a) - 1
    return [
        sum(np.multiply.outer(a[j], b[k - j]) for j in range(k + 1))
        for k in range(depth + 1)
    ]


def tensor_exp(level1, level2, depth):
    d = len(level1)
    unit = [np.ones(())] + [np.zeros((d,) * k) for k in range(1, depth + 1)]
    x = [np.zeros((d,) * k) for k in range(depth + 1)]
    x[1] = np.asarray(level1)
    if depth > 1 and level2 is not None:
        x[2] = np.asarray(level2)
    total, power = [u.copy() for u in unit], unit
    for k in range(1, depth + 1):
        power = [p / k for p in tensor_product(power, x)]
        total = [t + p for t, p in zip(total, power)]
    return total


def tensor_signature(dx, depth, brackets=None):
    total = None
    for n, step in enumerate(dx):
        second = None if brackets is None else -0.5 * brackets[n]
        factor = tensor_exp(step, second, depth)
        total = factor if total is None else tensor_product(total, factor)
    return total


# --- kernels


def kernel(kind, dx, dy, depth):
    """Left-point kernels (`geometric`: piecewise linear) up to weight `depth`."""
    if kind == "geometric":
        a, b = tensor_signature(dx, depth), tensor_signature(dy, depth)
        return sum(float(np.sum(u * v)) for u, v in zip(a, b))
    features = {
        "ito": left_point_words,
        "branched": left_point_forests,
        "planar": left_point_planar,
    }[kind]
    a, b = features(dx, depth), features(dy, depth)
    weights = {f: 1 / sigma(f) if kind == "branched" else 1.0 for f in a}
    return sum(a[f] * b[f] * weights[f] for f in a)

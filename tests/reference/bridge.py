"""Between library arrays (pairings, implicit unit) and reference elements (dicts)."""

import random
from fractions import Fraction

import numpy as np

from .hopf import primitive_coordinates, reference


def to_array(alg, element):
    """Pairings with the keys of `alg.basis`, exact."""
    ref = reference(alg)
    return np.array([Fraction(ref.pair(element, k)) for k in alg.basis], dtype=object)


def to_element(alg, array, unit=0):
    """The element with the given pairings and unit coefficient."""
    values = dict(zip(alg.basis, array))
    return reference(alg).from_pairings({(): unit, **values})


def letters(alg):
    """The documented order of letters, or None for Grossman-Larson."""
    return getattr(alg, "letters", None)


def coordinates(alg, element):
    """Primitive coordinates in the order of `alg.primitive_basis`, exact."""
    basis = alg.primitive_basis
    coords = primitive_coordinates(reference(alg), element, letters(alg), basis)
    return np.array(coords, dtype=object)


def random_fractions(seed, size, zeros=0.3):
    """An exact random vector with small numerators and some zeros."""
    rng = random.Random(seed)
    values = [
        Fraction(0)
        if rng.random() < zeros
        else Fraction(rng.randint(-5, 5), rng.choice([1, 2, 3]))
        for _ in range(size)
    ]
    return np.array(values, dtype=object)


def random_path(seed, times, dim):
    """A rational path with points on a grid that floats hold exactly."""
    rng = random.Random(seed)
    return [[Fraction(rng.randint(-6, 6), 8) for _ in range(dim)] for _ in range(times)]


def random_brackets(seed, steps, dim):
    """Symmetric rational bracket increments, one matrix per step."""
    rng = random.Random(seed + 1000)
    out = []
    for _ in range(steps):
        a = [[Fraction(rng.randint(-4, 4), 8) for _ in range(dim)] for _ in range(dim)]
        out.append([[a[max(i, j)][min(i, j)] for j in range(dim)] for i in range(dim)])
    return out


def floats(x, dtype=np.float64):
    """Nested lists or arrays of fractions as a float array."""
    return np.array(x, dtype=object).astype(dtype)

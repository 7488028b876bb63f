"""Kernels against sums over enumerated words, trees and planar forests."""

import jax.numpy as jnp
import numpy as np
import pytest

from arborax.algebra import GrossmanLarson, MuntheKaasWright, symmetry_factor
from arborax.kernels import signature_gram, signature_kernel

from . import brute


KINDS = ("geometric", "ito", "branched", "planar")


def _paths(rng, n, times, d, size=0.5):
    return np.cumsum(size * rng.standard_normal((n, times, d)), axis=1)


def _bracket(rng, steps, d):
    root = rng.standard_normal((steps, d, d))
    return 0.2 * root @ np.swapaxes(root, 1, 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [1, 4])
def test_truncated_left_point(kind, depth, rng):
    x, y = _paths(rng, 1, 5, 2)[0], _paths(rng, 1, 4, 2)[0]
    expected = brute.kernel(kind, np.diff(x, axis=0), np.diff(y, axis=0), depth)
    for method in ("recursion", "features"):
        got = signature_kernel(
            jnp.asarray(x), jnp.asarray(y), kind, depth, method=method
        )
        np.testing.assert_allclose(got, expected, rtol=1e-11)


def _forest_features(alg, dx, brackets, left_point):
    """Coordinates with the unit: enumerated, or by the algebra's own exponential."""
    if brackets is None:
        values = left_point(dx, alg.depth)
        return np.array([1.0] + [values[f] for f in alg.basis])
    out = np.zeros(alg.size)
    for step, increment in zip(dx, brackets):
        element = np.zeros(alg.size)
        for place, key in enumerate(alg.basis):
            if len(key) > 1:
                continue
            colour, children = key[0]
            if children == ():
                element[place] = step[colour]
            elif len(children) == 1 and children[0][1] == ():
                element[place] = -0.5 * increment[colour, children[0][0]]
        out = alg.product(out, alg.exp(element))
    return np.concatenate([[1.0], out])


def _reference(kind, depth, dx, dy, ax, ay):
    d = dx.shape[1]
    if kind == "ito":

        def words(z, a):
            if a is None:
                return np.array(list(brute.left_point_words(z, depth).values()))
            return np.concatenate(
                [np.ravel(v) for v in brute.tensor_signature(z, depth, a)]
            )

        return words(dx, ax) @ words(dy, ay)
    if kind == "branched":
        alg, left = GrossmanLarson(d, depth), brute.left_point_forests
        weights = np.array([1.0] + [1 / symmetry_factor(f) for f in alg.basis])
    else:
        alg, left = MuntheKaasWright(d, depth), brute.left_point_planar
        weights = np.ones(alg.size + 1)
    fx = _forest_features(alg, dx, ax, left)
    return np.sum(fx * _forest_features(alg, dy, ay, left) * weights)


@pytest.mark.parametrize("kind", ["ito", "branched", "planar"])
@pytest.mark.parametrize("depth, sides", [(4, "xy"), (3, "x"), (2, "y")])
def test_supplied_brackets(kind, depth, sides, rng):
    x, y = _paths(rng, 1, 4, 2)[0], _paths(rng, 1, 5, 2)[0]
    ax = _bracket(rng, 3, 2) if "x" in sides else None
    ay = _bracket(rng, 4, 2) if "y" in sides else None
    dx, dy = np.diff(x, axis=0), np.diff(y, axis=0)
    expected = _reference(kind, depth, dx, dy, ax, ay)
    brackets = {
        "brackets_x": None if ax is None else jnp.asarray(ax),
        "brackets_y": None if ay is None else jnp.asarray(ay),
    }
    for method in ("recursion", "features"):
        got = signature_kernel(
            jnp.asarray(x), jnp.asarray(y), kind, depth, method=method, **brackets
        )
        np.testing.assert_allclose(got, expected, rtol=1e-10)


@pytest.mark.parametrize(
    "kind, brackets",
    [
        ("geometric", None),
        ("ito", "realised"),
        ("branched", None),
        ("branched", "realised"),
        ("planar", None),
        ("planar", "realised"),
    ],
)
def test_complete_is_limit_of_truncated(kind, brackets, rng):
    x = jnp.asarray(_paths(rng, 2, 5, 2, 0.15))
    y = jnp.asarray(_paths(rng, 3, 4, 2, 0.15))
    options = {"brackets_x": brackets, "method": "recursion", "solver": "series"}
    full = signature_gram(x, y, kind, **options)
    long = signature_gram(x, y, kind, 5, **options)
    np.testing.assert_allclose(full, long, rtol=2e-4)


def test_published_tree_inner_product(rng):
    """Plain inner product of tree coordinates: no weights, no forests, no unit."""
    x, y = _paths(rng, 1, 5, 2)[0], _paths(rng, 1, 4, 2)[0]
    fx = brute.left_point_forests(np.diff(x, axis=0), 3)
    fy = brute.left_point_forests(np.diff(y, axis=0), 3)
    expected = sum(fx[f] * fy[f] for f in fx if len(f) == 1)
    got = signature_kernel(
        jnp.asarray(x), jnp.asarray(y), "branched", 3, inner_product="trees"
    )
    np.testing.assert_allclose(got, expected, rtol=1e-11)


@pytest.mark.parametrize(
    "kind, depth", [("geometric", None), ("ito", 3), ("branched", 3), ("planar", None)]
)
def test_gram_is_blocks_of_pairs(kind, depth, rng):
    x = jnp.asarray(_paths(rng, 5, 6, 2, 0.2))
    y = jnp.asarray(_paths(rng, 3, 9, 2, 0.2))
    pairs = signature_kernel(x[:, None], y[None], kind, depth, method="recursion")
    tiled = signature_gram(x, y, kind, depth, method="recursion", block=2)
    np.testing.assert_allclose(tiled, pairs, rtol=1e-12)
    square = signature_gram(x, None, kind, depth, method="recursion", block=2)
    whole = signature_gram(x, x, kind, depth, method="recursion")
    np.testing.assert_allclose(square, whole, rtol=1e-10)

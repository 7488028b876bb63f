"""Second oracle: kauri, a pure-Python package for rooted trees.

kauri writes a tree as `(child, ..., colour)`, keeps the unit of Grossman-Larson as a
one-vertex tree (so that a forest is the children of an extra root) and grafts the right
factor on the left one; its symmetry factors forget colours.
"""

from collections import Counter

import kauri
import numpy as np
import pytest
from kauri import bck, gl, mkw

import arborax as abx
from arborax import algebra


ROOT = 9


def kauri_tuple(tree):
    colour, children = tree
    return (*(kauri_tuple(c) for c in children), colour)


def our_tree(rep):
    return (rep[-1], tuple(our_tree(c) for c in rep[:-1]))


def rooted(forest):
    return kauri.Tree((*(kauri_tuple(t) for t in forest), ROOT))


def unrooted(tree):
    return algebra.canonical(tuple(our_tree(c) for c in tree.list_repr[:-1]))


def our_forest(forest):
    """Trees of a kauri forest; its empty tree is our empty forest."""
    reps = (t.list_repr for t in forest.tree_list)
    return tuple(our_tree(r) for r in reps if r is not None)


def unit_vector(alg, key):
    out = np.zeros(alg.size, dtype=object)
    out[alg.index[key]] = algebra.symmetry_factor(key)
    return out


def coefficients(alg, array):
    return {
        k: v // algebra.symmetry_factor(k) for k, v in zip(alg.basis, array) if v != 0
    }


def test_grossman_larson_products():
    alg = abx.GrossmanLarson(2, 4)
    weights = dict(zip(alg.basis, alg.weights))
    pairs = [
        (a, b)
        for a in alg.basis
        for b in alg.basis
        if weights[a] + weights[b] == 4 or weights[a] + weights[b] == 3
    ]
    for a, b in pairs:
        expected = Counter()
        for c, forest in gl.product(rooted(b), rooted(a)).term_list:
            expected[unrooted(forest.tree_list[0])] += c
        got = coefficients(alg, alg.star(unit_vector(alg, a), unit_vector(alg, b)))
        assert got == expected, (a, b)


def test_grossman_larson_antipodes():
    alg = abx.GrossmanLarson(2, 4)
    for key in alg.basis:
        expected = Counter()
        for c, forest in gl.antipode(rooted(key)).term_list:
            expected[unrooted(forest.tree_list[0])] += c
        got = coefficients(alg, alg.antipode(unit_vector(alg, key)))
        assert got == {k: v for k, v in expected.items() if v}


def test_cuts_of_nonplanar_trees():
    alg = abx.GrossmanLarson(2, 4)
    for tree in alg.primitive_basis:
        expected = Counter()
        for c, left, right in bck.coproduct(kauri.Tree(kauri_tuple(tree))).term_list:
            left, right = (algebra.canonical(our_forest(f)) for f in (left, right))
            expected[left, right] += c
        assert Counter(alg.cuts((tree,))) == expected


def planar_coproduct(forest):
    """Coproduct of an ordered forest: cut B+(forest), keep the new root."""
    parent = kauri.PlanarTree((*(kauri_tuple(t) for t in forest), ROOT))
    out = Counter()
    for c, left, right in mkw.coproduct(parent).term_list:
        trunk = our_forest(right)
        if trunk:
            out[our_forest(left), trunk[0][1]] += c
    return out


def test_cuts_of_ordered_forests():
    alg = abx.MuntheKaasWright(2, 3)
    for key in alg.basis:
        assert Counter(alg.cuts(key)) == planar_coproduct(key)
    deep = abx.MuntheKaasWright(1, 5)
    for key in deep.basis:
        assert Counter(deep.cuts(key)) == planar_coproduct(key)


def test_planar_product_is_dual_to_the_planar_coproduct():
    alg = abx.MuntheKaasWright(2, 4)
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, size=(2, alg.size)).astype(object)
    product = alg.product(a, b)
    for key in [alg.basis[i] for i in rng.choice(alg.size, 60, replace=False)]:
        expected = sum(
            c * (a[alg.index[u]] if u else 1) * (b[alg.index[v]] if v else 1)
            for (u, v), c in planar_coproduct(key).items()
        )
        assert product[alg.index[key]] == expected


def test_planar_antipode_of_trees():
    alg = abx.MuntheKaasWright(2, 4)
    rng = np.random.default_rng(1)
    g = rng.integers(-3, 4, size=alg.size).astype(object)
    inverse = alg.antipode(g)
    for tree in alg.letters:
        expected = sum(
            c * g[alg.index[our_forest(f)]]
            for c, f in mkw.antipode(kauri.PlanarTree(kauri_tuple(tree))).term_list
        )
        assert inverse[alg.index[(tree,)]] == expected


def test_shuffle_of_forests():
    alg = abx.MuntheKaasWright(2, 3)
    for a in alg.basis:
        for b in alg.basis:
            if algebra.weight(a) + algebra.weight(b) <= 3:
                left, right = (
                    kauri.OrderedForest(
                        tuple(kauri.PlanarTree(kauri_tuple(t)) for t in f)
                    )
                    for f in (a, b)
                )
                expected = Counter()
                for c, forest in mkw.shuffle_product(left, right).term_list:
                    expected[our_forest(forest)] += c
                assert Counter(alg.dual_product(a, b)) == expected


@pytest.mark.parametrize("order", range(1, 7))
def test_factors_of_uncoloured_trees(order):
    ours = {
        t
        for t in abx.GrossmanLarson(1, 6).primitive_basis
        if algebra.weight(t) == order
    }
    theirs = {
        algebra.canonical(our_tree(colour(t.list_repr))): t
        for t in kauri.trees_of_order(order)
    }
    assert ours == set(theirs)
    for key, tree in theirs.items():
        assert algebra.symmetry_factor(key) == tree.sigma()
        assert algebra.tree_factorial(key) == tree.factorial()


def colour(rep):
    """kauri's uncoloured trees as coloured ones with the single colour 0."""
    if rep and isinstance(rep[-1], int):
        return rep
    return (*(colour(c) for c in rep), 0)

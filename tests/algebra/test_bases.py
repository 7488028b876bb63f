"""Keys, orders, sizes and the combinatorial factors against plain enumeration."""

import math

import numpy as np
import pytest
from reference import lyndon, reference, trees
from reference.bridge import letters

import arborax as abx
from arborax import algebra


WORDS = [abx.Shuffle, abx.Ito, abx.BranchedWords]
ALGEBRAS = [abx.GrossmanLarson, abx.MuntheKaasWright, abx.MultiIndex, *WORDS]
CASES = [(cls, d, n) for cls in ALGEBRAS for d, n in [(1, 4), (2, 1), (2, 4), (3, 3)]]


@pytest.mark.parametrize("cls, dim, depth", CASES)
def test_basis_is_the_enumeration(cls, dim, depth):
    alg = cls(dim, depth)
    ref = reference(alg)
    expected = {k for n in range(1, depth + 1) for k in ref.keys(n)}
    assert len(alg.basis) == alg.size == len(expected)
    assert {ref.canonical(k) for k in alg.basis} == expected
    weights = [ref.weight(k) for k in alg.basis]
    assert weights == sorted(weights)
    np.testing.assert_array_equal(alg.weights, weights)
    assert [alg.index[k] for k in alg.basis] == list(range(alg.size))


@pytest.mark.parametrize("cls, dim, depth", CASES)
def test_primitive_basis_is_lyndon(cls, dim, depth):
    alg = cls(dim, depth)
    ref = reference(alg)
    basis = alg.primitive_basis
    assert len(basis) == alg.primitive_size
    if cls in (abx.GrossmanLarson, abx.MultiIndex):
        keys = [key for n in range(1, depth + 1) for key in ref.keys(n)]
        expected = {key for key in keys if len(key) == 1}
        assert {ref.canonical((t,)) for t in basis} == expected
        weights = [ref.weight((t,)) for t in basis]
    else:
        rank = {a: i for i, a in enumerate(letters(alg))}
        letter_weights = [ref.weight((a,)) for a in letters(alg)]
        np.testing.assert_array_equal(alg.letter_weights, letter_weights)
        words = [tuple(rank[a] for a in key) for key in basis]
        assert set(words) == set(lyndon.lyndon_words(letter_weights, depth))
        assert len(set(words)) == len(words)
        weights = [ref.weight(key) for key in basis]
    assert weights == sorted(weights)
    np.testing.assert_array_equal(alg.primitive_weights, weights)


@pytest.mark.parametrize("cls", [abx.MuntheKaasWright, *WORDS])
def test_letters_and_words(cls):
    alg = cls(2, 3)
    ref = reference(alg)
    if cls is abx.MuntheKaasWright:
        expected = {t for n in range(1, 4) for t in trees.planar_trees(2, n)}
    else:
        expected = set(ref.letters())
    assert set(alg.letters) == expected
    if cls is abx.MuntheKaasWright:
        return
    words = set(lyndon.words(list(alg.letter_weights), 3))
    assert set(alg.words) == words
    assert len(alg.words) == len(words)
    by_weight = [(sum(alg.letter_weights[i] for i in w), w) for w in alg.words]
    assert by_weight == sorted(by_weight)


@pytest.mark.parametrize(
    "cls, attribute, dim, sizes",
    [
        (abx.Shuffle, "primitive_size", 2, (3, 5, 8)),
        (abx.GrossmanLarson, "primitive_size", 2, (6, 20, 72)),
        (abx.MuntheKaasWright, "primitive_size", 2, (7, 33, 170)),
        (abx.MuntheKaasWright, "size", 2, (10, 50, 274)),
        (abx.Ito, "primitive_size", 2, (6, 14, 32)),
        (abx.GrossmanLarson, "primitive_size", 7, (56, 595, 7357)),
        (abx.MuntheKaasWright, "primitive_size", 7, (77, 1218, 22190)),
        (abx.Ito, "primitive_size", 7, (56, 364, 2702)),
        (abx.BranchedWords, "primitive_size", 2, (6, 20, 50)),
        (abx.MultiIndex, "primitive_size", 2, (6, 18, 46)),
        (abx.MultiIndex, "primitive_size", 3, (12, 48, 162)),
    ],
)
def test_published_sizes(cls, attribute, dim, sizes):
    assert tuple(getattr(cls(dim, n), attribute) for n in (2, 3, 4)) == sizes


@pytest.mark.parametrize(
    "dim, sizes",
    [(1, (1, 1, 2, 3, 5, 7, 11)), (2, (2, 4, 12, 28, 66)), (3, (3, 9, 36, 114, 348))],
)
def test_multi_indices_by_weight(dim, sizes):
    alg = abx.MultiIndex(dim, len(sizes))
    assert tuple(np.bincount(alg.primitive_weights)[1:]) == sizes


@pytest.mark.parametrize(
    "dim, counts", [(1, (1, 1, 1)), (2, (2, 3, 6)), (3, (3, 6, 19))]
)
def test_free_generators_by_weight(dim, counts):
    """One minus the inverse of the generating function of forests."""
    alg = abx.BranchedWords(dim, 4)
    assert alg.letter_counts == counts
    forests = [1, *np.bincount(abx.GrossmanLarson(dim, 3).weights)[1:]]
    for n in (1, 2, 3):
        lower = sum(counts[k - 1] * forests[n - k] for k in range(1, n))
        assert forests[n] - lower == counts[n - 1]


@pytest.mark.parametrize(
    "dim, counts",
    [(1, (1, 1, 1, 2, 3, 8)), (2, (2, 3, 6, 22, 80)), (3, (3, 6, 19, 102, 576))],
)
def test_generators_that_all_trees_need(dim, counts):
    """Words over so many letters number as forests do; `BranchedWords` has the first
    three weights, and so fewer words than forests from weight four on."""
    words = [1]
    for n in range(1, len(counts) + 1):
        words.append(sum(counts[k - 1] * words[n - k] for k in range(1, n + 1)))
        size = sum(words[1:])
        assert size == abx.GrossmanLarson(dim, n).size
        assert (size == abx.BranchedWords(dim, n).size) == (n <= 3)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_factors_of_trees(dim):
    keys = [t for n in range(1, 5) for t in trees.nonplanar_trees(dim, n)]
    keys += [f for n in range(1, 5) for f in trees.forests(dim, n)]
    for key in keys:
        assert algebra.symmetry_factor(key) == trees.symmetry(key)
        assert algebra.tree_factorial(key) == trees.factorial(key)
        assert algebra.weight(key) == trees.weight(key)


def test_canonical_identifies_the_planar_forms_and_nothing_else():
    classes = {}
    for n in range(1, 5):
        for forest in trees.ordered_forests(2, n):
            classes.setdefault(trees.canonical(forest), set()).add(
                algebra.canonical(forest)
            )
    assert all(len(forms) == 1 for forms in classes.values())
    assert len({f for forms in classes.values() for f in forms}) == len(classes)


def test_number_of_increasing_labellings():
    """sum n! / (tree! sigma) over trees with n vertices is (n-1)!."""
    for n in range(1, 7):
        total = sum(
            math.factorial(n)
            // (algebra.tree_factorial(t) * algebra.symmetry_factor(t))
            for t in abx.GrossmanLarson(1, 6).primitive_basis
            if algebra.weight(t) == n
        )
        assert total == math.factorial(n - 1)


def test_lyndon_words_by_definition():
    for weights, depth in [((1, 1), 6), ((1, 1, 1), 4), ((1, 2, 1, 3), 5)]:
        table = algebra.lyndon_words(weights, depth)
        assert set(table) == set(lyndon.lyndon_words(weights, depth))
        for word, pair in table.items():
            assert pair == (None if len(word) == 1 else lyndon.split(word))


def test_equal_algebras_are_equal_and_hash_alike():
    assert abx.Shuffle(2, 3) == abx.Shuffle(2, 3)
    assert hash(abx.Ito(2, 3)) == hash(abx.Ito(2, 3))
    assert abx.Shuffle(2, 3) != abx.Shuffle(3, 3)
    assert abx.Shuffle(2, 3) != abx.Ito(2, 3)
    assert abx.GrossmanLarson(2, 3) != abx.MuntheKaasWright(2, 3)
    assert abx.Shuffle(dim=2, depth=3) == abx.Shuffle(2, 3)

"""Morphisms between the algebras, exact, against the images of the reference."""

from fractions import Fraction

import numpy as np
import pytest
from reference import paths, reference
from reference.bridge import (
    coordinates,
    random_brackets,
    random_fractions,
    random_path,
    to_array,
    to_element,
)
from reference.hopf import add

import arborax as abx
from arborax import algebra


TREES = [abx.GrossmanLarson, abx.MuntheKaasWright]
WORDS = [abx.Shuffle, abx.Ito, abx.BranchedWords]
SIZES = [(2, 4), (3, 3)]


def same(a, b):
    assert list(a) == list(b)


def image(target, element):
    """Words or Itô words into a tree algebra, letter by letter."""
    words = {
        tuple(a if isinstance(a, tuple) else (a,) for a in word): value
        for word, value in element.items()
    }
    return paths.ito_image(reference(target), words)


@pytest.mark.parametrize("dim, depth", SIZES)
@pytest.mark.parametrize("tree_cls", TREES)
@pytest.mark.parametrize("word_cls", WORDS)
def test_words_to_trees(word_cls, tree_cls, dim, depth):
    words, trees = word_cls(dim, depth), tree_cls(dim, depth)
    a = random_fractions(1, words.size, zeros=0.6)
    expected = to_array(trees, image(trees, to_element(words, a)))
    same(trees.from_words(words)(a), expected)


@pytest.mark.parametrize("dim, depth", [(2, 4), (3, 3)])
@pytest.mark.parametrize("tree_cls", TREES)
@pytest.mark.parametrize("word_cls", WORDS)
def test_primitive_words_to_primitive_trees(word_cls, tree_cls, dim, depth):
    words, trees = word_cls(dim, depth), tree_cls(dim, depth)
    c = random_fractions(2, words.primitive_size, zeros=0.4)
    element = image(trees, to_element(words, words.from_primitive(c)))
    same(algebra.primitive_conversion(words, trees)(c), coordinates(trees, element))


@pytest.mark.parametrize("tree_cls", TREES)
@pytest.mark.parametrize("brackets", ["realised", "supplied"])
def test_ito_image_is_the_explicit_logarithm(tree_cls, brackets):
    """The compressed log-signature carries exactly the branched one (MATH 2)."""
    for dim, depth in [(2, 4), (3, 3)]:
        ito, trees = abx.Ito(dim, depth), tree_cls(dim, depth)
        path = random_path(7, 4, dim)
        mode = random_brackets(7, 3, dim) if brackets == "supplied" else brackets
        short = coordinates(ito, paths.log_signature(reference(ito), path, mode))
        full = coordinates(trees, paths.log_signature(reference(trees), path, mode))
        same(algebra.primitive_conversion(ito, trees)(short), full)
        back = algebra.words_from_tree(trees, ito) @ full.astype(float)
        np.testing.assert_allclose(back, short.astype(float), 1e-9, 1e-9)


@pytest.mark.parametrize("dim, depth", [(1, 3), (2, 2), (2, 3), (3, 3)])
def test_branched_words_are_trees_up_to_depth_three(dim, depth):
    """Both ways in fractions, and the way back by least squares agrees."""
    words, trees = abx.BranchedWords(dim, depth), abx.GrossmanLarson(dim, depth)
    assert words.primitive_size == trees.primitive_size
    there = algebra.primitive_conversion(trees, words)
    back = algebra.primitive_conversion(words, trees)
    c = random_fractions(9, trees.primitive_size)
    same(back(there(c)), c)
    same(there(back(c)), c)
    ito = algebra.primitive_conversion(abx.Ito(dim, depth), words)
    a = random_fractions(10, ito.shape[1])
    direct = algebra.primitive_conversion(abx.Ito(dim, depth), trees)
    same(back(ito(a)), direct(a))


def test_branched_words_extend_rough_paths_beyond_weight_three():
    """Steps of any trees up to weight three, multiplied at depth four."""
    words, trees = abx.BranchedWords(2, 4), abx.GrossmanLarson(2, 4)
    low = algebra.primitive_conversion(
        abx.GrossmanLarson(2, 3), abx.BranchedWords(2, 3)
    )
    groups = [np.full(alg.size, Fraction(0), dtype=object) for alg in (words, trees)]
    for seed in range(3):
        step = random_fractions(seed, low.shape[1], zeros=0.5)
        for k, (alg, ell) in enumerate([(words, low(step)), (trees, step)]):
            fill = np.full(alg.primitive_size - ell.size, Fraction(0), dtype=object)
            factor = alg.exp(alg.from_primitive(np.concatenate([ell, fill])))
            groups[k] = alg.product(groups[k], factor)
    short, full = (a.to_primitive(a.log(g)) for a, g in zip((words, trees), groups))
    same(algebra.primitive_conversion(words, trees)(short), full)
    back = algebra.words_from_tree(trees, words) @ full.astype(float)
    np.testing.assert_allclose(back, short.astype(float), 1e-9, 1e-9)
    same(algebra.words_from_tree(trees, words, exact=True) @ full, short)


@pytest.mark.parametrize("tree_cls", TREES)
@pytest.mark.parametrize("word_cls", [abx.Ito, abx.BranchedWords])
@pytest.mark.parametrize("dim, depth", [(1, 5), (2, 4), (2, 5), (3, 3)])
def test_words_come_back_from_trees_exactly(word_cls, tree_cls, dim, depth):
    words, trees = word_cls(dim, depth), tree_cls(dim, depth)
    c = random_fractions(11, words.primitive_size)
    there = algebra.primitive_conversion(words, trees)(c)
    same(algebra.words_from_tree(trees, words, exact=True) @ there, c)


@pytest.mark.parametrize(
    "source, target",
    [
        (abx.Ito, abx.Shuffle),
        (abx.BranchedWords, abx.Ito),
        (abx.GrossmanLarson, abx.MuntheKaasWright),
        (abx.GrossmanLarson, abx.BranchedWords),
        (abx.MultiIndex, abx.GrossmanLarson),
    ],
)
def test_conversions_that_do_not_exist(source, target):
    with pytest.raises(ValueError, match="no canonical morphism"):
        algebra.primitive_conversion(source(2, 4), target(2, 4))


@pytest.mark.parametrize("dim, depth", SIZES)
def test_forgetting_the_order(dim, depth):
    planar, nonplanar = abx.MuntheKaasWright(dim, depth), abx.GrossmanLarson(dim, depth)
    ref = reference(nonplanar)
    a = random_fractions(3, planar.size, zeros=0.5)
    element = to_element(planar, a)
    forgotten = add(*((v, {ref.canonical(k): 1}) for k, v in element.items()))
    got = algebra.forget_order(planar, nonplanar)(a)
    same(got, to_array(nonplanar, forgotten))
    c = random_fractions(4, planar.primitive_size, zeros=0.5)
    lifted = algebra.forget_order(planar, nonplanar)(planar.from_primitive(c))
    conversion = algebra.primitive_conversion(planar, nonplanar)
    same(conversion(c), nonplanar.to_primitive(lifted))


@pytest.mark.parametrize("tree_cls", TREES)
def test_tree_coordinates_are_a_morphism(tree_cls):
    words, trees = abx.Ito(2, 4), tree_cls(2, 4)
    a, b = (random_fractions(s, words.size, zeros=0.7) for s in (5, 6))
    to_trees = trees.from_words(words)
    same(to_trees(words.product(a, b)), trees.product(to_trees(a), to_trees(b)))


def test_sparse_map_shapes_and_transpose():
    shuffle, gl = abx.Shuffle(2, 3), abx.GrossmanLarson(2, 3)
    matrix = gl.from_words(shuffle)
    dense = matrix.todense()
    assert dense.shape == (gl.size, shuffle.size)
    np.testing.assert_array_equal(matrix.transpose().todense(), dense.T)
    a = random_fractions(8, shuffle.size)
    assert all(isinstance(v, Fraction) for v in matrix(a))
    expected = dense.astype(float) @ a.astype(float)
    np.testing.assert_allclose(matrix(a).astype(float), expected, 1e-14, 1e-14)

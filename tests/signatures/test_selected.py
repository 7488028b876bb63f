"""Selected coordinates against the full signature, and what they carry."""

import functools as ft

import jax
import jax.numpy as jnp
import jax.random as jr
import jaxtyping
import numpy as np
import pytest

import arborax as abx
from arborax.algebra import prefix_closure


XS = jnp.cumsum(jr.normal(jr.key(0), (2, 9, 2)), axis=1) / 3
CASES = [
    (abx.Shuffle(2, 4), None),
    (abx.Ito(2, 4), "realised"),
    (abx.Ito(2, 4), "supplied"),
    (abx.Ito(2, 2), "left-point"),
    (abx.BranchedWords(2, 3), "realised"),
    (abx.GrossmanLarson(2, 4), None),
    (abx.GrossmanLarson(2, 4), "supplied"),
    (abx.MuntheKaasWright(2, 3), None),
    (abx.MuntheKaasWright(2, 3), "realised"),
    (abx.MultiIndex(2, 4), "realised"),
]


@pytest.mark.parametrize("alg, mode", CASES, ids=str)
def test_they_are_those_of_the_signature(alg, mode):
    brackets = mode
    if mode == "supplied":
        roots = jr.normal(jr.key(1), (2, 8, 2, 2)) / 4
        brackets = roots @ jnp.swapaxes(roots, -1, -2)
    full = abx.signature(XS, alg, brackets)
    reached = np.flatnonzero(np.any(full != 0, axis=0))  # without letters of weight 3
    places = np.random.default_rng(3).permutation(reached)[:12]
    got = abx.selected_signature(XS, [alg.basis[k] for k in places], alg, brackets)
    np.testing.assert_allclose(got, full[..., places], rtol=1e-10, atol=1e-13)


def test_gradients_and_second_derivatives():
    alg, keys = (
        abx.GrossmanLarson(2, 3),
        [((0, ((1, ()), (1, ()))),), ((1, ((0, ()),)),)],
    )
    places = np.array([alg.index[key] for key in keys])
    one = lambda x: jnp.sum(abx.selected_signature(x, keys, alg, "realised") ** 2)  # noqa: E731
    two = lambda x: jnp.sum(abx.signature(x, alg, "realised")[places] ** 2)  # noqa: E731
    x = XS[0, :4]
    close = ft.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-11)
    close(jax.jit(jax.grad(one))(x), jax.grad(two)(x))
    second = lambda f: jax.jit(jax.jvp, static_argnums=0)(jax.grad(f), (x,), (v,))[1]  # noqa: E731
    v = jr.normal(jr.key(4), x.shape)
    close(second(one), second(two))


def test_what_is_carried():
    """Prefixes of words; branches of trees, each once."""
    words = prefix_closure([(0, 1, 1, 0), (0, 1, 0)], abx.Shuffle(2, 4))
    assert set(words) == {(0,), (0, 1), (0, 1, 1), (0, 1, 0), (0, 1, 1, 0)}
    leaf, cherry = (0, ()), (1, ((0, ()), (0, ())))
    tree = (0, (leaf, cherry))
    carried = prefix_closure([(tree,)], abx.GrossmanLarson(2, 5))
    assert set(carried) == {(tree,), (cherry,), (leaf,)}
    assert len(carried) < abx.GrossmanLarson(2, 5).size / 100


def test_no_table_of_a_large_algebra_is_built():
    """A word of depth five over ten channels: five coordinates of 111,110."""
    alg = abx.Shuffle(10, 5)
    word = (0, 3, 9, 3, 1)
    xs = jnp.cumsum(jr.normal(jr.key(2), (6, 10)), axis=0)
    got = abx.selected_signature(xs, [word], alg)
    assert "_lyndon" not in vars(alg) and len(prefix_closure([word], alg)) == 5
    letters = np.unique(word)
    relabelled = tuple(int(k) for k in np.searchsorted(letters, word))
    small = abx.Shuffle(len(letters), 5)
    expected = abx.signature(xs[:, letters], small)[small.index[relabelled]]
    np.testing.assert_allclose(got, [expected], rtol=1e-10)


@pytest.mark.parametrize("key", [(0, 2), (0, 0, 0, 0), (), "a", 3, ((0, ()),), None])
def test_other_keys_are_refused(key):
    with pytest.raises(ValueError, match="is not a key of"):
        abx.selected_signature(XS, [key], abx.Shuffle(2, 3))


def test_lists_and_nothing_are_refused(monkeypatch):
    with pytest.raises(TypeError, match="tuples"):
        abx.selected_signature(XS, [[0, 1]], abx.Shuffle(2, 3))
    # Users have no run-time type checks.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    for keys in (None, 3, "01"):
        with pytest.raises(TypeError, match="list of keys"):
            abx.selected_signature(XS, keys, abx.Shuffle(2, 3))
    with pytest.raises(ValueError, match="empty"):
        abx.selected_signature(XS, [], abx.Shuffle(2, 3))


def test_left_point_sums_are_refused():
    with pytest.raises(ValueError, match="use `signature`"):
        keys = [((0, ()),)]
        abx.selected_signature(XS, keys, abx.GrossmanLarson(2, 3), "left-point")

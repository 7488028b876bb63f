"""An algebra that is not of this library works through its interface, or is refused by
name; it never falls through to code for another."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from user_defined import BackwardTrees

import arborax as abx
from arborax.algebra import AbstractHopfAlgebra


INNER = abx.Shuffle(2, 3)


class Foreign(AbstractHopfAlgebra):
    """Words behind the bare interface."""

    size = property(lambda self: INNER.size)
    basis = property(lambda self: INNER.basis)
    weights = property(lambda self: INNER.weights)
    primitive_size = property(lambda self: INNER.primitive_size)
    primitive_basis = property(lambda self: INNER.primitive_basis)
    primitive_weights = property(lambda self: INNER.primitive_weights)
    product_table = property(lambda self: INNER.product_table)
    antipode_map = property(lambda self: INNER.antipode_map)
    primitive_maps = property(lambda self: INNER.primitive_maps)

    calculus = property(lambda self: "stratonovich")
    planar = property(lambda self: True)
    forests = property(lambda self: INNER.forests)

    def elementary_step(self, letter):
        return INNER.elementary_step(letter)

    def cuts(self, key):
        return INNER.cuts(key)

    def dual_product(self, left, right):
        return INNER.dual_product(left, right)


XS = jnp.asarray(np.random.default_rng(0).normal(size=(2, 6, 2)))
FOREIGN = Foreign(2, 3)


def shape(brackets):
    return str(getattr(brackets, "shape", brackets))


@pytest.mark.parametrize(
    "function",
    [
        abx.signature,
        abx.log_signature,
        abx.expanding_signature,
        lambda x, alg: abx.windowed_signature(x, alg, 2),
        lambda x, alg: (
            abx.rough_path(jnp.arange(6.0), x[0], alg, window=2).log_signatures
        ),
    ],
)
def test_the_interface_is_enough_for_the_canonical_lift(function):
    out = function(XS, FOREIGN)
    np.testing.assert_allclose(out, function(XS, INNER), 1e-12, 1e-12)


@pytest.mark.parametrize("brackets", ["realised", "left-point", np.zeros((5, 2, 2))])
def test_brackets_are_refused_by_name(brackets):
    with pytest.raises(ValueError, match="Foreign"):
        abx.signature(XS, FOREIGN, brackets)
    with pytest.raises(ValueError, match="Foreign"):
        abx.rough_path(jnp.arange(6.0), XS[0], FOREIGN, brackets=brackets)


@pytest.mark.parametrize("brackets", [None, "realised", np.ones((5, 2, 2))], ids=shape)
def test_brackets_come_through_elementary_steps(brackets):
    """Planar trees in another order: value and gradient."""
    alg = BackwardTrees(2, 3)
    for function, order in (
        (abx.signature, alg.order),
        (abx.log_signature, alg.primitive_order),
    ):

        def loss(x, alg, weights, function=function):
            return jnp.sum(jnp.sin(function(x, alg, brackets)) @ weights)

        weights = np.random.default_rng(1).normal(size=order.size)
        got = jax.value_and_grad(loss)(XS, alg, weights[order])
        want = jax.value_and_grad(loss)(XS, alg.other, weights)
        for a, b in zip(got, want):
            np.testing.assert_allclose(a, b, 1e-12, 1e-12)


def test_left_point_sums_need_trees():
    with pytest.raises(ValueError, match="BackwardTrees"):
        abx.signature(XS, BackwardTrees(2, 3), "left-point")
